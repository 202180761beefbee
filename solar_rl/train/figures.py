"""Measure a batch: what the answers that are trained on are like, and how far the policy has moved from them.

``data/...`` tells of the answers: in replay they are the dataset's, so these figures change with the batch's
luck alone. ``policy/...`` tells of the policy as it is now. docs/metrics.md explains each name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import torch
from datasets.arrow_dataset import Dataset

from solar_rl.schema import LENGTH_BUCKETS

Total = Callable[[torch.Tensor], torch.Tensor]
"""Adds a tensor up over all processes, or takes the highest."""
NAMES = {
    "data/in_play": "share of the batch's rows that are in play",
    "data/anchored_groups": "share of groups with a recorded action in the loss",
    "data/screenshots_made": "screenshots preprocessed so far by this process",
    "data/unparsable": "share of answers that are no action",
    "data/valid": "share of scored answers that are valid",
    "data/prefix_length": "mean valid prefix of the batch's trajectories, in steps",
    "data/groups_without_spread": "share of the split's groups whose candidates teach nothing",
    "data/reward/KIND/NAME": "mean reward in play, by KIND: action, length or position",
    "data/valid/KIND/NAME": "share of valid answers, by KIND: action, length or position",
    "policy/importance_weight": "mean weight of a token under off_policy: decoupled",
    "policy/ratio": "mean raw importance ratio a token: now / sampler",
    "policy/ratio_max": "highest raw importance ratio of a token",
    "policy/sample_share": "effective sample size over the number of answers, from whole-answer ratios",
    "policy/drift": "mean of sampler's minus present log-prob, nats a token: an estimate of KL(sampler, now)",
    "policy/logprob_valid": "mean log-prob a token of valid answers",
    "policy/logprob_invalid": "mean log-prob a token of answers that are not valid",
    "policy/anchor_nll": "mean negative log-prob a token of recorded actions",
}
"""Every name that is logged beside TRL's own, with its meaning; capitals stand for what varies."""
_WITHOUT_SPREAD = ("no spread", "one candidate", "anchor alone")
_LARGEST_LOG_RATIO = 20.0
"""Whole-answer log-ratios are cut here: e^20 is as good as infinite, and its square still fits float32."""


@dataclass(frozen=True)
class SampledFigures:
    """Tells what the answers of a batch are like, kind by kind.

    Args:
        kinds: Every kind that rows of the split are of, the same on every process.
        without_spread: Share of the split's groups whose candidates teach nothing; None: not known.
        buckets: Rule of the length buckets.
    """

    kinds: tuple[str, ...]
    without_spread: float | None = None
    buckets: str = "androidcontrol"

    @classmethod
    def of(cls, rows: Dataset, counts: Mapping[str, int], buckets: str = "androidcontrol") -> Self:
        """Look at all rows of a split.

        Args:
            rows: Rows as ``train/data.py`` makes them.
            counts: Groups kept, and left out by reason.
            buckets: Rule of the length buckets.
        """
        several = {name: set(rows[name][:]) for name in ("action_type", "position", "ref_len")}
        kinds = {f"action/{kind}" for kind in several["action_type"]}
        kinds |= {f"position/{kind}" for kind in several["position"] if kind}
        kinds |= {f"length/{length_bucket(length, buckets)}" for length in several["ref_len"]}
        groups = sum(counts.values())
        idle = sum(counts.get(reason, 0) for reason in _WITHOUT_SPREAD)
        return cls(tuple(sorted(kinds)), idle / groups if groups else None, buckets)

    def report(self, rows: Sequence[Mapping[str, Any]], total: Total) -> dict[str, float]:
        """Return the figures of a batch over all processes, by logged name.

        Args:
            rows: This process's rows.
            total: Adds up over all processes.
        """
        sums = torch.zeros(len(self.kinds) + 1, 4)  # rewards, their sum, verdicts, their sum
        place = {kind: k for k, kind in enumerate(self.kinds)}
        for row in rows:
            found = torch.tensor(_sums(row["reward"] if row["in_play"] else None) + _sums(row["valid"]))
            for kind in self._kinds_of(row):
                sums[place[kind]] += found
            sums[-1] += found
        parsed = [row["parsed"] for row in rows if row["parsed"] is not None]
        lengths = {(row["episode_id"], row["candidate_index"]): row["prefix_len"] for row in rows}
        known = [length for length in lengths.values() if length is not None]
        rest = torch.tensor(
            [len(parsed), len(parsed) - sum(parsed), len(known), sum(known)], dtype=torch.float32
        )
        table = total(torch.cat([sums, rest[None]])).tolist()
        return dict(self._named(table))

    def _kinds_of(self, row: Mapping[str, Any]) -> Iterator[str]:
        yield f"action/{row['action_type']}"
        yield f"length/{length_bucket(row['ref_len'], self.buckets)}"
        if row["position"]:
            yield f"position/{row['position']}"

    def _named(self, table: list[list[float]]) -> Iterator[tuple[str, float]]:
        *kinds, whole, (answers, unparsable, paths, prefix) = table
        for kind, (rewards, reward, verdicts, valid) in zip(self.kinds, kinds, strict=True):
            if rewards:
                yield f"data/reward/{kind}", reward / rewards
            if verdicts:
                yield f"data/valid/{kind}", valid / verdicts
        if whole[2]:
            yield "data/valid", whole[3] / whole[2]
        if answers:
            yield "data/unparsable", unparsable / answers
        if paths:
            yield "data/prefix_length", prefix / paths
        if self.without_spread is not None:
            yield "data/groups_without_spread", self.without_spread


