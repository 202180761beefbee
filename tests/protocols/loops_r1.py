"""The rules of GUI-R1 and UI-R1 in plain Python, and the list of all loops: see loops.py."""

from __future__ import annotations

import math
import re

import loops
from loops import POINTED, TEXTS, drop, screen

from solar_rl.formats.resize import smart_resize

NO_TEXT = "no input text"
TYPED = ("input_text", "open_app", "scroll")


def token_f1(predicted, label):
    a, b = (set(text.replace("[", "").replace("]", "").lower().split()) for text in (predicted, label))
    if len(a) == len(b) == 1:
        (one,), (other,) = a, b
        if one in other or other in one:
            return 1.0
    common = len(a & b)
    if not common:
        return 0.0
    precision, recall = common / len(a), common / len(b)
    return 2 * (precision * recall) / (precision + recall)


def input_text(row, who):
    kind = row[f"{who}_type"]
    text = row[f"{who}_direction"] if kind == "scroll" else row[f"{who}_text"] if kind in TEXTS else None
    return NO_TEXT if text is None else text


def read_back(text):
    found = re.search(r"'input_text':\s*'(.*?)'", str([{"input_text": text}]))
    return found.group(1) if found else NO_TEXT


def not_theirs(row):
    return row["expert_type"] in ("navigate_recent", "keyboard_enter", "status", "other")


def guir1_eval(row):
    if not_theirs(row):
        return drop("not in the GUI-R1 action space")
    same = int(row["pred_type"] == row["expert_type"])
    if row["expert_type"] in POINTED:
        point = (row["pred_x"], row["pred_y"])
        if row["pred_type"] not in POINTED or None in point or not row["pred_whole"] or min(point) < 0:
            point = (0, 0)
        dx, dy = (
            (row["expert_x"] - int(point[0])) / row["screen_w"],
            (row["expert_y"] - int(point[1])) / row["screen_h"],
        )
        exact = dx * dx + dy * dy < 0.14**2
    elif row["expert_type"] in TYPED:
        exact = token_f1(read_back(input_text(row, "pred")), input_text(row, "expert")) >= 0.5
    else:
        return {"type_match": same, "exact_match": None}
    return {"type_match": same, "exact_match": int(exact), "exact_and_type": int(exact and same)}


def guir1_reward(row):
    if not_theirs(row):
        return drop("not in the GUI-R1 action space")
    kind = row["pred_type"]
    if kind is None:
        return {"type_match": 0, "exact_match": 0, "reward": 0.0, "format": 0.0}
    width, height = screen(row)
    scale = min(1.0, math.sqrt(1_258_291 / (width * height)))
    seen = (int(width * scale), int(height * scale))
    point = [
        int(value * (side / full))
        for value, side, full in ((row["pred_x"], seen[0], width), (row["pred_y"], seen[1], height))
        if value is not None and kind in POINTED
    ] or [-100, -100]
    written = input_text(row, "pred")
    well_formed = len(point) == 2
    if kind in TEXTS:
        well_formed = written != NO_TEXT
    if kind == "scroll":
        well_formed = written in ("up", "down", "left", "right")
    same = kind == row["expert_type"]
    exact = same
    if same and kind == "click":
        exact = frame_hit(row, point if len(point) == 2 and min(point) >= 0 else [0, 0], seen)
    elif same and kind in ("input_text", "scroll"):
        exact = token_f1(read_back(written), input_text(row, "expert")) >= 0.5
    return {
        "type_match": int(same),
        "exact_match": int(exact),
        "reward": 0.8 * exact + 0.2 * well_formed,
        "format": float(well_formed),
    }


def frame_hit(row, point, seen):
    (width, height), (x, y) = screen(row), point
    if row["single_box"] is not None:
        x1, y1, x2, y2 = row["single_box"]
        across = x1 * seen[0] / width < x < x2 * seen[0] / width
        return across and y1 * seen[1] / height < y < y2 * seen[1] / height
    dx, dy = x - row["expert_x"] * seen[0] / width, y - row["expert_y"] * seen[1] / height
    return dx * dx + dy * dy < 140**2


def uir1_reward(row):
    kind = row["expert_type"]
    if kind not in ("click", "open_app", "scroll", "navigate_back", "input_text"):
        return drop("not in the UI-R1 action space / ac_test.json")
    if kind == "click" and row["single_box"] is None:
        return drop("click without a box")
    same = row["pred_type"] == kind
    exact = same
    if same and kind == "click":
        (width, height), (x, y) = screen(row), (row["pred_x"], row["pred_y"])
        seen = smart_resize(int(width), int(height))
        box = [0, 0, 0, 0] if min(row["single_box"]) < 0 else row["single_box"]
        point = (
            (-1, -1) if x is None or y is None else (int(x * (seen[0] / width)), int(y * (seen[1] / height)))
        )
        px = py = 0
        if min(point) >= 0:
            px, py = int(point[0] * (width / seen[0])), int(point[1] * (height / seen[1]))
        exact = box[0] <= px <= box[2] and box[1] <= py <= box[3]
    well_formed = float(row["pred_type"] is not None)
    reward = same + exact + well_formed
    return {"type_match": int(same), "exact_match": int(exact), "reward": reward, "format": well_formed}


LOOPS = {
    function.__name__: function
    for function in (
        loops.uis1_eval,
        loops.uis1_eval_asshipped,
        loops.agentcpm_eval_ac004,
        loops.agentcpm_eval_014,
        loops.osatlas_ac,
        loops.gui_odyssey_official,
        guir1_eval,
        loops.infigui_eval,
        loops.uis1_train,
        loops.agentcpm_rft,
        guir1_reward,
        uir1_reward,
    )
}
"""The loop of each peer's protocol."""
