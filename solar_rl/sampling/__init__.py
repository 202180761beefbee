"""Samplers: who answers the requests. ``make_sampler`` picks one by the config's ``type``.

To add one, write a module with a class that has ``sampler_id`` and ``sample`` (see ``base.Sampler``), a
config model in ``solar_rl.config`` with a ``type`` of its own, and a line here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from solar_rl.config import (
    OpenAISampler,
    PromptConfig,
    RecordedSampler,
    ScriptedSampler,
    TransformersSampler,
    VllmSampler,
)
from solar_rl.sampling.base import Sampler

if TYPE_CHECKING:
    from solar_rl.config.sampler import Sampler as SamplerConfig


def make_sampler(config: SamplerConfig, prompt: PromptConfig) -> Sampler:
    """Set up the sampler that a config describes.

    Raises:
        ConfigError: A value or a file that it names is wrong.
        MissingExtra: It needs packages that aren't installed.
    """
    if isinstance(config, ScriptedSampler):
        from solar_rl.sampling.scripted import Scripted

        return Scripted(config, prompt)
    if isinstance(config, TransformersSampler):
        from solar_rl.sampling.transformers import Transformers

        return Transformers(config, prompt)
    if isinstance(config, VllmSampler):
        from solar_rl.sampling.vllm import Vllm

        return Vllm(config, prompt)
    if isinstance(config, OpenAISampler):
        from solar_rl.sampling.openai import OpenAI

        return OpenAI(config, prompt)
    assert isinstance(config, RecordedSampler)
    from solar_rl.sampling.recorded import Recorded

    return Recorded(config)
