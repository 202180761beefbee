"""Watch a run: name what goes wrong with its cause and a remedy, and stop a run that has collapsed.

Everything is judged from the figures that are logged, the same on every process and after a resume.
Thresholds are ours; each can be set (``health_limits``).
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any, Literal

from transformers import TrainerCallback

from solar_rl.errors import ConfigError

COLLAPSE = "collapse.json"
"""File in output_dir that says why a run was stopped, and which checkpoint was the last good one."""
OnCollapse = Literal["stop", "warn", "off"]
_START = 5
"""A figure's start is the mean of its first so many logs. Ours."""
Values = Sequence[float]
"""A figure's logged values, oldest first."""


@dataclass(frozen=True)
class Rule:
    """One thing that can be wrong.

    Args:
        name: Its name.
        figure: The logged figure it looks at.
        limit: The threshold, in the sense of ``breaks``.
        breaks: Tells from start, latest value and limit whether the latest is beyond the limit.
        cause: What such a figure means.
        remedy: What to do.
        stops: Whether it is a collapse.
    """

    name: str
    figure: str
    limit: float
    breaks: Callable[[float, float, float], bool]
    cause: str
    remedy: str
    stops: bool = False


@dataclass(frozen=True)
class Finding:
    """A rule that is broken, and by which value."""

    rule: str
    figure: str
    value: float | None
    limit: float
    cause: str
    remedy: str
    stops: bool

    def __str__(self) -> str:
        shown = "not a number" if self.value is None else f"{self.value:.4g}"
        return f"{self.rule}: {self.figure} is {shown} (limit {self.limit:g}): {self.cause}; {self.remedy}"


def _above(start: float, value: float, limit: float) -> bool:
    return value > limit


def _below(start: float, value: float, limit: float) -> bool:
    return value < limit


def _near_zero(start: float, value: float, limit: float) -> bool:
    return value < min(limit, 0.1 * start)


def _grown(start: float, value: float, limit: float) -> bool:
    return value > max(limit * start, start + 1.0)


def _fallen(start: float, value: float, limit: float) -> bool:
    return value < start - limit


def _lost(start: float, value: float, limit: float) -> bool:
    return value < limit * start


_LOWER = "lower learning_rate, raise beta or expert_anchor, and go on from the last good checkpoint"
_NEW_ROUND = "sample a new round with the newest checkpoint, or use off_policy: decoupled"
RULES = (
    Rule(
        "entropy_collapse", "entropy", 0.02, _near_zero,
        "the policy has become certain and no longer explores",
        f"{_LOWER}, or set entropy_coef", stops=True,
    ),
    Rule(
        "entropy_explosion", "entropy", 3.0, _grown,
        "the policy drifts towards noise, as it does when punished answers outweigh rewarded ones",
        _LOWER, stops=True,
    ),
    Rule(
        "far_from_reference", "kl", 10.0, _above,
        "the policy has left its reference", _LOWER, stops=True,
    ),
    Rule(
        "valid_answers_fade", "policy/logprob_valid", 3.0, _fallen,
        "valid answers are becoming less likely, and so does everything that was sampled",
        _LOWER, stops=True,
    ),
    Rule(
        "clipped", "clip_ratio/region_mean", 0.5, _above,
        "most tokens are clipped and teach nothing: the policy is far from the one that sampled",
        _NEW_ROUND,
    ),
    Rule(
        "stale_answers", "policy/sample_share", 0.1, _below,
        "a few answers carry all the weight: the policy would no longer sample the others",
        _NEW_ROUND,
    ),
    Rule(
        "large_gradient", "grad_norm", 100.0, _above,
        "updates are cut by max_grad_norm in most steps",
        "lower learning_rate; look for very long or rare answers",
    ),
    Rule(
        "unparsable_answers", "data/unparsable", 0.3, _above,
        "many answers are no action",
        "check prompt.format against the model's family and max_new_tokens, or train stage 1 first",
    ),
    Rule(
        "groups_without_spread", "data/groups_without_spread", 0.6, _above,
        "most steps are too easy or too hard to compare anything",
        "raise n, sample adaptively, or set expert_anchor so that such steps teach too",
    ),
    Rule(
        "early_breakdown", "data/prefix_length", 1.0, _below,
        "most trajectories break at their first step",
        "train stage 1 first, or use credit: step_local, which needs no prefix",
    ),
)  # fmt: skip
"""What is looked at in every run."""
FRESH_RULES = (
    Rule(
        "validity_falls", "data/valid", 0.5, _lost,
        "the policy answers right far less often than at the start", _LOWER, stops=True,
    ),
    Rule(
        "format_lost", "data/unparsable", 0.6, _above,
        "most of what the policy now answers is no action", _LOWER, stops=True,
    ),
)  # fmt: skip
"""What is looked at beside these where the policy samples during training."""
SCORED_ELSEWHERE = 0.1
"""Mean absolute log-ratio of a token, in nats, from which on another policy must have scored the answers. Ours: twice
what bf16 was seen to do, and what two untrained policies of different seeds differ by."""
NUMBERS = ("loss", "grad_norm", "entropy")
"""Figures that must be finite."""


