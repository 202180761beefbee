"""Canonical labels and candidates in neutral words, and back."""

import sys
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

from rows import frame, rows

from solar_rl.actions import ACTION_FIELDS, Action
from solar_rl.protocols import NEUTRAL, PROTOCOLS, neutral_frame
from solar_rl.protocols.neutral import canonical_frame


def canonical(label, answer, *, boxes=(), target=None, parse_error=None, width=1080, height=2400):
    """Make what ``validity.score`` reads: one row."""
    made = {
        "screen_width": width,
        "screen_height": height,
        "candidate_boxes": [list(box) for box in boxes],
        "target_box": list(target) if target else None,
        "parse_error": parse_error,
    }
    for prefix, action in (("", label), ("pred_", answer)):
        for name in ACTION_FIELDS:
            value = getattr(action, name) if action else None
            made[f"{prefix}{name}"] = list(value) if isinstance(value, tuple) else value
    return pl.DataFrame([made])


def neutral(*arguments, **more):
    return neutral_frame(canonical(*arguments, **more)).to_dicts()[0]


TAP = Action("click", x=542 / 1080, y=1201 / 2400)


def test_pixels_come_back_as_they_were():
    one = canonical(Action("click", x=0.5, y=0.5), None)
    every = pl.concat([one] * 1081).with_columns(x=pl.Series([pixel / 1080 for pixel in range(1081)]))
    assert neutral_frame(every)["expert_x"].to_list() == list(range(1081))


@pytest.mark.parametrize(
    ("action", "word", "text"),
    [
        (Action("input_text", text="cat"), "input_text", "cat"),
        (Action("open_app", app_name="Maps"), "open_app", "Maps"),
        (Action("press", button="back"), "navigate_back", None),
        (Action("press", button="home"), "navigate_home", None),
        (Action("press", button="recent"), "navigate_recent", None),
        (Action("press", button="enter"), "keyboard_enter", None),
        (Action("press", keys=("enter",)), "keyboard_enter", None),
        (Action("press", keys=("ctrl", "c")), "other", None),
        (Action("wait"), "wait", None),
        (Action("finished", status="infeasible", text="no"), "status", "no"),
        (Action("drag", x=0.1, y=0.1, x2=0.5, y2=0.5), "other", None),
        (Action("double_click", x=0.1, y=0.1), "other", None),
        (Action("scroll", direction="down", x=0.5, y=0.8, x2=0.5, y2=0.2), "scroll", None),
    ],
)
def test_every_canonical_action_has_a_word(action, word, text):
    found = neutral(action, action)
    for who in ("expert", "pred"):
        assert found[f"{who}_type"] == word
        assert found[f"{who}_text"] == text
        assert found[f"{who}_x"] is None
    assert found["expert_direction"] == action.direction


def test_an_unreadable_answer_has_no_type():
    assert neutral(TAP, None, parse_error="no JSON")["pred_type"] is None
    assert neutral(TAP, TAP, parse_error="two actions")["pred_type"] is None
    assert neutral(TAP, TAP)["pred_type"] == "click"


def test_boxes_are_pixels_and_the_target_is_the_single_one():
    target, other = (0.25, 0.25, 0.75, 0.75), (0.0, 0.0, 1.0, 1.0)
    found = neutral(TAP, TAP, boxes=[other, target], target=target)
    assert found["boxes"] == [[0, 0, 1080, 2400], [270, 600, 810, 1800]]
    assert found["single_box"] == [270, 600, 810, 1800]


def test_a_target_alone_is_the_only_box():
    found = neutral(TAP, TAP, target=(0.25, 0.25, 0.75, 0.75))
    assert found["boxes"] == [found["single_box"]]


def test_without_a_target_the_smallest_box_around_the_label_is_the_single_one():
    boxes = [(0.0, 0.0, 1.0, 1.0), (0.4, 0.4, 0.6, 0.6), (0.5, 0.4, 0.5, 0.6), (0.0, 0.0, 0.1, 0.1)]
    assert neutral(TAP, TAP, boxes=boxes)["single_box"] == [432, 960, 648, 1440]
    assert neutral(TAP, TAP, boxes=boxes[3:])["single_box"] is None
    assert neutral(Action("wait"), TAP, boxes=boxes)["single_box"] is None


def test_no_rows_keep_their_columns():
    empty = neutral_frame(canonical(TAP, TAP).clear())
    assert (dict(empty.schema), empty.height) == (NEUTRAL, 0)


def test_columns_of_nothing_but_nulls_are_read():
    found = neutral_frame(canonical(Action("wait"), None).with_columns(pl.lit(None).alias("keys")))
    assert found["expert_type"].to_list() == ["wait"]


@given(drawn=st.lists(rows(), min_size=1, max_size=20))
def test_neutral_to_canonical_and_back_keeps_every_verdict(drawn):
    """Foreign keys, half points and odd directions don't survive: canonical actions have none."""
    kept = [
        each | {"pred_foreign": False, "pred_whole": True}
        for each in drawn
        if each["pred_type"] != "other" and (each["pred_x"] is None) == (each["pred_y"] is None)
        and (each["pred_x"] is None or float(each["pred_x"]).is_integer())
    ]  # fmt: skip
    before = frame(*kept)
    sizes = before.select(screen_width="screen_w", screen_height="screen_h")
    after = neutral_frame(pl.concat([canonical_frame(before), sizes], how="horizontal"))
    same = [name for name in NEUTRAL if name not in ("boxes", "single_box", "pred_direction")]
    assert after.select(same).equals(before.select(same).with_columns(pl.col("screen_w", "screen_h")))
    assert after["pred_direction"].equals(before["pred_direction"].str.to_lowercase())


def test_every_protocol_judges_canonical_rows():
    rows_ = pl.concat(
        [
            canonical(TAP, TAP, target=(0.4, 0.4, 0.6, 0.6)),
            canonical(Action("drag", x=0, y=0, x2=1, y2=1), None),
        ],
        how="vertical_relaxed",
    )
    for name, protocol in PROTOCOLS.items():
        verdicts = protocol.judge_canonical(rows_)
        assert verdicts["type_match"][0] == 1, name
        assert (verdicts["dropped"][1] is None) == (name == "solar"), name
