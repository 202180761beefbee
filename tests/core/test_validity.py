"""When an action counts as right: named cases, the laws, and every column against the oracle."""

import math

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import SCORES
from oracle import score as expected
from strategies import SCHEMA, judged_rows, validity_configs

from solar_rl.config import ValidityConfig
from solar_rl.schema import SCORE_COLUMNS
from solar_rl.validity import RULES, score

STRICT = ValidityConfig()


def judge(label, answer=None, config=STRICT, **more):
    """Score one answer: dicts of action columns; ``answer`` None is one that did not parse."""
    row = dict.fromkeys(SCHEMA) | {"candidate_boxes": []} | label | more
    row |= {f"pred_{name}": value for name, value in (answer or {}).items()}
    row |= {"parse_error": None if answer else "no action found"} | more
    return score(pl.DataFrame([row], schema=SCHEMA), config).row(0, named=True)


def click(x, y, kind="click"):
    return {"action_type": kind, "x": x, "y": y}


def gauss(*scaled):
    return math.exp(-0.5 * sum(d * d for d in scaled))


# ---- points


def test_hit_is_one():
    assert judge(click(0.3, 0.7), click(0.3, 0.7))["raw_score"] == 1.0


@pytest.mark.parametrize(("preset", "radius"), [("strict", 0.04), ("lenient", 0.14)])
def test_presets_halve_where_they_say(preset, radius):
    config = ValidityConfig(preset=preset)
    at = judge(click(0.5, 0.5), click(0.5 + radius, 0.5), config)
    assert at["raw_score"] == pytest.approx(0.5, abs=0.005) and at["valid"]
    beyond = judge(click(0.5, 0.5), click(0.5, 0.5 + radius * 1.05), config)
    assert not beyond["valid"] and beyond["failure_reason"] == "too_far"
    assert beyond["distance"] == pytest.approx(radius * 1.05)


@pytest.mark.parametrize("kind", ["click", "double_click", "right_click", "hover", "long_press"])
def test_every_kind_of_click_has_the_kernel_and_no_other_type_counts(kind):
    assert judge(click(0.5, 0.5, kind), click(0.53, 0.5, kind))["raw_score"] == pytest.approx(
        gauss(0.03 / 0.034)
    )
    other = "click" if kind != "click" else "long_press"
    miss = judge(click(0.5, 0.5, kind), click(0.5, 0.5, other))
    assert (miss["raw_score"], miss["valid"], miss["failure_reason"]) == (0.0, False, "wrong_type")


def test_smallest_box_with_the_label_widens_the_kernel():
    boxes = [[0.2, 0.4, 0.8, 0.6], [0.4, 0.45, 0.6, 0.55], [0.0, 0.0, 0.1, 0.1]]
    got = judge(click(0.5, 0.5), click(0.7, 0.5), candidate_boxes=boxes)
    assert [got[f"box_{side}"] for side in ("x1", "y1", "x2", "y2")] == boxes[1]
    assert got["raw_score"] == pytest.approx(gauss(0.2 / 0.1))


def test_inside_the_box_is_a_hit_at_least_and_its_edge_counts():
    box = [[0.4, 0.45, 0.6, 0.55]]
    corner = judge(click(0.5, 0.5), click(0.6, 0.55), candidate_boxes=box)
    assert corner["raw_score"] == 0.5 and corner["valid"]
    assert not judge(click(0.41, 0.5), click(0.61, 0.5), candidate_boxes=box)["valid"]


def test_containers_are_no_boxes():
    quarter = [[0.0, 0.0, 0.5, 0.5]]
    got = judge(click(0.25, 0.25), click(0.45, 0.45), candidate_boxes=quarter)
    assert not got["valid"] and got["box_x1"] is None
    assert judge(
        click(0.25, 0.25), click(0.45, 0.45), ValidityConfig(max_box_area=0.26), candidate_boxes=quarter
    )["valid"]


def test_the_target_box_is_a_candidate_too():
    got = judge(click(0.5, 0.5), click(0.58, 0.5), target_box=[0.4, 0.45, 0.6, 0.55])
    assert got["valid"] and got["box_x2"] == 0.6


def test_boxes_are_clipped_to_the_screen_and_those_without_area_are_ignored():
    clipped = judge(click(0.95, 0.5), click(0.95, 0.5), candidate_boxes=[[0.9, 0.4, 3.0, 0.6]])
    assert clipped["box_x2"] == 1.0
    for nothing in (
        [0.5, 0.5, 0.5, 0.6],
        [1.2, 0.0, 1.4, 1.0],
        [0.6, 0.4, 0.4, 0.6],
        [0.4, 0.4],
        [math.nan, 0.4, 0.6, 0.6],
    ):
        assert judge(click(0.5, 0.5), click(0.5, 0.5), candidate_boxes=[nothing])["box_x1"] is None


def test_a_box_beside_the_label_is_not_used():
    got = judge(click(0.5, 0.5), click(0.72, 0.5), candidate_boxes=[[0.7, 0.4, 0.9, 0.6]])
    assert not got["valid"] and got["box_x1"] is None


# ---- scroll and drag


