"""Policies: the same prompt, the same pixels and the same maths for sampling and for training.

A policy is a causal language model or a vision-language model of transformers. Torch and transformers are
imported inside the functions, so that reading this package costs nothing.
"""

from solar_rl.policy.model import (
    Policy,
    batch_logprobs,
    join_inputs,
    joinable,
    load_policy,
    logprobs,
    prompt_logprobs,
    read_once,
    repeat_inputs,
)
from solar_rl.policy.reader import (
    Message,
    Reader,
    answer_ids,
    answer_text,
    encode,
    load_reader,
    open_images,
    prompt_length,
    prompt_text,
    qwen_vl_processor,
)

__all__ = [
    "Message",
    "Policy",
    "Reader",
    "answer_ids",
    "answer_text",
    "batch_logprobs",
    "encode",
    "join_inputs",
    "joinable",
    "load_policy",
    "load_reader",
    "logprobs",
    "open_images",
    "prompt_length",
    "prompt_logprobs",
    "prompt_text",
    "qwen_vl_processor",
    "read_once",
    "repeat_inputs",
]
