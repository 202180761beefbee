"""Hypothesis strategies for the core: actions, answers to them, and scored candidates of whole episodes."""

from __future__ import annotations

import polars as pl
from hypothesis import strategies as st

from solar_rl.actions import ACTION_FIELDS, ACTION_TYPES, BUTTONS, DIRECTIONS, STATUSES
from solar_rl.columns import polars_schema
from solar_rl.config import ShapingConfig, ValidityConfig

LABEL = (*ACTION_FIELDS, "target_box", "candidate_boxes")
SCHEMA = {
    **{name: polars_schema("steps")[name] for name in LABEL},
    **{name: dtype for name, dtype in polars_schema("candidates").items() if name.startswith("pred_")},
    "parse_error": pl.String,
}
SHAPED = ("position", "segment_index", "base_reward", "gap_share", "reward", "advantage")
SCORED = {
    **{name: dtype for name, dtype in polars_schema("rewards").items() if name not in SHAPED},
    "ref_len": pl.Int32,
}

unit = st.floats(0, 1, allow_subnormal=False)
coordinate = st.one_of(
    unit, unit, st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.floats(-0.5, 1.5, allow_subnormal=False)
)
texts = st.text(st.sampled_from("abAB12 ,.-_!€我想ガＡﬁé"), max_size=8)
names = st.text(st.sampled_from("abC k\u00a0\u00ad\u200b"), min_size=1, max_size=7).filter(
    lambda t: t.strip("\u00ad\u200b \u00a0")
)
keys = st.lists(
    st.sampled_from(["ctrl", "Control", "shift", "cmd", "a", "b", "enter", "Esc", "up"]),
    min_size=1,
    max_size=3,
)
boxes = st.tuples(coordinate, coordinate, coordinate, coordinate).map(
    lambda b: [min(b[0], b[2]), min(b[1], b[3]), max(b[0], b[2]), max(b[1], b[3])]
)
odd_boxes = st.one_of(boxes, boxes, boxes, st.sampled_from([[0.5, 0.5], [float("nan"), 0.0, 1.0, 1.0]]))


@st.composite
def actions(draw, kinds=ACTION_TYPES):
    """Draw the columns of one action, whole or lacking something."""
    row = dict.fromkeys(ACTION_FIELDS)
    kind = row["action_type"] = draw(st.sampled_from(kinds))
    places = {
        "drag": ("x", "y", "x2", "y2"),
        "scroll": draw(st.sampled_from([(), ("x", "y"), ("x", "y", "x2", "y2")])),
    }
    for name in places.get(kind, ("x", "y") if "click" in kind or kind in ("hover", "long_press") else ()):
        row[name] = draw(coordinate)
    drawn = {
        "scroll": {"direction": st.sampled_from(DIRECTIONS)},
        "input_text": {"text": texts},
        "open_app": {"app_name": names},
        "finished": {"status": st.sampled_from(STATUSES)},
        "press": draw(st.sampled_from([{"button": st.sampled_from(BUTTONS)}, {"keys": keys}])),
    }
    for name, values in drawn.get(kind, {}).items():
        row[name] = draw(values)
    if draw(st.integers(0, 19)) == 0:
        row[draw(st.sampled_from([n for n in row if n != "action_type"]))] = None
    return row


@st.composite
def judged_rows(draw):
    """Draw one candidate beside its label: what ``validity.score`` reads."""
    label = draw(actions())
    boxes_given = draw(st.lists(odd_boxes, max_size=4))
    if label["x"] is not None and label["y"] is not None and draw(st.booleans()):
        w, h = draw(st.floats(0.01, 0.4)), draw(st.floats(0.01, 0.4))
        boxes_given.append([label["x"] - w, label["y"] - h, label["x"] + w, label["y"] + h])
    answer = draw(
        st.one_of(st.just(label), near(label), near(label), actions(), actions([label["action_type"]]))
    )
    error = draw(st.sampled_from([None] * 9 + ["no JSON"]))
    return {
        **label,
        **{f"pred_{name}": value for name, value in answer.items()},
        "target_box": draw(st.one_of(st.none(), boxes)),
        "candidate_boxes": boxes_given,
        "parse_error": error,
    }


