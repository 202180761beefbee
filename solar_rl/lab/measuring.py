"""Measure a policy: held-out recorded steps, and episodes in closed loop, both answered greedily in batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl

from solar_rl.agents import PolicyAgent
from solar_rl.builder import load_builder
from solar_rl.closed_loop import Played, play
from solar_rl.config import DatasetConfig, ShapingConfig
from solar_rl.evaluate import evaluate, prepare
from solar_rl.evaluate.answering import Answered, answer_steps, source_episodes
from solar_rl.lab.asking import dataset_config, sampler_block
from solar_rl.lab.plan import Plan
from solar_rl.lab.worlds import WORLDS
from solar_rl.prompts import settled
from solar_rl.sampling import make_sampler
from solar_rl.sampling.base import Sampler, close
from solar_rl.schema import Episode
from solar_rl.shaping import trajectory_rewards

_BUCKETS = "phone"


class Examiner:
    """Asks policies about the same held-out steps and episodes.

    Args:
        plan: The lab run.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan, self._world = plan, WORLDS[plan.world]
        self._episodes = cache(self._read)

    def steps(self, policy: Path, unseen: str | None = None) -> dict[str, Any]:
        """Answer the held-out recorded steps.

        Args:
            policy: Folder of the policy.
            unseen: A key of the world's ``unseen``: steps of what training left out, in the place of held-out goals.

        Returns:
            step_accuracy, type_match, goal_progress, task_sr, return (the mean R_traj of the greedy answers),
            by_bucket with the first and third, and press_back with predicted, right and recorded.
        """
        config = self._config(policy, unseen)
        sampler = make_sampler(config.sampler, config.prompt)
        try:
            found = answer_steps(config, sampler, self._episodes(unseen), lambda line: None)
        finally:
            close(sampler)
        return _summed(found)

    def closed_loop(self, policy: Path) -> list[dict[str, Any]]:
        """Play the held-out episodes, and return how each went."""
        config = self._config(policy, None)
        sampler = make_sampler(config.sampler, config.prompt)
        try:
            return [_told(one) for one in self._play(config, sampler)]
        finally:
            close(sampler)

    def _play(self, config: DatasetConfig, sampler: Sampler) -> Sequence[Played]:
        jobs = self._world.jobs(self._plan)
        places = self._world.environments(config.source.options, len(jobs))
        player = PolicyAgent(config.prompt, sampler, config.seed)
        try:
            played = play(places, player, jobs, max_steps=self._world.limits(self._plan), recovery=True)
            return sorted(played, key=lambda one: (one.task, one.seed))
        finally:
            for place in places:
                place.close()

    def _read(self, unseen: str | None) -> list[Episode]:
        config = self._config(None, unseen)
        return list(source_episodes(config, load_builder(config.source), []))

    def _config(self, policy: Path | None, unseen: str | None) -> DatasetConfig:
        """Describe what is asked as a dataset would be."""
        plan = self._plan
        sampler: dict[str, Any] = {"type": "scripted", "n": 1, "error_rate": 0.0}
        if policy is not None:
            sampler = sampler_block(plan, policy, 1)
        config = dataset_config(plan, "held-out", self._world.held_out(plan, unseen), sampler=sampler)
        return config.model_copy(update={"prompt": settled(config.prompt)})


def _summed(found: Answered) -> dict[str, Any]:
    cases = prepare(found.predictions, found.steps, found.episodes)
    judged = evaluate(cases, "solar", bucket_rule=_BUCKETS, resamples=0)
    metrics = dict(judged.metrics.select("metric", "value").iter_rows())
    buckets = judged.by["bucket"].select("bucket", "exact_match", "goal_progress").iter_rows()
    return {
        "step_accuracy": metrics["exact_match"],
        "type_match": metrics["type_match"],
        "goal_progress": metrics["goal_progress"],
        "task_sr": metrics["task_sr"],
        "return": _mean_return(judged.verdicts, found.episodes),
        "by_bucket": {str(name): {"step_accuracy": a, "goal_progress": g} for name, a, g in buckets},
        "press_back": _press_back(found),
    }


def _mean_return(verdicts: pl.DataFrame, episodes: pl.DataFrame) -> float:
    """Return the mean R_traj of the greedy answers, with the default weights (docs/method.md, section 3)."""
    rows = verdicts.join(episodes.select("episode_id", "ref_len"), on="episode_id", how="left").select(
        "episode_id",
        "step_index",
        "ref_len",
        candidate_index=pl.lit(0),
        raw_score="reward",
        valid=pl.col("exact_match") == 1,
    )
    returns = trajectory_rewards(rows.sort("episode_id", "step_index"), ShapingConfig())
    return float(returns.mean())


def _press_back(found: Answered) -> dict[str, int]:
    """Count presses of back: how many were answered, how many of those were recorded there, how many recorded."""
    key = ["episode_id", "step_index"]
    rows = found.predictions.select(*key, "pred_action_type", "pred_button").join(
        found.steps.select(*key, "action_type", "button"), on=key, how="inner"
    )
    said = (pl.col("pred_action_type") == "press") & (pl.col("pred_button") == "back")
    meant = (pl.col("action_type") == "press") & (pl.col("button") == "back")
    counts = rows.select(
        predicted=said.fill_null(False).sum(),
        right=(said & meant).fill_null(False).sum(),
        recorded=meant.fill_null(False).sum(),
    )
    return {name: int(value) for name, value in counts.row(0, named=True).items()}


def _told(one: Played) -> dict[str, Any]:
    """Keep of an episode what the figures need; of its actions how often the same one came twice in a row."""
    fields = (
        "task",
        "seed",
        "success",
        "progress",
        "steps",
        "invalid",
        "ended",
        "ref_len",
        "wrong",
        "recovered",
    )
    values = asdict(one)
    repeated = sum(a == b for a, b in zip(one.actions, one.actions[1:], strict=False))
    safe = sum(action is not None and action.startswith(("wait", "press back")) for action in one.actions)
    return {name: values[name] for name in fields} | {"repeated": repeated, "safe": safe}
