"""The peers' rules once more in plain Python, one neutral row at a time: what the columns must equal.

Written for reading: each function takes a row of ``solar_rl.protocols.NEUTRAL`` and returns its verdict. The
benchmark times these loops against the columns.
"""

from __future__ import annotations

import math
import re
from difflib import SequenceMatcher

from rapidfuzz.distance import Levenshtein

from solar_rl.formats.resize import smart_resize

FLIP = {"up": "down", "down": "up", "left": "right", "right": "left"}
POINTED = ("click", "long_press")
TEXTS = ("input_text", "open_app")
BUTTONS = ("navigate_back", "navigate_home", "navigate_recent", "keyboard_enter")


class Raised(Exception):
    """The peer's code raises; the text is the name of the error."""


def screen(row):
    return row["screen_w"], row["screen_h"]


def word(row):
    return (row["pred_direction"] or "").lower()


def contains(predicted, label):
    a, b = predicted.lower().strip(), label.lower().strip()
    return a in b or b in a


def drop(reason, **more):
    return {"type_match": None, "exact_match": None, "reward": None, "dropped": reason, **more}


# --- UI-S1 and InfiGUI-R1 ----------------------------------------------------------------------------


def qwen_name(kind):
    names = {"scroll": "swipe", "input_text": "type", "open_app": "open", "status": "terminate"}
    return "system_button" if kind in BUTTONS else names.get(kind, kind)


def qwen(row, boxes, icon, swipe, pixels=None):
    if row["pred_type"] is None:
        raise Raised("TypeError")
    width, height = screen(row)
    given = [row["pred_x"] is not None, row["pred_y"] is not None]
    if row["pred_type"] in POINTED and any(given) and not all(given):
        raise Raised("IndexError")
    label, answer = qwen_name(row["expert_type"]), qwen_name(row["pred_type"])
    shares = [(b[0] / width, b[1] / height, b[2] / width, b[3] / height) for b in boxes]
    if label == "open" and answer == "click" and icon and shares:
        x1, y1, x2, y2 = shares[0]
        return 1, int(qwen_click(row, shares, ((x1 + x2) / 2, (y1 + y2) / 2), pixels))
    if label != answer:
        return 0, 0
    if label in ("type", "open"):
        if row["pred_text"] is None:
            raise Raised("KeyError")
        return 1, int(contains(row["pred_text"], row["expert_text"]))
    if label == "system_button":
        return 1, int(row["pred_type"] == row["expert_type"])
    if label == "swipe":
        return 1, int(swipe(row))
    if label in POINTED:
        return 1, int(qwen_click(row, shares, (row["expert_x"] / width, row["expert_y"] / height), pixels))
    return 1, 1


def qwen_click(row, shares, meant, pixels):
    if row["pred_x"] is None:
        raise Raised("KeyError")
    x, y = row["pred_x"] / row["screen_w"], row["pred_y"] / row["screen_h"]
    for x1, y1, x2, y2 in shares:
        cx, cy, half_w, half_h = (x1 + x2) / 2, (y1 + y2) / 2, (x2 - x1) * 1.2 / 2, (y2 - y1) * 1.2 / 2
        if cx - half_w <= x <= cx + half_w and cy - half_h <= y <= cy + half_h:
            return True
    dx, dy = meant[0] - x, meant[1] - y
    if pixels is None:
        return math.sqrt(dx * dx + dy * dy) <= 0.04
    dx, dy = dx * pixels[0], dy * pixels[1]
    return math.sqrt(dx * dx + dy * dy) <= 0.04 * max(pixels)


def same_direction(row):
    if word(row) not in FLIP:
        raise Raised("KeyError")
    return word(row) == row["expert_direction"]


def uis1_eval(row, *, with_boxes=True):
    if row["expert_type"] in ("status", "other"):
        return drop("no such AndroidControl step")
    try:
        kind, exact = qwen(row, row["boxes"] if with_boxes else [], True, lambda row: True)
    except Raised as raised:
        return {"type_match": 0, "exact_match": 0, "error": str(raised)}
    return {"type_match": kind, "exact_match": exact}


def uis1_eval_asshipped(row):
    return uis1_eval(row, with_boxes=False)


def infigui_eval(row):
    if row["expert_type"] in ("status", "other"):
        return drop("no such AndroidControl step")
    seen = smart_resize(*map(int, screen(row)), max_pixels=6400 * 28 * 28)
    try:
        kind, exact = qwen(row, row["boxes"], True, same_direction, seen)
    except Raised:
        kind = exact = 0
    verdict = {"type_match": kind, "exact_match": exact}
    if row["expert_type"] == row["pred_type"] == "scroll":
        verdict["exact_match_physical"] = int(word(row) == FLIP[row["expert_direction"]])
    return verdict


