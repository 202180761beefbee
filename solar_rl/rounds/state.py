"""Remember what is finished: rounds.json, written whole or not at all after each stage."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import orjson

from solar_rl.errors import InputError
from solar_rl.pipeline.work import write_atomically

STATE = "rounds.json"
Kind = Literal["evaluate", "build", "train"]


class Stage(NamedTuple):
    """One piece of work: what is done, and in which round; round 0 only evaluates the policy as it came."""

    kind: Kind
    round: int

    @property
    def name(self) -> str:
        """Return the stage's key in rounds.json."""
        return f"{self.kind}-{self.round}"


@dataclass
class State:
    """What rounds.json holds.

    Args:
        identity: Digest of the run's config.
        policy: The policy that the first round samples with.
        stages: What each finished stage found, by its name.
        stopped: Why the run is over before its last round; None: it isn't.
    """

    identity: str
    policy: str
    stages: dict[str, dict[str, Any]] = field(default_factory=dict)
    stopped: str | None = None

    def write(self, folder: Path) -> None:
        """Write rounds.json, with one row a round for people and scripts."""
        data = asdict(self) | {"best_round": self.best, "rounds": self.rows()}
        write_atomically(folder / STATE, orjson.dumps(data, option=orjson.OPT_INDENT_2) + b"\n")

    def found(self, kind: Kind, number: int) -> dict[str, Any]:
        """Return what a stage found; empty where it isn't finished."""
        return self.stages.get(Stage(kind, number).name, {})

    @property
    def best(self) -> int | None:
        """Return the round with the highest held-out progress, the earliest of equals; None: none is known."""
        known = self.progress()
        return max(known, key=lambda number: (known[number], -number)) if known else None

    def progress(self) -> dict[int, float]:
        """Return the held-out goal progress that is known, by round."""
        found = {
            int(name.partition("-")[2]): each for name, each in self.stages.items() if "progress" in each
        }
        return {number: each["progress"] for number, each in sorted(found.items())}

    def rows(self) -> list[dict[str, Any]]:
        """Return one row a round: what was sampled, how training went, and what is held out."""
        rounds = sorted({int(name.partition("-")[2]) for name in self.stages})
        rows = []
        for number in rounds:
            played = self.found("evaluate", number).get("played") or {}
            built, trained, measured = (self.found(kind, number) for kind in ("build", "train", "evaluate"))
            rows.append(
                {
                    "round": number,
                    "version": built.get("version"),
                    "sampled_valid": built.get("valid"),
                    "groups": trained.get("groups"),
                    "updates": trained.get("updates"),
                    "lag_mean": trained.get("lag_mean"),
                    "lag_max": trained.get("lag_max"),
                    "ratio": trained.get("ratio"),
                    "ratio_max": trained.get("ratio_max"),
                    "sample_share": trained.get("sample_share"),
                    **{name: measured.get(name) for name in ("progress", "low", "high", "valid", "success")},
                    **{f"played_{name}": played.get(name) for name in ("success", "progress")},
                }
            )
        return rows


def read_state(folder: Path) -> State | None:
    """Read rounds.json; None: nothing was begun there.

    Raises:
        InputError: It is none of ours.
    """
    path = folder / STATE
    if not path.exists():
        return None
    try:
        data = orjson.loads(path.read_bytes())
        return State(data["identity"], data["policy"], data["stages"], data["stopped"])
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            "is no record of rounds", where=str(path), hint="use --out with a new folder"
        ) from error