def with_limits(rules: Sequence[Rule], limits: str) -> tuple[Rule, ...]:
    """Set thresholds.

    Args:
        rules: The rules.
        limits: ``NAME=VALUE`` with commas between, such as ``clipped=0.3,far_from_reference=5``.

    Raises:
        ConfigError: No such rule, or no number.

    >>> [rule.limit for rule in with_limits(RULES, "clipped=0.3") if rule.name == "clipped"]
    [0.3]
    """
    given = dict(pair.split("=", 1) for pair in limits.split(",") if "=" in pair)
    names = [rule.name for rule in rules]
    for pair in filter(None, limits.split(",")):
        name, _, value = pair.partition("=")
        if name not in names or not _is_number(value):
            raise ConfigError(
                f"health_limits has '{pair}', expected NAME=NUMBER", hint=f"names: {', '.join(names)}"
            )
    return tuple(replace(rule, limit=float(given.get(rule.name, rule.limit))) for rule in rules)


def diagnose(history: Sequence[Mapping[str, Any]], rules: Sequence[Rule], patience: int) -> list[Finding]:
    """Say what is wrong.

    Args:
        history: The log so far, an entry a logged step.
        rules: What is looked at.
        patience: A rule is broken once so many logs in a row are beyond its limit; a figure that is not
            a number is wrong at once.
    """
    logs = [entry for entry in history if "loss" in entry]
    found = [_not_finite(name) for name in NUMBERS if logs and _is_broken_number(logs[-1], name)]
    for rule in rules:
        values = [float(entry[rule.figure]) for entry in logs if _is_finite(entry.get(rule.figure))]
        start = sum(values[:_START]) / max(1, len(values[:_START]))
        last = values[-patience:]
        if len(last) == patience and all(rule.breaks(start, value, rule.limit) for value in last):
            finding = Finding(
                rule.name, rule.figure, median(last), rule.limit, rule.cause, rule.remedy, rule.stops
            )
            found.append(finding)
    return found


def _not_finite(figure: str) -> Finding:
    cause = "an update overflowed"
    return Finding("not_finite", figure, None, math.inf, cause, f"{_LOWER}; prefer bf16 to fp16", True)


def _scored_elsewhere(apart: float) -> Finding:
    return Finding(
        "scored_elsewhere", "mean |log-ratio| of a token at the first update", apart, SCORED_ELSEWHERE,
        "another policy than this one scored the answers, and off_policy: behaviour takes it for the same",
        "start from the policy that sampled, sample a new round with this one, or use off_policy: decoupled", False,
    )  # fmt: skip


def _is_broken_number(entry: Mapping[str, Any], name: str) -> bool:
    return name in entry and not _is_finite(entry[name])


def _is_finite(value: Any) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


class HealthCallback(TrainerCallback):  # type: ignore[misc]
    """Warns, stops a collapsed run, and keeps the last good checkpoint from being rotated away.

    Args:
        rules: What is looked at.
        on_collapse: stop the run, warn only, or look at nothing.
        patience: Logs in a row that must be beyond a limit.
        mismatch: Returns the first update's mean absolute log-ratio of a token, where that should be 0; None: it
            needn't be.
    """

    def __init__(
        self,
        rules: Sequence[Rule],
        on_collapse: OnCollapse = "stop",
        patience: int = 5,
        mismatch: Callable[[], float | None] | None = None,
    ) -> None:
        self.rules, self.on_collapse, self.patience = rules, on_collapse, patience
        self.mismatch = mismatch
        self.found: list[dict[str, Any]] = []
        self.collapsed: Finding | None = None
        self.last_good: str | None = None
        self._active: set[tuple[str, str]] = set()

    def on_log(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Judge the figures that have just been logged."""
        if self.on_collapse == "off" or self.collapsed:
            return
        findings = diagnose(state.log_history, self.rules, self.patience)
        for finding in findings:
            if (finding.rule, finding.figure) not in self._active:
                self._tell(finding, state)
        self._active = {(finding.rule, finding.figure) for finding in findings}
        collapsed = next((finding for finding in findings if finding.stops), None)
        if collapsed and self.on_collapse == "stop":
            self.collapsed = collapsed
            control.should_training_stop = True
            if state.is_world_process_zero:
                self._mark(args, state, collapsed)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Look at the first update, of which the policy is still the one that training starts from."""
        if self.mismatch is None or self.on_collapse == "off" or state.global_step != 1:
            return
        apart = self.mismatch()
        if apart is not None and apart > SCORED_ELSEWHERE:
            self._tell(_scored_elsewhere(apart), state)

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Remember a checkpoint as good unless a collapse has begun."""
        doubtful = [f for f in diagnose(state.log_history, self.rules, 1) if f.stops]
        if not doubtful and not self.collapsed:
            self.last_good = str(Path(args.output_dir, f"checkpoint-{state.global_step}"))
            if not args.load_best_model_at_end:  # transformers never rotates this one away
                state.best_model_checkpoint = self.last_good

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Take over the last good checkpoint of the run that goes on; what stopped it before is past."""
        self.last_good = state.best_model_checkpoint
        if state.is_world_process_zero:
            Path(args.output_dir, COLLAPSE).unlink(missing_ok=True)

    def _tell(self, finding: Finding, state: Any) -> None:
        self.found.append({"step": state.global_step, **asdict(finding)})
        if state.is_world_process_zero:
            print(f"warning at step {state.global_step}: {finding}", file=sys.stderr, flush=True)

    def _mark(self, args: Any, state: Any, finding: Finding) -> None:
        marker = {"step": state.global_step, **asdict(finding), "last_good_checkpoint": self.last_good}
        path = Path(args.output_dir, COLLAPSE)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(marker, indent=2) + "\n", encoding="utf-8")
