"""Build a dataset like a compiler: read -> sample -> score -> shape -> write, and run only what a change touches."""

from __future__ import annotations

from solar_rl.pipeline.build import Built, Options, Submitted, build, finish_submitted, plan
from solar_rl.pipeline.keys import portable

__all__ = ["Built", "Options", "Submitted", "build", "finish_submitted", "plan", "portable"]
