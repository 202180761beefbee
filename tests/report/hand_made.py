"""A small dataset written by hand, so that the report is tested without builders, samplers or scorers.

Three Android episodes with screenshots, one without, one desktop episode with landscape screenshots, four
candidates each. Outcomes are set by hand; the rewards follow from them by the default formula (segments).
"""

from __future__ import annotations

import hashlib
import io
import json
from itertools import pairwise
from pathlib import Path
from statistics import fmean

import pyarrow as pa
from PIL import Image, ImageDraw

from solar_rl.config import DatasetConfig, SourceConfig
from solar_rl.schema import TABLES, arrow_schema
from solar_rl.store.manifest import Manifest, describe_files, write_manifest
from solar_rl.store.parquet import TableWriter

N = 4
EPISODES = {
    # id: (platform, width, height, app, screenshots, labels)
    "alarm": ("android", 360, 780, "Clock", True, "ccsctcf"),
    "contact": ("android", 360, 780, "Contacts", True, "octcf"),
    "settings": ("android", 360, 780, "Settings", True, "csscclwbcscscccf"),
    "bare": ("android", 1080, 2400, "Maps", False, "ocsf"),
    "slides": ("desktop", 1280, 720, "Impress", True, "cdhpkf"),
}
LABELS = {
    "c": {"action_type": "click"},
    "d": {"action_type": "drag", "x2": 0.8, "y2": 0.3},
    "h": {"action_type": "hover"},
    "l": {"action_type": "long_press"},
    "s": {"action_type": "scroll", "direction": "down"},
    "t": {"action_type": "input_text", "text": "Pick up <milk> & “bread” at 7"},
    "o": {"action_type": "open_app", "app_name": "Clock"},
    "p": {"action_type": "press", "button": "back"},
    "k": {"action_type": "press", "keys": ["ctrl", "s"]},
    "w": {"action_type": "wait"},
    "b": {"action_type": "press", "button": "back"},
    "f": {"action_type": "finished", "status": "complete"},
}
FAILURES = {
    # episode: {candidate: steps that are not valid}
    "alarm": {0: (), 1: (5,), 2: (0, 4), 3: (1, 2, 3)},
    "contact": {0: (), 1: (), 2: (), 3: ()},
    "settings": {0: (14,), 1: (2, 9), 2: (0,), 3: (5, 6, 7, 8)},
    "bare": {0: (0, 1, 2, 3), 1: (0, 2), 2: (0, 1), 3: (0,)},
    "slides": {0: (), 1: (1,), 2: (2, 4), 3: (0,)},
}
UNSCORED = {("settings", 3)}


