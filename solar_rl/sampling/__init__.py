"""Samplers: who answers the requests. ``make_sampler`` picks one by the config's ``type``.

To add one, write a module with a class that has ``sampler_id`` and ``sample`` (see ``base.Sampler``), a
config model in ``solar_rl.config`` with a ``type`` of its own, and a line here.
"""

from __future__ import annotations

from solar_rl.config import (
    PromptConfig,
    RecordedSampler,
    ScriptedSampler,
    TransformersSampler,
)
from solar_rl.sampling.base import Sampler


def make_sampler(
    config: ScriptedSampler | TransformersSampler | RecordedSampler, prompt: PromptConfig
) -> Sampler:
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
    from solar_rl.sampling.recorded import Recorded

    return Recorded(config)