def length_bucket(ref_len: int, rule: str) -> str:
    """Return the bucket of an episode's length, with the rule's name before it.

    >>> length_bucket(12, "androidcontrol")
    'androidcontrol_super_long'
    """
    name = next(name for longest, name in LENGTH_BUCKETS[rule] if longest is None or ref_len <= longest)
    return f"{rule}_{name.partition(' (')[0].replace(' ', '_')}"


def _sums(value: float | None) -> list[float]:
    return [0.0, 0.0] if value is None else [1.0, float(value)]


@dataclass(frozen=True)
class PolicyFigures:
    """Sums over a micro-batch that tell how far the policy is from the answers' sampler.

    Args:
        sums: (11,) float32, see ``of``.
        highest: (1,) the highest log-ratio of a token.
    """

    sums: torch.Tensor
    highest: torch.Tensor

    @classmethod
    def of(cls, now: torch.Tensor, stored: torch.Tensor, mask: torch.Tensor, valid: torch.Tensor) -> Self:
        """Sum up a micro-batch.

        Args:
            now: (B, T) log-probs of the answers' tokens under the policy.
            stored: (B, T) the same under the sampler.
            mask: (B, T) 1 where a token is in play.
            valid: (B,) 1, 0, or -1 where it isn't known.
        """
        log_ratio = (now - stored) * mask
        whole = log_ratio.sum(1).clamp(-_LARGEST_LOG_RATIO, _LARGEST_LOG_RATIO).exp() * mask.any(1)
        right, wrong = mask * (valid == 1)[:, None], mask * (valid == 0)[:, None]
        sums = [
            mask.sum(), (log_ratio.exp() * mask).sum(), -log_ratio.sum(), log_ratio.abs().sum(),
            mask.any(1).sum(), whole.sum(), (whole**2).sum(),
            right.sum(), (now * right).sum(), wrong.sum(), (now * wrong).sum(),
        ]  # fmt: skip
        highest = log_ratio.masked_fill(mask == 0, -torch.inf).amax()
        return cls(torch.stack([value.float() for value in sums]), highest[None])

    def plus(self, other: PolicyFigures) -> PolicyFigures:
        """Return the sums over both."""
        return PolicyFigures(self.sums + other.sums, torch.maximum(self.highest, other.highest))

    def report(self, total: Total, highest: Total) -> dict[str, float]:
        """Return the figures over all processes, by logged name.

        Args:
            total: Adds up over all processes.
            highest: Takes the highest over all processes.
        """
        tokens, ratio, drift, _, answers, whole, squares, *by_verdict = total(self.sums).tolist()
        largest = highest(self.highest).exp().item()
        figures = {}
        if tokens:
            figures = {
                "policy/ratio": ratio / tokens,
                "policy/ratio_max": largest,
                "policy/drift": drift / tokens,
            }
        if squares:
            figures["policy/sample_share"] = whole**2 / squares / answers
        for name, count, logp in (("valid", *by_verdict[:2]), ("invalid", *by_verdict[2:])):
            if count:
                figures[f"policy/logprob_{name}"] = logp / count
        return figures

    def mismatch(self, total: Total) -> float | None:
        """Return the mean absolute log-ratio of a token over all processes, in nats; None: no token is in play."""
        tokens, _, _, apart, *_ = total(self.sums).tolist()
        return apart / tokens if tokens else None


class Window:
    """Gathers what the next log tells, over every micro-batch since the last one.

    Each figure is a sum over a sum, so how an update is cut into micro-batches changes none of them, and one
    without a token in play counts nothing.
    """

    TOKEN_MEANS = (
        "kl",
        "entropy",
        "clip_ratio/low_mean",
        "clip_ratio/high_mean",
        "clip_ratio/region_mean",
        "cispo_clip_ratio",
        "vespo/phi_seq_mean",
    )
    """TRL's figures that are means over the tokens in play of one micro-batch, on all processes."""
    EXTREMES = ("clip_ratio/low_min", "clip_ratio/high_max")

    def __init__(self) -> None:
        self._policy: PolicyFigures | None = None
        self._sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])

    def note(self, name: str, total: float, count: float) -> None:
        """Add to a mean.

        Args:
            name: The logged name.
            total: Sum of the values, over all processes.
            count: How many they are.
        """
        if count:
            self._sums[name][0] += total
            self._sums[name][1] += count

    def take(self, figures: PolicyFigures, metrics: MutableMapping[str, list[float]], total: Total) -> None:
        """Add a micro-batch, and weigh what TRL has just noted of it by the tokens in play.

        Args:
            figures: The micro-batch's sums.
            metrics: TRL's lists; the newest entry of each is the micro-batch's.
            total: Adds up over all processes.
        """
        self._policy = figures if self._policy is None else self._policy.plus(figures)
        tokens = float(total(figures.sums[:1]).item())
        for name in (*self.TOKEN_MEANS, *self.EXTREMES):
            if metrics.get(name) and (name in self.TOKEN_MEANS or not tokens):
                value = metrics[name].pop()
                self.note(name, value * tokens, tokens)
                if not metrics[name]:
                    del metrics[name]

    def mismatch(self, total: Total) -> float | None:
        """Return how far the policy was from the answers' sampler since the last log; see ``PolicyFigures``."""
        return None if self._policy is None else self._policy.mismatch(total)

    def close(self, metrics: MutableMapping[str, list[float]], total: Total, highest: Total) -> None:
        """Write the figures into TRL's lists and begin anew.

        Args:
            metrics: TRL's lists, a mean of which is logged.
            total: Adds up over all processes.
            highest: Takes the highest over all processes.
        """
        found = {name: value / count for name, (value, count) in self._sums.items()}
        if self._policy is not None:
            found |= self._policy.report(total, highest)
        for name, value in found.items():
            metrics[name] = [value]
        self._policy = None
        self._sums.clear()
