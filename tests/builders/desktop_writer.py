"""Make OpenCUA's and ScreenAgent's files, in the shapes that the real ones have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from android_control_writer import png


def agentnet(*codes: str, task_id: str = "t1", **more: Any) -> dict[str, Any]:
    """One trajectory of AgentNet; step i has screenshot i.png."""
    traj = [
        {
            "index": i,
            "image": f"{i}.png",
            "value": {
                "code": code,
                "observation": "a desktop",
                "thought": f"thought {i}",
                "action": f"do {i}",
                "last_step_correct": True,
                "last_step_redundant": False,
                "reflection": "fine",
            },
        }
        for i, code in enumerate(codes)
    ]
    return {"task_id": task_id, "instruction": "sort the table", "task_completed": True, "traj": traj, **more}


def right(kind: str, *boxes: tuple[float, float, float, float], **params: Any) -> dict[str, Any]:
    """One right action of AgentNetBench; boxes are left, top, width, height."""
    rows = [{"category_id": 1, "rel_bbox": list(box), "abs_bbox": [0, 0, 1, 1], "area": 1.0} for box in boxes]
    return {"type": kind, "params": params, "metadata": {"bboxes": rows} if rows else {}}


def at(x: float, y: float) -> dict[str, float]:
    return {"x": x, "y": y}


def bench(*steps: dict[str, Any], **more: Any) -> dict[str, Any]:
    """One task of AgentNetBench, its numbers beginning at 2 with a gap after each step."""
    rows = [
        {
            "step_num": 2 + 2 * i,
            "image": f"{i}.png",
            "action": "unused",
            "milestone": False,
            "inner_monologue": {
                "observation": "o",
                "thought": f"thought {i}",
                "low_level_instruction": f"do {i}",
            },
            "alternative_options": [],
            **step,
        }
        for i, step in enumerate(steps)
    ]
    return {
        "task_id": "b1",
        "user_task_description": "export the slides",
        "high_level_task_description": "Open it, then export.",
        "steps": rows,
        **more,
    }


def write_opencua(folder: Path, *rows: dict[str, Any] | bytes, screens: int = 8) -> Path:
    """Write trajectories as lines, tasks as files, and screenshots of 108x240 beside them."""
    images = folder / "images"
    images.mkdir(parents=True, exist_ok=True)
    for i in range(screens):
        (images / f"{i}.png").write_bytes(png(i))
    lines = [row for row in rows if isinstance(row, bytes) or "traj" in row]
    if lines:
        data = [row if isinstance(row, bytes) else json.dumps(row).encode() for row in lines]
        (folder / "agentnet.jsonl").write_bytes(b"\n".join(data) + b"\n")
    for row in rows:
        if not isinstance(row, bytes) and "traj" not in row:
            (folder / f"{row['task_id']}.json").write_text(json.dumps(row))
    return folder


def mouse(kind: str, position: tuple[float, float] | None = None, button: str | None = "left", **more: Any):
    where = {"mouse_position": {"width": position[0], "height": position[1]}} if position else {}
    return {"action_type": "MouseAction", "mouse_action_type": kind, "mouse_button": button, **where, **more}


def keyboard(kind: str | None, **what: Any) -> dict[str, Any]:
    return {"action_type": "KeyboardAction", **({"keyboard_action_type": kind} if kind else {}), **what}


PLAN = {"action_type": "PlanAction", "element": "Open it"}
GOOD = {"action_type": "EvaluateSubTaskAction", "situation": "sub_task_success"}


def write_session(folder: Path, *turns: list[dict[str, Any]], **more: Any) -> Path:
    """Write a session of ScreenAgent: turn i is a file and a screenshot of 108x240."""
    (folder / "images").mkdir(parents=True, exist_ok=True)
    for i, actions in enumerate(turns):
        stamp = f"2023-12-25_15-39-{i:02d}-000000"
        (folder / "images" / f"{stamp}.jpg").write_bytes(png(i))
        row = {
            "task_prompt": "打开它",
            "task_prompt_en": "Open it",
            "task_prompt_zh": "打开它",
            "video_width": 108,
            "video_height": 240,
            "saved_image_name": f"{stamp}.jpg",
            "session_id": folder.name,
            "LLM_response_editer": "原因```json\n[]\n```",
            "LLM_response_editer_en": "The reason.```json\n[]\n```It opens.",
            "actions": actions,
            **more,
        }
        (folder / f"{stamp}_translate.json").write_text(json.dumps(row, ensure_ascii=False))
    return folder
