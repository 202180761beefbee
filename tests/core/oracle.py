"""The method once more in plain Python, row by row, from docs/method.md alone: what the columns must equal."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter, defaultdict

SCORES = [
    "raw_score",
    "valid",
    "unscored_reason",
    "rule",
    "distance",
    "box_x1",
    "box_y1",
    "box_x2",
    "box_y2",
    "matched_text",
    "failure_reason",
]
BOX = ("box_x1", "box_y1", "box_x2", "box_y2")
CLICKS = ("click", "double_click", "right_click", "hover", "long_press")
RULES = dict.fromkeys(CLICKS, "point") | {
    "scroll": "scroll",
    "drag": "drag",
    "input_text": "text",
    "open_app": "launch",
    "press": "press",
    "wait": "type",
    "finished": "status",
}
ALIASES = {
    "control": "ctrl",
    "cmd": "meta",
    "win": "meta",
    "return": "enter",
    "esc": "escape",
    "option": "alt",
}
MODIFIERS = {"ctrl", "alt", "shift", "meta"}


# ---- text


def normal(text):
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()).strip()


def words(text):
    """Right for the alphabet of strategies.texts: Latin, digits, Han, kana, punctuation, the euro sign."""
    text = re.sub("[\u00ad\u200c\u200d\ufeff]", "", text.replace("\u200b", " "))
    found = re.findall(r"[\u3040-\u30ff\u4e00-\u9fff€]|[^\W_\u3040-\u30ff\u4e00-\u9fff]+", normal(text))
    return found or [c for c in normal(text) if not c.isspace()]


def f1(predicted, label):
    p, t = words(predicted), words(label)
    if not p and not t:
        return 1.0, ""
    common = sum((Counter(p) & Counter(t)).values())
    left = Counter(p)
    matched = []
    for word in t:
        if left[word] > 0:
            left[word] -= 1
            matched.append(word)
    return 2 * common / (len(p) + len(t)), " ".join(matched)


def levenshtein(a, b):
    row = list(range(len(b) + 1))
    for i, ca in enumerate(a, 1):
        previous, row[0] = row[0], i
        for j, cb in enumerate(b, 1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (ca != cb))
    return row[-1]


def app_similarity(predicted, label):
    a, b = (
        " ".join(re.sub("[\u00ad\u200b\u200c\u200d\ufeff]", "", normal(t)).split())
        for t in (predicted, label)
    )
    return 1.0 if a == b else 1 - levenshtein(a, b) / max(len(a), len(b))


# ---- validity


def box_around(row, x, y, config):
    best = None
    for box in [*(row["candidate_boxes"] or []), row["target_box"]]:
        if box is None or len(box) != 4 or not all(map(math.isfinite, box)):
            continue
        x1, y1, x2, y2 = (min(1.0, max(0.0, v)) for v in box)
        area = (x2 - x1) * (y2 - y1)
        if x2 > x1 and y2 > y1 and area < config.max_box_area and x1 <= x <= x2 and y1 <= y <= y2:
            best = min(filter(None, [best, (area, x1, y1, x2, y2)]))
    return best[1:] if best else None


def kernel(px, py, x, y, box, config):
    sx = max(config.sigma0, config.box_sigma * (box[2] - box[0])) if box else config.sigma0
    sy = max(config.sigma0, config.box_sigma * (box[3] - box[1])) if box else config.sigma0
    return math.exp(-0.5 * (((px - x) / sx) ** 2 + ((py - y) / sy) ** 2))


def combination(button, keys):
    names = [ALIASES.get(k.casefold(), k.casefold()) for k in ([button] if button else keys)]
    return {k for k in names if k in MODIFIERS}, list(dict.fromkeys(k for k in names if k not in MODIFIERS))


def lacks(row, who, kind):
    def no_number(name):
        value = row[who + name]
        return value is None or not math.isfinite(value)

    if kind in CLICKS or kind == "drag":
        needed = ("x", "y", "x2", "y2") if kind == "drag" else ("x", "y")
        return "point" if any(map(no_number, needed)) else None
    needs = {"scroll": "direction", "input_text": "text", "open_app": "app_name", "finished": "status"}
    if kind == "press":
        return None if row[who + "button"] or row[who + "keys"] else "key"
    return needs[kind] if kind in needs and row[who + needs[kind]] is None else None


def score(row, config):
    """Return the SCORES of one row."""
    empty = dict.fromkeys(SCORES)
    kind = row["action_type"]
    if kind not in RULES:
        return empty | {"unscored_reason": "label_unknown_action"}
    if lack := lacks(row, "", kind):
        return empty | {"unscored_reason": f"label_missing_{lack}"}
    spots = {"drag": ("x", "y", "x2", "y2")} | dict.fromkeys((*CLICKS, "scroll"), ("x", "y"))
    if any(row[name] is not None and not 0 <= row[name] <= 1 for name in spots.get(kind, ())):
        return empty | {"unscored_reason": "label_off_screen"}
    fault = None
    if row["parse_error"] is not None or row["pred_action_type"] is None:
        fault = ("parse", "parse_error")
    elif row["pred_action_type"] != kind:
        fault = ("type", "wrong_type")
    elif lacks(row, "pred_", kind):
        fault = ("argument", "missing_argument")
    if fault:
        return empty | {"raw_score": 0.0, "valid": False, "rule": fault[0], "failure_reason": fault[1]}
    result = empty | {"rule": RULES[kind]} | judge(row, kind, config)
    return result | {"failure_reason": None if result["valid"] else result["failure_reason"]}


def judge(row, kind, config):
    if kind == "wait":
        return {"raw_score": 1.0, "valid": True}
    if kind == "finished":
        same = row["pred_status"] == row["status"]
        return {"raw_score": float(same), "valid": same, "failure_reason": "wrong_status"}
    if kind == "press":
        label, answer = (combination(row[who + "button"], row[who + "keys"]) for who in ("", "pred_"))
        same = label == answer
        matched = "+".join([*sorted(label[0]), *label[1]]) if same else ""
        reason = "wrong_button" if row["button"] else "wrong_keys"
        return {"raw_score": float(same), "valid": same, "failure_reason": reason, "matched_text": matched}
    if kind == "input_text":
        s, matched = f1(row["pred_text"], row["text"])
        valid = s >= config.text_threshold
        return {"raw_score": s, "valid": valid, "failure_reason": "wrong_text", "matched_text": matched}
    if kind == "open_app":
        s, matched = (
            app_similarity(row["pred_app_name"], row["app_name"]),
            f1(row["pred_app_name"], row["app_name"]),
        )
        valid = s >= config.launch_threshold
        return {"raw_score": s, "valid": valid, "failure_reason": "wrong_app", "matched_text": matched[1]}
    return judge_place(row, kind, config)


def judge_place(row, kind, config):
    px, py, x, y = row["pred_x"], row["pred_y"], row["x"], row["y"]
    box = box_around(row, x, y, config) if x is not None and y is not None else None
    evidence = dict(zip(BOX, box or [None] * 4, strict=True))
    given = None not in (px, py, x, y) and all(map(math.isfinite, (px, py, x, y)))
    near = kernel(px, py, x, y, box, config) if given else 0.0
    evidence["distance"] = math.hypot(px - x, py - y) if given else None
    if kind == "scroll":
        agrees = row["pred_direction"] == row["direction"]
        s = (1.0 if x is None or y is None else 0.5 + 0.5 * near) if agrees else 0.0
        return evidence | {"raw_score": s, "valid": agrees, "failure_reason": "wrong_direction"}
    if kind == "drag":
        px2, py2, x2, y2 = row["pred_x2"], row["pred_y2"], row["x2"], row["y2"]
        near *= kernel(px2, py2, x2, y2, box_around(row, x2, y2, config), config)
        evidence["distance"] = max(evidence["distance"], math.hypot(px2 - x2, py2 - y2))
    elif box and box[0] <= px <= box[2] and box[1] <= py <= box[3]:
        near = max(near, config.box_floor)
    valid = near >= config.click_threshold
    return evidence | {"raw_score": near, "valid": valid, "failure_reason": "too_far"}


# ---- shaping


def mean(values):
    values = list(values)
    return math.fsum(values) / len(values) if values else None


def shape(rows, config, scale="none"):
    """Return (rewards by key, trajectories by key) as dicts of dicts."""
    paths = defaultdict(list)
    for row in rows:
        paths[row["episode_id"], row["candidate_index"]].append(row)
    steps, trajectories = {}, {}
    for row in rows:
        steps[key(row)] = dict.fromkeys(
            ("position", "segment_index", "base_reward", "gap_share", "reward", "advantage")
        )
    for name, path in paths.items():
        path.sort(key=lambda row: row["step_index"])
        if [row["step_index"] for row in path][: path[0]["ref_len"]] == list(range(path[0]["ref_len"])):
            shaped, trajectories[name] = shape_path(path, config)
            for row, values in zip(path, shaped, strict=True):
                steps[key(row)] |= values
    groups = defaultdict(list)
    for (episode, step, _), values in steps.items():
        if values["reward"] is not None:
            groups[episode, step].append(values)
    for group in groups.values():
        for values, centred in zip(group, compare([v["reward"] for v in group], scale), strict=True):
            values["advantage"] = centred
    return steps, trajectories


def key(row):
    return row["episode_id"], row["step_index"], row["candidate_index"]


def compare(values, scale="none"):
    middle = math.fsum(values) / len(values)
    if max(values) - min(values) <= 1e-12:
        return [0.0] * len(values)
    centred = [v - middle for v in values]
    if scale == "std":
        std = math.sqrt(math.fsum(c * c for c in centred) / (len(values) - 1))
        return [c / std for c in centred]
    return centred


def is_valid(row):
    return row["raw_score"] is not None and row["valid"]


def is_failure(row):
    return row["raw_score"] is not None and not row["valid"]


def segments_of(path):
    segments = [[]]
    for row in path:
        if segments[-1] and is_failure(segments[-1][-1]):
            segments.append([])
        segments[-1].append(row)
    return segments


def segment_return(segment, success, config):
    average = mean(row["raw_score"] for row in segment if row["raw_score"] is not None)
    before = sum(not is_failure(row) for row in segment)
    if average is None:
        return None
    progress = min(1, before / segment[0]["ref_len"])
    return config.score_weight * average + config.progress_weight * progress + config.success_weight * success


def shape_path(path, config):
    segments = segments_of(path)
    success = not any(map(is_failure, path))
    first = segments[0]
    r_traj = segment_return(first, success, config)
    failure = None if success else first[-1]
    if config.alignment == "segments":
        shaped, target, carried = shape_segments(segments, success, config)
    else:
        shaped, target, carried = shape_first(segments, r_traj, config)
    alignment = "no_prefix" if not carried else "off" if config.alignment == "off" else "aligned"
    if not any(row["raw_score"] is not None for row in path):
        target = None
    return shaped, {
        "ref_len": path[0]["ref_len"],
        "first_failure_step": failure and failure["step_index"],
        "valid_prefix_len": len(first) - (not success),
        "success": success,
        "mean_raw_score": mean(row["raw_score"] for row in first if row["raw_score"] is not None),
        "trajectory_reward": r_traj,
        "target_reward": target,
        "reward_sum": math.fsum(step["reward"] for step in shaped if step["reward"] is not None),
        "alignment": alignment,
        "failure_action_type": failure and failure["action_type"],
        "failure_app": failure and failure["app"],
        "failure_reason": failure and failure["failure_reason"],
    }


def base_of(row):
    return row["raw_score"] if row["valid"] else -(1 - row["raw_score"])


def step_of(position, index, base, gap):
    reward = None if base is None else base + gap
    return {
        "position": position,
        "segment_index": index,
        "base_reward": base,
        "gap_share": None if base is None else gap,
        "reward": reward,
    }


def shape_segments(segments, success, config):
    shaped, target = [], 0.0
    for index, segment in enumerate(segments):
        r_g, good = (
            segment_return(segment, success, config),
            [row["raw_score"] for row in segment if is_valid(row)],
        )
        for row in segment:
            position = "breakdown" if is_failure(row) else "prefix"
            if row["raw_score"] is None:
                shaped.append(step_of(position, index, None, None))
            else:
                shaped.append(
                    step_of(position, index, base_of(row), r_g - mean(good) if row["valid"] else 0.0)
                )
        target += (len(good) * r_g if good else 0.0) + sum(base_of(row) for row in segment if is_failure(row))
    return shaped, target, any(is_valid(row) for segment in segments for row in segment)


def shape_first(segments, r_traj, config):
    first = segments[0]
    bases = {row["step_index"]: base_of(row) for row in first if row["raw_score"] is not None}
    good = [row["step_index"] for row in first if is_valid(row)]
    broken = [row["step_index"] for row in first if is_failure(row)]
    if config.normalisation == "unit_mass":
        for group in (good, broken):
            mass = abs(math.fsum(bases[t] for t in group))
            bases |= {t: bases[t] / mass if mass else 0.0 for t in group}
    punished = math.fsum(bases[t] for t in broken)
    target = {
        "off": math.fsum(bases.values()),
        "paper": r_traj,
        "prefix_mean": (len(good) * r_traj if good else 0.0) + punished,
    }[config.alignment]
    gap = (target - math.fsum(bases.values())) / len(good) if good else 0.0
    shaped = [
        step_of(
            "breakdown" if row["step_index"] in broken else "prefix",
            0,
            bases.get(row["step_index"]),
            gap if row["step_index"] in good else 0.0,
        )
        for row in first
    ]
    for index, segment in enumerate(segments[1:], 1):
        for row in segment:
            base = (base_of(row) if is_failure(row) else 0.0) if config.suffix == "penalise" else None
            shaped.append(step_of("after", index, None if row["raw_score"] is None else base, 0.0))
            if shaped[-1]["base_reward"] is not None and target is not None:
                target += shaped[-1]["base_reward"]
    return shaped, target, bool(good)


# ---- credit


def credit(rows, name, weight="none", floor=None):
    """Return (credit_reward, credit_advantage) by key; rows carry the joined trajectory columns."""
    values = {key(row): credit_value(row, name) for row in rows}
    if name == "ui_s1":
        return credit_ui_s1(rows)
    episodic = name.startswith("sparse")
    groups = defaultdict(dict)
    for row in rows:
        if values[key(row)] is not None:
            member = row["candidate_index"] if episodic else key(row)
            groups[row["episode_id"] if episodic else key(row)[:2]][member] = (values[key(row)], row)
    result = {key(row): (None, None) for row in rows}
    for row in rows:
        if values[key(row)] is None:
            continue
        group = groups[row["episode_id"] if episodic else key(row)[:2]]
        member = row["candidate_index"] if episodic else key(row)
        numbers = [value for value, _ in group.values()]
        a = compare(numbers, "std" if weight == "std" else "none")[list(group).index(member)]
        if weight == "log_success":
            n = sum(
                other["step_index"] == row["step_index"]
                for other in rows
                if other["episode_id"] == row["episode_id"]
            )
            p = mean(float(other["valid"]) for _, other in group.values())
            a /= max(p, 1 / n if floor is None else floor)
        result[key(row)] = values[key(row)], a
    return result


def credit_value(row, name):
    if row["raw_score"] is None:
        return None
    kept = row["success"] is not None and (
        row["first_failure_step"] is None or row["step_index"] <= row["first_failure_step"]
    )
    parsed = row["pred_action_type"] is not None
    return {
        "solar": row["reward"],
        "atomic": 0.1 * parsed + 0.9 * row["raw_score"],
        "step_local": row["raw_score"],
        "sparse": float(row["success"]) if kept else None,
        "sparse_rtraj": row["trajectory_reward"] if kept else None,
        "ui_s1": 0.1 * parsed + 0.4 * (row["pred_action_type"] == row["action_type"]) + 0.5 * row["valid"]
        if kept
        else None,
    }[name]


def credit_ui_s1(rows):
    quality = {key(row): credit_value(row, "ui_s1") for row in rows}
    returns, totals, result = {}, defaultdict(dict), {key(row): (None, None) for row in rows}
    for row in sorted(rows, key=lambda row: -row["step_index"]):
        episode, step, candidate = key(row)
        q = quality[key(row)]
        returns[key(row)] = (q or 0.0) + 0.5 * returns.get((episode, step + 1, candidate), 0.0)
        if q is not None:
            totals[episode][candidate] = totals[episode].get(candidate, 0.0) + q / row["ref_len"]
    for row in rows:
        if quality[key(row)] is None:
            continue
        episode, step, candidate = key(row)
        siblings = [k for k in quality if k[:2] == (episode, step) and quality[k] is not None]
        a = compare([returns[k] for k in siblings], "std")[siblings.index(key(row))]
        order = sorted(totals[episode])
        a += compare([totals[episode][c] for c in order], "std")[order.index(candidate)]
        result[key(row)] = returns[key(row)], a
    return result
