"""Several right answers: a candidate has its best verdict over the label and the alternatives."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import SCHEMA, actions, boxes, judged_rows, validity_configs

from solar_rl.actions import Action, Box
from solar_rl.columns import alternative_text, label_columns, read_alternative
from solar_rl.config import ValidityConfig
from solar_rl.errors import ActionError
from solar_rl.schema import SCORE_COLUMNS, Alternative
from solar_rl.validity import score

STRICT = ValidityConfig()
WITH = SCHEMA | {"alternatives": pl.List(pl.String)}
CLICK = {"action_type": "click", "x": 0.2, "y": 0.2}
ELSEWHERE = Alternative(Action("click", x=0.8, y=0.8), Box(0.7, 0.7, 0.9, 0.9))


def frame(*rows):
    return pl.DataFrame(rows, schema=WITH, orient="row")


def row(label, answer, *alternatives, **more):
    made = dict.fromkeys(SCHEMA) | {"candidate_boxes": []} | label | more
    made |= {f"pred_{name}": value for name, value in answer.items()}
    return made | {"alternatives": [alternative_text(each) for each in alternatives]}


def judge(*args, config=STRICT, **more):
    return score(frame(row(*args, **more)), config).row(0, named=True)


def test_the_best_right_answer_counts_with_its_evidence():
    miss = judge(CLICK, CLICK | {"x": 0.85, "y": 0.8})
    assert (miss["raw_score"] < 0.01, miss["failure_reason"]) == (True, "too_far")
    hit = judge(CLICK, CLICK | {"x": 0.85, "y": 0.8}, ELSEWHERE)
    assert hit["valid"] and hit["failure_reason"] is None and hit["distance"] == pytest.approx(0.05)
    assert (hit["box_x1"], hit["box_y2"]) == (0.7, 0.9)
    own = judge(CLICK, CLICK, ELSEWHERE, target_box=[0.1, 0.1, 0.3, 0.3])
    assert (own["raw_score"], own["distance"], own["box_x1"]) == (1.0, 0.0, 0.1)


def test_an_alternative_may_be_of_another_type():
    typed = Alternative(Action("input_text", text="buy milk"))
    keys = Alternative(Action("press", keys=("ctrl", "t")))
    got = judge(CLICK, {"action_type": "press", "keys": ["Control", "T"]}, typed, keys)
    assert (got["valid"], got["rule"], got["matched_text"]) == (True, "press", "ctrl+t")
    wrong = judge(CLICK, {"action_type": "input_text", "text": "sell"}, typed)
    assert (wrong["rule"], wrong["failure_reason"]) == ("text", "wrong_text"), "of equal ones the telling"
    assert judge(CLICK, {"action_type": "wait"}, typed)["failure_reason"] == "wrong_type"


def test_labels_that_cannot_be_judged_stay_unscored_and_such_alternatives_are_left_out():
    off = judge(CLICK | {"x": 1.5}, {"action_type": "click", "x": 0.8, "y": 0.8}, ELSEWHERE)
    assert off.pop("unscored_reason") == "label_off_screen" and set(off.values()) == {None}
    beside = Alternative(Action("click", x=1.5, y=0.5))
    assert judge(CLICK, CLICK | {"x": 0.21}, beside) == judge(CLICK, CLICK | {"x": 0.21})


def test_alternatives_are_written_and_read_back():
    for action in (
        Action("press", keys=("ctrl", "c")),
        Action("scroll", 0.5, 0.75, direction="down"),
        Action("finished", status="complete", text='ä "quoted"'),
    ):
        for box in (None, Box(0, 0.25, 1, 1)):
            written = Alternative(action, box)
            assert read_alternative(alternative_text(written)) == written


def test_label_columns_carry_the_alternatives():
    keys = {"episode_id": ["e"], "step_index": [0]}
    steps = pl.DataFrame({**keys, "thought": ["t"], "alternatives": [["{}"]]})
    episodes = pl.DataFrame({"episode_id": ["e"], "ref_len": [1]})
    assert label_columns(pl.DataFrame(keys), steps, episodes)["alternatives"].to_list() == [["{}"]]


# ---- laws


@st.composite
def alternatives(draw):
    """Draw an alternative that a builder may give: a whole action, with or without a box."""
    values = draw(actions())
    try:
        action = Action(**values | {"keys": tuple(values["keys"]) if values["keys"] else None})
    except ActionError:
        action = Action("wait")
    return Alternative(action, draw(st.one_of(st.none(), boxes.map(lambda b: Box(*b)))))


@st.composite
def rows_with_alternatives(draw):
    """Draw candidates beside labels and alternatives, some of which are what was answered."""
    made = draw(judged_rows())
    given_ = draw(st.lists(alternatives(), max_size=3))
    answer = {name: made[f"pred_{name}"] for name in SCHEMA if f"pred_{name}" in made}
    if draw(st.booleans()):
        try:
            keys = tuple(answer["keys"]) if answer["keys"] else None
            given_.append(Alternative(Action(**answer | {"keys": keys})))
        except ActionError:
            pass
    return made, given_


def scored(pairs, config):
    rows = [made | {"alternatives": [alternative_text(a) for a in given_]} for made, given_ in pairs]
    return score(frame(*rows), config)


def alone(made, alternative):
    """Return the row whose label is the alternative."""
    columns = {name: getattr(alternative.action, name, None) for name in SCHEMA if f"pred_{name}" in SCHEMA}
    columns["keys"] = list(columns["keys"]) if columns["keys"] else None
    box = list(alternative.box) if alternative.box else None
    return made | columns | {"target_box": box, "candidate_boxes": []}


@settings(max_examples=60)
@given(st.lists(rows_with_alternatives(), min_size=1, max_size=6), validity_configs)
def test_a_score_is_the_highest_of_those_by_each_right_answer_alone(pairs, config):
    got = scored(pairs, config)
    assert got.columns == [column.name for column in SCORE_COLUMNS]
    for (made, given_), result in zip(pairs, got.iter_rows(named=True), strict=True):
        singles = score(pl.DataFrame([made, *(alone(made, a) for a in given_)], schema=SCHEMA), config)
        singles = singles.rows(named=True)
        if singles[0]["raw_score"] is None:
            assert result == singles[0]
            continue
        known = [single for single in singles if single["raw_score"] is not None]
        assert result["raw_score"] == max(single["raw_score"] for single in known)
        assert result["valid"] == any(single["valid"] for single in known)
        assert result in known, "the evidence is that of one of them"


@settings(max_examples=60)
@given(st.lists(rows_with_alternatives(), min_size=1, max_size=6), validity_configs, alternatives())
def test_another_right_answer_never_lowers_a_score(pairs, config, more):
    fewer = scored(pairs, config)
    grown = scored([(made, [*given_, more]) for made, given_ in pairs], config)
    assert (grown["raw_score"] >= fewer["raw_score"]).fill_null(True).all()
    assert (grown["valid"] >= fewer["valid"]).fill_null(True).all()
    assert (grown["raw_score"].is_null() == fewer["raw_score"].is_null()).all()


@settings(max_examples=60)
@given(st.lists(rows_with_alternatives(), min_size=1, max_size=6), validity_configs, st.randoms())
def test_the_order_of_alternatives_and_their_repetition_change_nothing(pairs, config, random):
    shuffled = [(made, random.sample(given_, len(given_)) + given_[:1]) for made, given_ in pairs]
    assert scored(shuffled, config).equals(scored(pairs, config))


@settings(max_examples=60)
@given(st.lists(judged_rows(), max_size=8), st.lists(rows_with_alternatives(), max_size=4), validity_configs)
def test_rows_without_alternatives_are_judged_as_ever(plain, pairs, config):
    before = score(pl.DataFrame(plain, schema=SCHEMA), config)
    mixed = scored([*((made, []) for made in plain), *pairs], config)
    assert mixed.head(len(plain)).equals(before)
    absent = pl.DataFrame(plain, schema=SCHEMA).with_columns(alternatives=pl.lit(None, pl.List(pl.String)))
    assert score(absent, config).equals(before)
