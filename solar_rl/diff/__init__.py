"""Say what changed between two datasets: config, counts, validity, rewards, and which episodes.

Figures are asked of both in SQL. Episodes are compared by content, part by part, through hashes that DuckDB
takes of every row; a table whose files are the same bytes on both sides isn't read at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from solar_rl.diff.episodes import compare_episodes, same_files
from solar_rl.diff.facts import compare_facts
from solar_rl.diff.figures import compare_figures
from solar_rl.diff.rows import Row, differs
from solar_rl.store.dataset import SolarDataset, open_dataset
from solar_rl.store.manifest import Manifest

if TYPE_CHECKING:
    import polars as pl

__all__ = ["TITLES", "Difference", "compare"]

TITLES = {
    "config": "Config",
    "versions": "Code, libraries and schema",
    "schema": "Columns",
    "counts": "Rows by table and split",
    "headline": "Headline figures",
    "paired": "Paired over the episodes that both have (mean of each, with a 95 % interval of the change)",
    "validity": "Validity by action type",
    "first_failure": "First failure by step (share of the trajectories)",
    "rewards": "Distribution of rewards (share of the answers in play)",
    "returns": "Distribution of R_traj (share of the trajectories)",
    "advantages": "Advantages",
    "sampler": "Sampler health",
    "rejects": "Rejected records",
    "episodes": "Episodes by what changed",
}
"""Section to its title, in the order in which they are printed."""


@dataclass(frozen=True)
class Difference:
    """What changed from one dataset to another.

    Args:
        a: Manifest of the first.
        b: Manifest of the second.
        sections: Rows by section (the keys of ``TITLES``); each has ``a`` and ``b``, and ``change`` where both
            are numbers. The rows of ``episodes`` have a count and a share instead.
        episodes: One row an episode that isn't the same on both sides, the largest change first.
    """

    a: Manifest
    b: Manifest
    sections: dict[str, list[Row]]
    episodes: pl.DataFrame

    @cached_property
    def changed(self) -> list[str]:
        """Name the sections in which anything differs."""
        found = [name for name in TITLES if name != "episodes" and any(map(differs, self.sections[name]))]
        return found + (["episodes"] if self.episodes.height else [])

    @property
    def same(self) -> bool:
        """Tell whether the two hold the same data, made by the same config."""
        return not self.changed

    def as_dict(self) -> dict[str, Any]:
        """Return everything for JSON."""
        return {
            "a": _identity(self.a),
            "b": _identity(self.b),
            "same": self.same,
            "changed": self.changed,
            **self.sections,
            "changed_episodes": self.episodes.to_dicts(),
        }


def compare(a: str | Path | SolarDataset, b: str | Path | SolarDataset) -> Difference:
    """Compare two datasets: folders, or repositories of the Hub, of which only the tables that differ are read.

    Raises:
        InputError: One of them is no complete dataset.
        CheckFailed: The Hub can't be reached, and the cache doesn't have all of it.
    """
    first, second = (each if isinstance(each, SolarDataset) else open_dataset(each) for each in (a, b))
    with first.connect() as con_a, second.connect() as con_b:
        episodes = compare_episodes(con_a, con_b, first.manifest, second.manifest)
        same_answers = same_files(first.manifest, second.manifest, "candidates")
        sections = compare_facts(first.manifest, second.manifest)
        sections |= compare_figures(con_a, con_b, same_answers=same_answers)
    sections |= {"episodes": episodes.counts, "paired": episodes.paired}
    ordered = {name: sections[name] for name in TITLES}
    return Difference(first.manifest, second.manifest, ordered, episodes.differing)


def _identity(manifest: Manifest) -> dict[str, str]:
    return {"name": manifest.name, "version": manifest.version, "build_id": manifest.build_id}
