"""Let the expert play an episode and keep every screen that it acted on."""

from __future__ import annotations

from solar_rl.schema import Episode, Reject, Step

from .env import MiniWobEnv, expert_action
from .experts import Lost

LICENSE = "mit"


def record(
    env: MiniWobEnv, task: str, seed: int, split: str, subsplits: tuple[str, ...], *, thoughts: bool = False
) -> Episode | Reject:
    """Record one demonstration; one that doesn't earn the page's full reward is a Reject.

    Args:
        env: Where.
        task: A task that has an expert.
        seed: The episode's seed.
        split: The split that the seed belongs to.
        subsplits: Finer splits, such as task_unseen.
        thoughts: Whether each step has one.
    """
    episode_id = f"miniwob-{task}-{seed:06d}"
    seen = env.reset(task, seed)
    steps: list[Step] = []
    try:
        while not env.done:
            shown = expert_action(env)
            steps.append(
                Step(
                    len(steps),
                    shown.action,
                    seen.width,
                    seen.height,
                    shown.instruction,
                    seen.screenshot,
                    seen.screen_text,
                    target_box=shown.target_box,
                    candidate_boxes=shown.candidate_boxes,
                    box_rule="dom" if shown.target_box else None,
                    thought=shown.action.spoken(shown.name) if thoughts else None,
                )
            )
            seen = env.act(shown.action)
    except Lost as lost:
        return _failed(task, seed, episode_id, f"after {len(steps)} steps: {lost}")
    if not env.success:
        end = "the page gave no full reward" if env.steps < env.max_steps else "no steps were left"
        return _failed(task, seed, episode_id, f"after {len(steps)} steps: {end}")
    return Episode(
        episode_id,
        "miniwob",
        "web",
        seen.goal,
        tuple(steps),
        split,
        app=task,
        license=LICENSE,
        category=task,
        subsplits=subsplits,
        recorded_success=True,
    )


def _failed(task: str, seed: int, episode_id: str, message: str) -> Reject:
    return Reject(task, f"seed {seed}", "expert_failed", message, episode_id)