def uis1_train(row):
    if row["expert_type"] == "other":
        return drop("not in the UI-S1 action space")
    kind = exact = 0
    try:
        kind, exact = qwen(row, [row["single_box"]] if row["single_box"] else [], False, same_direction)
        action = 1.0 if exact else 0.5 if kind else 0.1
    except Raised:
        action = 0.0
    reward = 0.1 * (row["pred_type"] is not None) + 0.9 * action
    verdict = {"type_match": kind, "exact_match": exact, "reward": reward}
    if row["expert_type"] == row["pred_type"] == "scroll":
        label = row["expert_direction"]
        verdict["exact_match_physical"] = int(
            word(row) == (label if label in ("up", "down") else FLIP[label])
        )
    return verdict


# --- AgentCPM-GUI ------------------------------------------------------------------------------------


def compact(row, who):
    """Return the compact JSON of the label or the answer, None if it doesn't pass the schema."""
    kind, answer = row[f"{who}_type"], who == "pred"
    if answer and row["pred_foreign"]:
        return None
    if kind in POINTED:
        if row[f"{who}_x"] is None or row[f"{who}_y"] is None:
            return None
        point = [
            int(row[f"{who}_x"] / row["screen_w"] * 1000),
            int(row[f"{who}_y"] / row["screen_h"] * 1000),
        ]
        if answer and not all(0 <= value <= 1000 for value in point):
            return None
        return {"POINT": point} if kind == "click" else {"POINT": point, "duration": 1000}
    if kind == "scroll":
        way = (row[f"{who}_direction"] or "").lower()
        return {"POINT": [500, 500], "to": FLIP[way]} if way in FLIP else None
    if kind == "input_text":
        return None if row[f"{who}_text"] is None else {"TYPE": row[f"{who}_text"]}
    if kind == "status":
        return None if row[f"{who}_status"] is None else {"STATUS": row[f"{who}_status"]}
    if kind == "wait":
        return {"duration": 3000}
    return {"PRESS": kind} if kind in BUTTONS else None


def compact_type(action):
    if "STATUS" in action or set(action) == {"duration"}:
        return "stop"
    if "POINT" in action:
        return "scroll" if "to" in action else "long_point" if "duration" in action else "click"
    return "type" if "TYPE" in action else "press"


def agentcpm_eval(row, android_control):
    reasons = {name: f"{name} has no AITW code" for name in ("open_app", "navigate_recent")}
    reasons["other"] = "not in the action space"
    if row["expert_type"] in reasons:
        return drop(reasons[row["expert_type"]])
    label, answer = compact(row, "expert"), compact(row, "pred")
    kind = "click" if row["expert_type"] == "long_press" else compact_type(label)
    if answer is None or compact_type(answer) != kind:
        return {"type_match": 0, "exact_match": 0}
    if kind == "click":
        exact = agentcpm_click(row, answer["POINT"], android_control)
    elif kind == "type":
        exact = contains(answer["TYPE"], label["TYPE"])
    else:
        exact = kind == "stop" or answer == label
    return {"type_match": 1, "exact_match": int(exact)}


def agentcpm_click(row, point, android_control):
    width, height = screen(row)
    x, y = point[0] / 1000, point[1] / 1000
    gx, gy = row["expert_x"] / width, row["expert_y"] / height
    boxes = []
    for x1, y1, x2, y2 in row["boxes"]:
        w, h = (x2 - x1) / width, (y2 - y1) / height
        dw, dh = (1.2 - 1) * w, (1.2 - 1) * h
        boxes.append(
            (max(0, x1 / width - dw / 2), max(0, y1 / height - dh / 2), min(1, w + dw), min(1, h + dh))
        )
    if android_control:
        boxes.sort(key=lambda b: math.sqrt((b[0] + b[2] / 2 - gx) ** 2 + (b[1] + b[3] / 2 - gy) ** 2))
        boxes = boxes[:5]
    else:
        boxes = [b for b in boxes if b[0] <= gx <= b[0] + b[2] and b[1] <= gy <= b[1] + b[3]]
    if any(b[0] <= x <= b[0] + b[2] and b[1] <= y <= b[1] + b[3] for b in boxes):
        return True
    return math.sqrt((gx - x) ** 2 + (gy - y) ** 2) <= (0.04 if android_control else 0.14)


def agentcpm_eval_ac004(row):
    return agentcpm_eval(row, True)


def agentcpm_eval_014(row):
    return agentcpm_eval(row, False)


def agentcpm_rft(row):
    label, answer = compact(row, "expert"), compact(row, "pred")
    if label is None:
        return drop(f"{row['expert_type']} not in the action space")
    if answer is None:
        return {"type_match": 0, "reward": -1.0, "reward_type": -1.0, "reward_args": -1.0}
    total = 0.0
    for key, meant in label.items():
        given = answer.get(key)
        if given is None:
            continue
        if key == "POINT":
            total += rft_point(row, given, meant)
        elif key == "TYPE":
            total += SequenceMatcher(None, given, meant).ratio()
        else:
            total += key == "duration" or given == meant
    kind = float(set(label) == set(answer))
    args = total / len(label) - 0.1 * len(set(answer) - set(label)) - 0.3 * len(set(label) - set(answer))
    return {"type_match": int(kind), "reward": (kind + args) / 2, "reward_type": kind, "reward_args": args}