def scroll(direction, *path):
    return {"action_type": "scroll", "direction": direction} | dict(
        zip(("x", "y", "x2", "y2"), path, strict=False)
    )


def test_scroll_is_a_matter_of_direction():
    assert judge(scroll("down"), scroll("down", 0.1, 0.9))["raw_score"] == 1.0
    wrong = judge(scroll("down", 0.5, 0.5), scroll("up", 0.5, 0.5))
    assert (wrong["raw_score"], wrong["valid"], wrong["failure_reason"]) == (0.0, False, "wrong_direction")


def test_scroll_is_graded_by_its_start_but_stays_valid():
    near = judge(scroll("down", 0.5, 0.7, 0.5, 0.2), scroll("down", 0.53, 0.7))
    assert near["raw_score"] == pytest.approx(0.5 + 0.5 * gauss(0.03 / 0.034))
    far = judge(scroll("down", 0.5, 0.7), scroll("down", 0.1, 0.1), ValidityConfig(click_threshold=0.9))
    assert far["raw_score"] == pytest.approx(0.5) and far["valid"]
    nowhere = judge(scroll("down", 0.5, 0.7), scroll("down"))
    assert (nowhere["raw_score"], nowhere["valid"], nowhere["distance"]) == (0.5, True, None)


def test_drag_needs_both_ends():
    label = {"action_type": "drag", "x": 0.2, "y": 0.2, "x2": 0.8, "y2": 0.8}
    both = judge(label, label | {"x": 0.21, "y2": 0.82})
    assert both["raw_score"] == pytest.approx(gauss(0.01 / 0.034) * gauss(0.02 / 0.034))
    assert both["distance"] == pytest.approx(0.02)
    assert not judge(label, label | {"x2": 0.5})["valid"]
    swapped = {"action_type": "drag", "x": 0.8, "y": 0.8, "x2": 0.2, "y2": 0.2}
    assert judge(label, swapped)["failure_reason"] == "too_far"


# ---- words


def press(**what):
    return {"action_type": "press"} | what


@pytest.mark.parametrize(
    ("label", "answer", "reason"),
    [
        pytest.param(press(button="back"), press(button="back"), None, id="same button"),
        pytest.param(press(button="back"), press(button="home"), "wrong_button", id="other button"),
        pytest.param(
            press(keys=["ctrl", "shift", "t"]),
            press(keys=["shift", "ctrl", "t"]),
            None,
            id="modifiers in any order",
        ),
        pytest.param(press(keys=["ctrl", "c"]), press(keys=["C", "Control"]), None, id="case and spelling"),
        pytest.param(press(keys=["ctrl", "c"]), press(keys=["ctrl", "v"]), "wrong_keys", id="other key"),
        pytest.param(press(keys=["ctrl", "c"]), press(keys=["c"]), "wrong_keys", id="modifier missing"),
        pytest.param(
            press(keys=["g", "i"]), press(keys=["i", "g"]), "wrong_keys", id="plain keys keep their order"
        ),
        pytest.param(
            press(button="enter"), press(keys=["Return"]), None, id="a button equals the key of its name"
        ),
        pytest.param(press(keys=["Arrow_Up"]), press(keys=["up"]), None, id="arrow keys"),
        pytest.param(press(keys=[" "]), press(keys=["space"]), None, id="space bar"),
        pytest.param(press(keys=["-"]), press(keys=["_"]), "wrong_keys", id="keys that are punctuation"),
    ],
)
def test_press(label, answer, reason):
    got = judge(label, answer)
    assert (got["raw_score"], got["failure_reason"]) == (float(reason is None), reason)


def test_typed_text_is_graded_and_names_its_tokens():
    label = {"action_type": "input_text", "text": "buy milk today"}
    got = judge(label, {"action_type": "input_text", "text": "Milk, today"})
    assert got["raw_score"] == pytest.approx(0.8) and got["matched_text"] == "milk today" and got["valid"]
    wrong = judge(label, {"action_type": "input_text", "text": "today only one"})
    assert wrong["failure_reason"] == "wrong_text" and wrong["raw_score"] == pytest.approx(1 / 3)
    empty = judge({"action_type": "input_text", "text": ""}, {"action_type": "input_text", "text": " "})
    assert empty["raw_score"] == 1.0


def test_launch_threshold_one_is_the_exact_match():
    label, answer = ({"action_type": "open_app", "app_name": name} for name in ("Clock", "clok"))
    assert judge(label, answer)["valid"]
    exact = judge(label, answer, ValidityConfig(launch_threshold=1.0))
    assert not exact["valid"] and exact["failure_reason"] == "wrong_app"


def test_finished_is_judged_by_its_status_alone():
    done, failed = ({"action_type": "finished", "status": s, "text": "a"} for s in ("complete", "infeasible"))
    assert judge(done, done | {"text": "something else"})["raw_score"] == 1.0
    assert judge(done, failed)["failure_reason"] == "wrong_status"


def test_wait_is_its_type():
    assert judge({"action_type": "wait"}, {"action_type": "wait"})["raw_score"] == 1.0
    assert judge({"action_type": "wait"}, click(0.5, 0.5))["failure_reason"] == "wrong_type"


