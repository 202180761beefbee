"""Bring candidates that were sampled elsewhere into a built dataset: a new version beside it, nothing overwritten.

The demonstrations stay (they are hard-linked); answers are parsed, scored and shaped as if the dataset's own
sampler had given them.
"""

from solar_rl.importing.answers import read_answers
from solar_rl.importing.version import Import, plan, run

__all__ = ["Import", "plan", "read_answers", "run"]