def screenshot(name: str, step: int, width: int, height: int) -> bytes:
    """Draw a plain screen: a coloured bar, some rows and a button."""
    tint = hashlib.sha256(f"{name}{step}".encode()).digest()
    image = Image.new("RGB", (width, height), (244, 245, 248))
    draw = ImageDraw.Draw(image)
    draw.rectangle((0, 0, width, height // 12), fill=(tint[0] // 2 + 60, tint[1] // 2 + 60, 160))
    draw.text((14, height // 36), f"{name}: screen {step}", fill="white", font_size=height // 36)
    for row in range(6):
        y = height * (row + 2) // 10
        draw.rounded_rectangle(
            (14, y, width - 14, y + height // 14), 8, fill="white", outline=(205, 208, 218)
        )
        draw.text(
            (28, y + height // 50), f"Row {row + 1} of this list", fill=(50, 52, 60), font_size=height // 45
        )
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


def label(letter: str, step: int) -> dict[str, object]:
    """Return the flat label of a step; points walk down the screen."""
    action = dict(LABELS[letter])
    if action["action_type"] in ("click", "drag", "hover", "long_press"):
        action |= {"x": 0.3 + 0.07 * (step % 5), "y": 0.24 + 0.1 * (step % 6)}
    return action


def prediction(action: dict[str, object], candidate: int, valid: bool) -> dict[str, object] | None:
    """Return the flat answer of a candidate: a near copy, or a mistake that depends on its index."""
    answer = dict(action)
    if "x" in answer:
        shift = 0.01 * (candidate + 1) if valid else 0.14 + 0.05 * candidate
        answer |= {"x": answer["x"] + shift, "y": answer["y"] + (0.004 if valid else -0.09)}
    if valid:
        return answer
    if candidate == 3:
        return None
    if action["action_type"] == "scroll":
        return answer | {"direction": "up"}
    if action["action_type"] == "input_text":
        return answer | {"text": "milk"}
    return answer if "x" in answer else {"action_type": "click", "x": 0.9, "y": 0.06}


def shaped(scores: list[float | None], valid: list[bool | None], n_ref: int) -> tuple[list[dict], dict]:
    """Shape one trajectory by ``segments``: method.md, section 3, in plain Python."""
    bad = [t for t, v in enumerate(valid) if v is False]
    first, rows, target = bad[0] if bad else None, [], 0.0
    edges = [-1, *bad] if bad and bad[-1] == len(valid) - 1 else [-1, *bad, len(valid) - 1]
    for g, (last, end) in enumerate(pairwise(edges)):
        steps = range(last + 1, end + 1)
        kept = [scores[t] for t in steps if scores[t] is not None]
        good = [scores[t] for t in steps if valid[t]]
        k = sum(valid[t] is not False for t in steps)
        r = 0.3 * (fmean(kept) if kept else 0) + 0.3 * min(1, k / n_ref) + 0.4 * (not bad)
        for t in steps:
            base = None if valid[t] is None else scores[t] if valid[t] else scores[t] - 1
            gap = r - fmean(good) if valid[t] else None if valid[t] is None else 0.0
            target += 0 if base is None else r if valid[t] else base
            rows.append(
                {"position": "breakdown" if valid[t] is False else "prefix", "segment_index": g}
                | {"base_reward": base, "gap_share": gap, "reward": None if base is None else base + gap}
            )
    kept = [s for s in scores[: n_ref if first is None else first + 1] if s is not None]
    k = n_ref if first is None else first
    r = 0.3 * fmean(kept) + 0.3 * k / n_ref + 0.4 * (not bad) if kept else None
    total = sum(row["reward"] for row in rows if row["reward"] is not None)
    return rows, {
        "ref_len": n_ref,
        "first_failure_step": first,
        "valid_prefix_len": k,
        "success": not bad,
        "mean_raw_score": fmean(kept) if kept else None,
        "trajectory_reward": r,
        "target_reward": target if kept else None,
        "reward_sum": total,
        "alignment": "aligned" if any(v for v in valid) else "no_prefix",
    }


def box_of(action: dict) -> list[float] | None:
    return (
        [action["x"] - 0.2, action["y"] - 0.03, action["x"] + 0.2, action["y"] + 0.03]
        if "x" in action
        else None
    )


def build(folder: Path, only: tuple[str, ...] = tuple(EPISODES), *, judged: bool = True) -> Path:
    """Write the tables and the manifest of the episodes named; not judged = every label is broken."""
    rows: dict[str, list[dict]] = {name: [] for name in TABLES}
    for name in sorted(only):
        platform, width, height, app, shots, letters = EPISODES[name]
        rows["episodes"].append(
            {"episode_id": name, "source": "hand", "platform": platform, "app": app, "split": "train"}
            | {
                "goal": f"Do the <{name}> task & finish it",
                "ref_len": len(letters),
                "subsplits": [],
                "goal_words": [],
            }
        )
        actions = [label(letter, step) for step, letter in enumerate(letters)]
        for step, action in enumerate(actions):
            data = screenshot(name, step, width, height) if shots else None
            sha = hashlib.sha256(data).hexdigest() if data else None
            if data:
                rows["images"].append(
                    {"sha256": sha, "image": {"bytes": data, "path": None}, "width": width, "height": height}
                )
            box = box_of(action)
            rows["steps"].append(
                {"episode_id": name, "step_index": step, "image_sha256": sha, "screen_width": width}
                | {"screen_height": height, "target_box": box, "screen_size": "stated", "app": app}
                | {"candidate_boxes": [box, [0.05, 0.1, 0.95, 0.9]] if box else [], **action}
                | {"alternatives": []}
            )
        for candidate, bad in FAILURES[name].items():
            valid = [
                None if not judged or (name, t) in UNSCORED else t not in bad for t in range(len(letters))
            ]
            scores = [None if v is None else 0.97 - 0.02 * candidate if v else 0.1 for v in valid]
            shaped_rows, trajectory = shaped(scores, valid, len(letters))
            first = trajectory["first_failure_step"]
            why = None if first is None else "far_from_target" if candidate < 3 else "unparsable"
            rows["trajectories"].append(
                {"episode_id": name, "candidate_index": candidate, **trajectory, "failure_reason": why}
                | {"failure_action_type": None if first is None else actions[first]["action_type"]}
                | {"failure_app": None if first is None else app}
            )
            for t, action in enumerate(actions):
                key = {"episode_id": name, "step_index": t, "candidate_index": candidate}
                answer = prediction(action, candidate, valid[t] is not False)
                rows["candidates"].append(
                    {
                        **key,
                        "completion": json.dumps(answer),
                        "sampler_id": "hand",
                        "seed": 0,
                        "history_dropped": 0,
                    }
                    | {"parse_error": "no JSON in it" if answer is None else None}
                    | {f"pred_{k}": v for k, v in (answer or {}).items()}
                )
                rows["rewards"].append(
                    {**key, "app": app, "action_type": action["action_type"], "raw_score": scores[t]}
                    | {"valid": valid[t], "unscored_reason": "off_screen" if valid[t] is None else None}
                    | {"rule": "hand", "failure_reason": why if valid[t] is False else None}
                    | {"pred_action_type": (answer or {}).get("action_type"), **shaped_rows[t]}
                )
    for row in rows["rewards"]:
        group = [r["reward"] for r in rows["rewards"] if _step(r) == _step(row) and r["reward"] is not None]
        row["advantage"] = None if row["reward"] is None else row["reward"] - fmean(group)
    for table, data in rows.items():
        _write(folder, table, data)
    write_manifest(folder, manifest(folder))
    return folder


def _step(row: dict) -> tuple[str, int]:
    return row["episode_id"], row["step_index"]


def _write(folder: Path, table: str, data: list[dict]) -> None:
    data = sorted(data, key=lambda row: tuple(row[k] for k in TABLES[table].key))
    with TableWriter(folder, table, "train") as writer:
        writer.write(pa.Table.from_pylist(data, schema=arrow_schema(table)))


def manifest(folder: Path) -> Manifest:
    config = DatasetConfig(
        name="hand-made", source=SourceConfig(builder="hand"), description="Written by hand."
    )
    return Manifest(
        name=config.name,
        version=config.version,
        build_id="0123456789abcdef",
        config=config.model_dump(mode="json"),
        code={"solar-rl": "0"},
        counts={"episodes": len(EPISODES)},
        rejects={"bad_image": 1},
        files=tuple(describe_files(folder)),
    )