def rft_point(row, given, meant):
    x, y, gx, gy = given[0] / 1000, given[1] / 1000, meant[0] / 1000, meant[1] / 1000
    far = 1 - (abs(x - gx) + abs(y - gy)) / 2
    if row["single_box"] is None or row["expert_type"] == "scroll":
        return 1.0 if gx - 0.01 <= x <= gx + 0.01 and gy - 0.01 <= y <= gy + 0.01 else far
    x1, y1, x2, y2 = row["single_box"]
    px, py = int(x * row["screen_w"]), int(y * row["screen_h"])
    if not (x1 <= px <= x2 and y1 <= py <= y2):
        return far
    return 0.95 + 0.05 * (1 - max(abs(px - (x1 + x2) / 2), abs(py - (y1 + y2) / 2)) / 1000) ** 3


# --- OS-Atlas and GUI-Odyssey ------------------------------------------------------------------------


def capital_name(row, who):
    kind = row[f"{who}_type"]
    if kind == "status":
        return "IMPOSSIBLE" if row[f"{who}_status"] == "infeasible" else "COMPLETE"
    names = {"input_text": "TYPE", "keyboard_enter": "ENTER"}
    return names.get(kind) or (kind or "").upper().replace("NAVIGATE", "PRESS")


def os_atlas_line(row, who):
    kind, name = row[f"{who}_type"], capital_name(row, who)
    if kind is None:
        return "invalid action"
    if kind in POINTED:
        given = [(row[f"{who}_x"], row["screen_w"]), (row[f"{who}_y"], row["screen_h"])]
        point = ",".join(str(int(value / side * 1000)) for value, side in given if value is not None)
        return f"{name} <point>[[{point}]]</point>"
    argument = row[f"{who}_direction"] if kind == "scroll" else row[f"{who}_text"] if kind in TEXTS else None
    if argument is None:
        return name
    return f"{name} [{argument.upper() if kind == 'scroll' else argument}]"


def osatlas_ac(row):
    if row["expert_type"] == "other":
        return drop("no such OS-Atlas action")
    label, answer = os_atlas_line(row, "expert"), os_atlas_line(row, "pred")
    kind = label.split()[0]
    if answer.split()[0] != kind:
        return {"type_match": 0, "exact_match": 0}
    if row["expert_type"] in POINTED:
        digits, meant = (list(map(int, re.findall(r"\d+", line))) for line in (answer, label))
        x, y = digits[:2] if len(digits) > 1 else (-100, -100)
        exact = math.sqrt((x - meant[0]) ** 2 + (y - meant[1]) ** 2) <= 140
    elif kind in ("TYPE", "OPEN_APP"):
        if len(answer.split()) < 2:
            return {"type_match": 0, "exact_match": 0, "error": "IndexError"}
        exact = label == answer or answer.split()[1].lower() == label.split()[1].lower()
    else:
        exact = label == answer
    return {"type_match": 1, "exact_match": int(exact)}


def gui_odyssey_official(row):
    if row["expert_type"] in ("wait", "open_app", "keyboard_enter", "other"):
        return drop("no such GUI-Odyssey action")
    empty_list = None
    if row["pred_type"] is None or capital_name(row, "pred") != capital_name(row, "expert"):
        info = "action_fail"
    elif row["expert_type"] in POINTED:
        info = odyssey_click(row)
        if row["single_box"] is None and info == "click_correct":
            empty_list = {"type_match": 1, "exact_match": 0, "info": "invalid"}
    elif row["expert_type"] == "input_text":
        a, b = ((text or "").split(":")[0].strip() for text in (row["pred_text"], row["expert_text"]))
        alike = a in b or b in a or 1 - Levenshtein.distance(a, b) / max(len(a), len(b)) >= 0.5
        info = "type_correct" if alike else "type_fail"
    elif row["expert_type"] == "scroll":
        info = "scroll_correct" if word(row) == row["expert_direction"] else "scroll_fail"
    else:
        info = "action_correct"
    verdict = {"type_match": int(info != "action_fail"), "exact_match": int(info.endswith("correct"))}
    return verdict | {"info": info, "with_empty_list_box": empty_list}


def odyssey_click(row):
    if row["pred_x"] is None or row["pred_y"] is None:
        return "invalid"
    width, height = screen(row)
    x, y = row["pred_x"] / width * 1000, row["pred_y"] / height * 1000
    if row["single_box"] is not None:
        x1, y1, x2, y2 = (
            value / side * 1000
            for value, side in zip(row["single_box"], (width, height, width, height), strict=True)
        )
        if x1 <= x <= x2 and y1 <= y <= y2:
            return "click_correct"
    dx, dy = x / 1000 - row["expert_x"] / width, y / 1000 - row["expert_y"] / height
    return "click_correct" if math.sqrt(dx * dx + dy * dy) <= 0.14 else "click_fail"