@st.composite
def near(draw, label):
    """Draw an answer of the label's type whose points lie near the label's."""
    row = dict(label)
    for name in ("x", "y", "x2", "y2"):
        if row[name] is not None:
            row[name] += draw(st.floats(-0.1, 0.1, allow_subnormal=False))
    return row


validity_configs = st.builds(
    ValidityConfig,
    preset=st.sampled_from(["strict", "lenient"]),
    click_threshold=st.sampled_from([0.0, 0.3, 0.5, 0.9]),
    box_floor=st.sampled_from([0.5, 0.7]),
    max_box_area=st.sampled_from([0.25, 1.0]),
    text_threshold=st.sampled_from([0.0, 0.5, 1.0]),
    launch_threshold=st.sampled_from([0.5, 0.8, 1.0]),
)
truncated_modes = st.builds(
    ShapingConfig,
    alignment=st.sampled_from(["off", "paper", "prefix_mean"]),
    suffix=st.sampled_from(["discard", "penalise"]),
    normalisation=st.sampled_from(["none", "unit_mass"]),
)
shaping_configs = st.one_of(
    truncated_modes,
    st.builds(ShapingConfig, alignment=st.just("segments"), suffix=st.sampled_from(["discard", "penalise"])),
    st.builds(
        ShapingConfig,
        alignment=st.sampled_from(["off", "paper", "prefix_mean", "segments"]),
        score_weight=st.floats(0, 2),
        progress_weight=st.floats(0, 2),
        success_weight=st.floats(0, 2),
    ),
)


@st.composite
def verdicts(draw, threshold):
    """Draw raw_score and valid of one step: mostly valid, sometimes gated out, sometimes unscored."""
    fate = draw(st.sampled_from(["right"] * 4 + ["any", "any", "gated", "unscored"]))
    if fate == "unscored":
        return None, None
    if fate == "gated":
        return 0.0, False
    s = 1.0 if fate == "right" else draw(st.one_of(st.sampled_from([0.0, 0.2, 0.5, 1.0]), unit))
    return s, s >= threshold


@st.composite
def scored_frames(draw, *, whole=False, thresholds=(0.0, 0.3, 0.5, 0.8), min_candidates=1, max_candidates=4):
    """Draw scored candidates of one to three episodes, sorted by key.

    Args:
        whole: Every index has a candidate at every step (else some lack one, as in adaptive sampling).
        thresholds: A score is valid from one of these on.
        min_candidates: Fewest candidates a step.
        max_candidates: Most candidates a step.
    """
    rows = []
    threshold = draw(st.sampled_from(thresholds))
    for e in range(draw(st.integers(1, 3))):
        length = draw(st.integers(1, 6))
        n = draw(st.integers(min_candidates, max_candidates))
        for t in range(length):
            there = range(n) if whole else [c for c in range(n) if draw(st.integers(0, 14))]
            broken_label = draw(st.integers(0, 9)) == 0
            for c in there:
                s, valid = (None, None) if broken_label else draw(verdicts(threshold))
                rows.append(scored_row(f"e{e}", t, c, s, valid, length))
    return frame_of(rows)


def scored_row(episode, step, candidate, s, valid, ref_len):
    """Return one row of what ``shaping.shape`` reads."""
    parsed = valid or not (s == 0.0 and candidate % 2)
    return {
        **dict.fromkeys(SCORED),
        "episode_id": episode,
        "step_index": step,
        "candidate_index": candidate,
        "app": None if step % 3 == 0 else f"app{step % 2}",
        "action_type": "click" if step % 2 else "scroll",
        "pred_action_type": ("click" if (step + candidate) % 2 else "scroll") if parsed else None,
        "raw_score": s,
        "valid": valid,
        "unscored_reason": "label_off_screen" if s is None else None,
        "failure_reason": None if valid is not False else "too_far",
        "ref_len": ref_len,
    }


def frame_of(rows):
    """Return rows as a frame in the order of their keys."""
    return pl.DataFrame(rows, schema=SCORED).sort("episode_id", "step_index", "candidate_index")


def paths_frame(scores, ref_len=None, threshold=0.5):
    """Return one episode whose candidate c has the scores ``scores[c]``, None for unscored."""
    return frame_of(
        [
            scored_row("e", t, c, s, None if s is None else s >= threshold, ref_len or len(path))
            for c, path in enumerate(scores)
            for t, s in enumerate(path)
        ]
    )
