"""Build a dataset like a compiler: read -> sample -> score -> shape -> write, and run only what a change touches."""

from __future__ import annotations

from solar_rl.pipeline.build import Built, Options, Submitted, build, finish_submitted, plan
from solar_rl.pipeline.keys import portable
from solar_rl.pipeline.sample import Sampled, forecast, sample

__all__ = [
    "Built",
    "Options",
    "Sampled",
    "Submitted",
    "build",
    "finish_submitted",
    "forecast",
    "plan",
    "portable",
    "sample",
]