# ---- gates


def test_unparsable_is_zero_with_its_reason_even_at_threshold_zero():
    got = judge(click(0.5, 0.5), None, ValidityConfig(click_threshold=0.0))
    assert (got["raw_score"], got["valid"], got["failure_reason"], got["rule"]) == (
        0.0,
        False,
        "parse_error",
        "parse",
    )


def test_a_parse_error_beats_whatever_was_parsed():
    assert (
        judge(click(0.5, 0.5), click(0.5, 0.5), parse_error="two actions")["failure_reason"] == "parse_error"
    )


@pytest.mark.parametrize(
    "answer", [click(None, 0.5), click(math.nan, 0.5), click(math.inf, 0.5), {"action_type": "click"}]
)
def test_an_answer_without_its_argument_is_a_miss(answer):
    got = judge(click(0.5, 0.5), answer)
    assert (got["raw_score"], got["failure_reason"]) == (0.0, "missing_argument")


@pytest.mark.parametrize(
    ("label", "reason"),
    [
        (click(1.2, 0.5), "label_off_screen"),
        (click(0.5, -0.01), "label_off_screen"),
        (scroll("down", 1.1, 0.5), "label_off_screen"),
        (scroll(None, 0.5, 0.5), "label_missing_direction"),
        ({"action_type": "drag", "x": 0.1, "y": 0.1, "x2": 0.1, "y2": 1.4}, "label_off_screen"),
        ({"action_type": "drag", "x": 0.1, "y": 0.1}, "label_missing_point"),
        (click(None, 0.5), "label_missing_point"),
        (click(math.nan, 0.5), "label_missing_point"),
        ({"action_type": "input_text"}, "label_missing_text"),
        ({"action_type": "open_app", "app_name": " "}, "label_missing_app_name"),
        ({"action_type": "press", "keys": []}, "label_missing_key"),
        ({"action_type": "finished"}, "label_missing_status"),
        ({"action_type": "pinch"}, "label_unknown_action"),
    ],
)
def test_a_broken_label_is_unscored_never_zero(label, reason):
    for answer in (None, click(0.5, 0.5), label):
        got = judge(label, answer)
        assert got.pop("unscored_reason") == reason
        assert set(got.values()) == {None}


def test_a_drag_that_ends_off_screen_is_a_miss_of_the_answer_not_of_the_label():
    label = {"action_type": "drag", "x": 0.2, "y": 0.2, "x2": 0.8, "y2": 0.8}
    assert judge(label, label | {"x2": 1.8})["failure_reason"] == "too_far"


# ---- laws


@settings(max_examples=400)
@given(st.lists(judged_rows(), max_size=12), validity_configs)
def test_every_column_equals_the_oracle(rows, config):
    got = score(pl.DataFrame(rows, schema=SCHEMA), config)
    assert got.columns == [column.name for column in SCORE_COLUMNS] == SCORES
    for row, result in zip(rows, got.iter_rows(named=True), strict=True):
        want = expected(row, config)
        assert result == {
            k: pytest.approx(v, abs=1e-12) if isinstance(v, float) else v for k, v in want.items()
        }


@given(st.lists(judged_rows(), min_size=1, max_size=12), validity_configs)
def test_scores_lie_in_the_unit_interval_and_valid_has_no_failure(rows, config):
    got = score(pl.DataFrame(rows, schema=SCHEMA), config)
    scored = got.filter(pl.col("raw_score").is_not_null())
    assert scored["raw_score"].is_between(0.0, 1.0).all() and not scored["raw_score"].is_nan().any()
    assert (scored["valid"] == scored["failure_reason"].is_null()).all()
    assert (got["raw_score"].is_null() == got["unscored_reason"].is_not_null()).all()
    assert (got["raw_score"].is_null() == got["valid"].is_null()).all()


@given(st.lists(judged_rows(), min_size=2, max_size=12), st.randoms(use_true_random=False))
def test_rows_are_judged_one_by_one(rows, random):
    order = random.sample(range(len(rows)), len(rows))
    frame = pl.DataFrame(rows, schema=SCHEMA)
    assert score(frame[order], STRICT).equals(score(frame, STRICT)[order])
    halves = [score(part, STRICT) for part in (frame[:1], frame[1:])]
    assert pl.concat(halves).equals(score(frame, STRICT))


@given(
    st.integers(1, 1079), st.integers(1, 2399), st.integers(1, 1079), st.integers(1, 2399), st.integers(1, 7)
)
def test_coordinates_are_scale_invariant(x, y, px, py, k):
    def at(x, y, factor):
        return click(x * factor / (1080 * factor), y * factor / (2400 * factor))

    assert judge(at(x, y, 1), at(px, py, 1)) == judge(at(x, y, k), at(px, py, k))


def test_every_action_type_has_a_rule_and_no_rows_are_no_trouble():
    from solar_rl.actions import ACTION_TYPES

    assert set(RULES) == set(ACTION_TYPES)
    empty = score(pl.DataFrame(schema=SCHEMA), STRICT)
    assert empty.height == 0 and empty.columns == SCORES
