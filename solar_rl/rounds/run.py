"""Run rounds one stage after the other, skip what is finished, and stop when nothing is gained any more."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from solar_rl.errors import InputError
from solar_rl.pipeline.work import locked
from solar_rl.rounds.config import RoundsConfig
from solar_rl.rounds.stages import Progress, Stages, all_stages, make_stages
from solar_rl.rounds.state import STATE, Stage, State, read_state

Said = Callable[[str], None]
"""Called with a line about what begins, and what came of it."""
DoStage = Callable[[Stage], dict[str, Any]]


@dataclass(frozen=True)
class Rounds:
    """A run that is ready to go: what its stages are, and which are finished.

    Args:
        stages: The work.
        state: What rounds.json says.
    """

    stages: Stages
    state: State

    @property
    def config(self) -> RoundsConfig:
        """Return the run's config."""
        return self.stages.config

    def plan(self) -> list[dict[str, Any]]:
        """Say for every stage whether it is finished, and which command would do it alone."""
        return [
            {
                "round": stage.round,
                "stage": stage.kind,
                "state": "done" if stage.name in self.state.stages else "to do",
                "command": self.stages.command(stage),
            }
            for stage in all_stages(self.config.rounds)
        ]

    def run(self, say: Said = lambda line: None, do: DoStage | None = None) -> State:
        """Do what is left.

        Args:
            say: Told what begins, and what came of it.
            do: Does one stage (default: the real work).

        Raises:
            CheckFailed: A stage failed; the same command goes on there.
            InputError: Another process runs these rounds.
        """
        folder = self.stages.folder
        with locked(folder):
            folder.mkdir(parents=True, exist_ok=True)
            self.state.stopped = None
            for stage in self._to_do():
                say(f"round {stage.round}: {stage.kind}")
                self.state.stages[stage.name] = (do or self.stages.run)(stage)
                self.state.write(folder)
                say(_told(stage, self.state))
                if stage.kind == "evaluate":
                    self._let_go(stage.round)
            self.state.stopped = self._reason_to_stop()
            self.state.write(folder)
        return self.state

    def _to_do(self) -> Iterator[Stage]:
        for stage in all_stages(self.config.rounds):
            if stage.kind == "build" and self._reason_to_stop(before=stage.round):
                return
            if stage.name not in self.state.stages:
                yield stage

    def _reason_to_stop(self, before: int | None = None) -> str | None:
        """Say why no further round is worth it, from the rounds before one; None: it is."""
        patience, best, since = self.config.patience, float("-inf"), 0
        for number, progress in self.state.progress().items():
            if before is not None and number >= before:
                break
            gained = progress > best + self.config.min_gain
            best, since = (progress, 0) if gained else (best, since + 1)
            if patience is not None and since >= patience:
                return f"no gain in held-out progress for {since} rounds"
        return None

    def _let_go(self, number: int) -> None:
        """Delete policies that nothing needs any more; those of the newest rounds and the best one stay."""
        for old in range(1, number - self.config.keep_checkpoints + 1):
            if old != self.state.best:
                shutil.rmtree(self.stages.policy(old), ignore_errors=True)


def prepare(config: RoundsConfig, folder: Path, progress: Progress = lambda standing: None) -> Rounds:
    """Check a run before any work starts, and read how far it is.

    Args:
        config: The run.
        folder: Where everything goes.
        progress: Told how far a build is.

    Raises:
        ConfigError: Dataset, sampler and recipe don't fit each other.
        InputError: The folder holds rounds of another config.
    """
    stages = make_stages(config, folder, progress)
    state = read_state(folder)
    if state is None:
        return Rounds(stages, State(config.identity(), config.policy))
    if state.identity != config.identity():
        raise InputError(
            "the folder holds rounds of another config",
            where=str(folder / STATE),
            hint="use --out with a new folder; only rounds, patience, min_gain, keep_checkpoints and processes "
            "may change on the way",
        )
    return Rounds(stages, state)


def _told(stage: Stage, state: State) -> str:
    shown = {
        "build": ("episodes", "candidates", "valid", "unparsable"),
        "train": ("updates", "groups", "lag_max", "ratio", "ratio_max", "sample_share"),
        "evaluate": ("episodes", "progress", "low", "high", "success", "played episodes", "played success"),
    }[stage.kind]
    found = state.stages[stage.name]
    found = found | {f"played {name}": value for name, value in (found.get("played") or {}).items()}
    parts = (f"{name} {_number(found[name])}" for name in shown if found.get(name) is not None)
    return f"round {stage.round}: {stage.kind} done: {', '.join(parts)}"


def _number(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)
