"""Rounds: sample with the newest policy, build a dataset version, train a few updates, evaluate, again.

Each round is a dataset version in a folder of its own, so versions are compared by ``diff`` and SQL. What is
finished is noted in ``rounds.json``, and a run that was killed goes on from there (docs/rounds.md).
"""

from __future__ import annotations

from solar_rl.rounds.config import HeldOut, RoundsConfig, load_rounds_config
from solar_rl.rounds.run import Rounds, prepare
from solar_rl.rounds.state import State, read_state

__all__ = [
    "HeldOut",
    "Rounds",
    "RoundsConfig",
    "State",
    "load_rounds_config",
    "prepare",
    "read_state",
]
