"""Sum a dataset up: one sentence, the settings behind the numbers, and a dozen figures as cards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from solar_rl.report.words import decimal, integer, percent, plain, tiny

if TYPE_CHECKING:
    from solar_rl.store.manifest import Manifest

Figures = Mapping[str, float | int | None]


class Card(NamedTuple):
    """One headline figure: its name, the figure, a line of context, and its colour."""

    name: str
    value: str
    more: str
    tone: str = ""


def summary(figures: Figures) -> str:
    """Say in two sentences what the dataset holds and how the policy did."""
    made = (
        f"{_count(figures, 'episodes')} expert episodes with {_count(figures, 'steps')} steps; "
        f"{_count(figures, 'candidates')} sampled answers, strung into {_count(figures, 'trajectories')} trajectories."
    )
    if figures["validity"] is None:
        return f"{made} No answer could be scored."
    did = (
        f"{percent(figures['validity'])} of the answers are valid, {percent(figures['success_rate'])} of the "
        f"trajectories reach the end, and on average they hold for {percent(figures['goal_progress'])} of the way."
    )
    return f"{made} {did}"


def cards(figures: Figures, manifest: Manifest) -> list[Card]:
    """Return the headline figures in the order of the pipeline."""
    steps, episodes = figures["steps"] or 0, figures["episodes"] or 0
    rejected = sum(manifest.rejects.values())
    reasons = ", ".join(f"{plain(name)} {integer(n)}" for name, n in manifest.rejects.items())
    kept = None if figures["groups_dropped_share"] is None else 1 - figures["groups_dropped_share"]
    each = f"{decimal(steps / episodes, 1)} steps each" if episodes else "none"
    return [
        Card("Episodes", _count(figures, "episodes"), f"{integer(steps)} steps, {each}"),
        Card("Screenshots", _count(figures, "screenshots"), "distinct, stored once"),
        Card("Answers", _count(figures, "candidates"), f"{percent(figures['scored_share'])} of them scored"),
        Card(
            "Valid answers",
            percent(figures["validity"]),
            f"mean raw score {decimal(figures['mean_score'])}",
            "valid",
        ),
        Card("Unparsable answers", percent(figures["parse_error_rate"]), "score 0, never dropped", "invalid"),
        Card(
            "Success",
            percent(figures["success_rate"]),
            f"of {_count(figures, 'trajectories')} trajectories",
            "valid",
        ),
        Card("Goal progress", percent(figures["goal_progress"]), "valid prefix / length"),
        Card("Mean R_traj", decimal(figures["mean_trajectory_reward"]), "score, progress, success"),
        Card("Groups with spread", percent(kept), f"of {_count(figures, 'groups')} groups"),
        Card("After t*", percent(figures["after_first_failure_share"]), "of the answers; truncation’s loss"),
        Card("max |sum − target|", tiny(figures["largest_sum_error"]), "over aligned trajectories"),
        Card("Rejected records", integer(rejected), reasons or "nothing was left out"),
    ]


def facts(manifest: Manifest) -> list[tuple[str, str]]:
    """Say the settings that shape the numbers: who sampled, what counts as valid, how rewards are aligned."""
    config = manifest.config
    source, prompt, sampler, validity, shaping, advantage = (
        config.get(key, {}) for key in ("source", "prompt", "sampler", "validity", "shaping", "advantage")
    )
    policy = sampler.get("model") or sampler.get("policy")
    found = [
        ("source", source.get("builder")),
        ("sampler", _joined(sampler.get("type"), policy, _named("N", sampler.get("n")))),
        ("prompt", _joined(prompt.get("format"), prompt.get("level"), prompt.get("observation"))),
        ("validity", _joined(validity.get("preset"), _named("s₀", validity.get("click_sigma")))),
        ("shaping", _joined(*_shaping(shaping))),
        ("advantage", "divided by std" if advantage.get("scale") == "std" else "minus the group’s mean"),
        ("seed", config.get("seed")),
        ("build", manifest.build_id),
    ]
    return [(name, str(value)) for name, value in found if value not in (None, "")]


def _shaping(shaping: Mapping[str, Any]) -> tuple[str | None, ...]:
    alignment, normalisation = shaping.get("alignment"), shaping.get("normalisation", "none")
    suffix = None if alignment == "segments" else _named("suffix", shaping.get("suffix"))
    return alignment, suffix, None if normalisation == "none" else normalisation


def _named(name: str, value: Any) -> str | None:
    return None if value is None else f"{name} = {value}"


def _joined(*parts: Any) -> str:
    return ", ".join(str(part) for part in parts if part not in (None, ""))


def _count(figures: Figures, name: str) -> str:
    return integer(figures[name] or 0)
