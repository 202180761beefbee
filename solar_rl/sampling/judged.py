"""Judge answers while sampling goes on, where what is asked next depends on them."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from solar_rl.columns import candidates_frame, episodes_frame, steps_frame
from solar_rl.config import ValidityConfig
from solar_rl.schema import Candidate, Episode
from solar_rl.verify import judge


class Judged:
    """A handful of episodes whose candidates are judged as the build will judge them.

    Args:
        config: The build's validity block.
        episodes: Every episode that a candidate may answer.
    """

    def __init__(self, config: ValidityConfig, episodes: Sequence[Episode]) -> None:
        self._config = config
        self._episodes, self._steps = episodes_frame(episodes), steps_frame(episodes)
        shots = {s.screenshot.sha256: s.screenshot.data for e in episodes for s in e.steps if s.screenshot}
        self._shots = pl.DataFrame(
            {"sha256": list(shots), "screenshot": list(shots.values())},
            {"sha256": pl.String, "screenshot": pl.Binary},
        )

    def valid(self, candidates: Sequence[Candidate]) -> list[bool | None]:
        """Tell of each candidate whether it is valid; None where the step can't be judged."""
        if not candidates:
            return []
        rows = candidates_frame(candidates)
        scores = judge(self._config, rows, self._steps, self._episodes, lambda: self._shots)
        keys = rows.select("episode_id", "step_index", "candidate_index").iter_rows()
        found = dict(zip(keys, scores["valid"].to_list(), strict=True))
        return [found[c.episode_id, c.step_index, c.candidate_index] for c in candidates]
