"""Runs that nobody ran: what result.json of an arm and seed would say."""

from solar_rl.lab import Plan, load_plan
from solar_rl.lab.folder import Folder, write_json
from solar_rl.lab.running import START

BUCKETS = ("short (1-5)", "long (6-14)", "super long (> 14)")


def steps(accuracy: float) -> dict:
    return {
        "step_accuracy": accuracy,
        "type_match": accuracy,
        "goal_progress": accuracy / 2,
        "task_sr": 0.0,
        "return": accuracy / 3,
        "by_bucket": {name: {"step_accuracy": accuracy, "goal_progress": accuracy / 2} for name in BUCKETS},
        "press_back": {"predicted": 4, "right": 3, "recorded": 5},
    }


def episodes(progress: float, count: int = 4) -> list[dict]:
    return [
        {
            "task": task,
            "seed": seed,
            "success": progress > 0.9,
            "progress": min(1.0, progress + 0.01 * seed),
            "steps": 8,
            "invalid": 0,
            "ended": "finished",
            "ref_len": 5,
            "wrong": 4,
            "recovered": 1,
            "repeated": 2,
            "safe": 1,
        }
        for task in ("short", "long", "super_long")
        for seed in range(count)
    ]


def run(arm: str, seed: int, curve: list[float], progress: float) -> dict:
    return {
        "arm": arm,
        "seed": seed,
        "updates": 10 * len(curve),
        "learned": True,
        "seconds_training": 1.0,
        "seconds": 2.0,
        "curve": [{"updates": 10 * (k + 1), **steps(value)} for k, value in enumerate(curve)],
        "unseen": {"unseen_apps": steps(0.3), "unseen_templates": steps(0.4)},
        "closed_loop": episodes(progress),
    }


def finished_lab(root, progress: dict[str, float]) -> tuple[Plan, Folder]:
    """Write results of made-up runs: each arm with the progress that is given, two seeds."""
    plan = load_plan("quick", {"seeds": "[0, 1]", "arms": str(list(progress))})
    folder = Folder(root)
    start = {"steps": steps(0.5), "closed_loop": episodes(0.2)}
    folder.write(START, start | {"unseen": {"unseen_apps": steps(0.2), "unseen_templates": steps(0.3)}})
    folder.write("start.json", {"chosen": {"updates": 30, "step_accuracy": 0.5}, "tried": []})
    for arm, value in progress.items():
        for seed in plan.seeds:
            write_json(folder.result(arm, seed), run(arm, seed, [0.6, 0.55 + 0.01 * seed], value))
    return plan, folder
