"""``solar-rl judge``: verdicts in order, and one clear line with exit 2 for every kind of bad input."""

import io
import json
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solar_rl.cli import main
from solar_rl.errors import InputError
from solar_rl.judging import judge_lines
from solar_rl.protocols import PROTOCOLS

GOOD = {
    "case_id": "1-0-0",
    "screen_w": 1080,
    "screen_h": 2400,
    "expert": {"action_type": "click", "x": 540, "y": 1200},
    "candidate_bboxes": [[500, 1100, 600, 1300]],
    "prediction": {"action_type": "click", "x": 590, "y": 1290},
}


def case(**changes):
    """Return a good case with some fields changed; a dotted name changes an action's field."""
    made = json.loads(json.dumps(GOOD))
    for name, value in changes.items():
        *path, last = name.split("__")
        place = made[path[0]] if path else made
        if value is ...:
            del place[last]
        else:
            place[last] = value
    return json.dumps(made)


def judge(*lines, protocol="uis1_eval"):
    return list(judge_lines(lines, protocol, name="cases.jsonl"))


def run(*arguments):
    """Run the command line; return exit code, stdout, stderr."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as stop:
            code = int(stop.code or 0)
    return code, out.getvalue(), err.getvalue()


def test_verdicts_come_in_the_order_of_the_cases(tmp_path):
    file = tmp_path / "cases.jsonl"
    file.write_text("\n".join([case(case_id="b"), "", case(case_id="a", prediction=None)]) + "\n")
    code, out, err = run("judge", file, "--protocol", "uis1_eval")
    assert (code, err) == (0, "")
    assert [json.loads(line) for line in out.splitlines()] == [
        {"case_id": "b", "type_match": 1, "exact_match": 1, "reward": None, "dropped": None},
        {
            "case_id": "a",
            "type_match": 0,
            "exact_match": 0,
            "reward": None,
            "dropped": None,
            "error": "TypeError",
        },
    ]


def test_cases_can_come_from_stdin():
    command = [sys.executable, "-m", "solar_rl.cli", "judge", "--protocol", "solar"]
    done = subprocess.run(
        command, input=case() + "\n", capture_output=True, text=True, check=True, env=os.environ
    )
    assert json.loads(done.stdout)["exact_match"] == 1


def test_rewards_are_rounded_to_six_decimals():
    (verdict,) = judge(case(prediction__x=577, prediction__y=1233), protocol="agentcpm_rft")
    assert verdict["reward"] == round(verdict["reward"], 6)
    assert "error" not in verdict


def test_the_single_box_is_derived_where_it_is_not_stated():
    boxes = [[0, 0, 1080, 2400], [530, 1190, 550, 1210], [560, 1190, 550, 1210], [0, 0, 5, 5]]
    inside, outside = (
        {"prediction__x": 545, "prediction__y": 1205},
        {"prediction__x": 900, "prediction__y": 1205},
    )
    for where, want in ((inside, 1), (outside, 0)):
        (derived,) = judge(case(candidate_bboxes=boxes, **where), protocol="uir1_reward")
        (stated,) = judge(case(candidate_bboxes=boxes, single_bbox=boxes[1], **where), protocol="uir1_reward")
        assert derived == stated
        assert derived["exact_match"] == want
    (none,) = judge(case(candidate_bboxes=boxes, single_bbox=None), protocol="uir1_reward")
    assert none["dropped"] == "click without a box"


BAD = {
    "half a line": (case()[:40], "is no JSON"),
    "not an object": ("[]", "is no JSON object"),
    "NaN": (case(prediction__x=float("nan")), "NaN"),
    "infinity": (case(expert__x=float("inf")), "Infinity"),
    "a number beyond floats": (case(prediction__x=10**400), "expected a number"),
    "no prediction": (case(prediction=...), "has no field prediction"),
    "no boxes": (case(candidate_bboxes=...), "has no field candidate_bboxes"),
    "no screen": (case(screen_w=..., screen_h=...), "has no field screen_w, screen_h"),
    "no label": (case(expert=None), "expert is no object"),
    "a label without a point": (case(expert__y=...), "expert is click without y"),
    "an unknown label": (case(expert={"action_type": "fly"}), "unknown action 'fly'"),
    "an unknown answer": (case(prediction={"action_type": "fly"}), "unknown action 'fly'"),
    "an answer as a list of types": (case(prediction={"action_type": ["click"]}), "unknown action"),
    "an answer that is a text": (case(prediction="click"), "null stands for an answer"),
    "a text as coordinate": (case(prediction__x="590"), "prediction has x = '590'"),
    "a truth as coordinate": (case(prediction__x=True), "prediction has x = True"),
    "null as coordinate": (case(prediction__x=None), "prediction has x = None"),
    "a number as text": (case(prediction={"action_type": "input_text", "text": 5}), "expected a text"),
    "half a character": (case(prediction={"action_type": "input_text", "text": "\ud800"}), "expected a text"),
    "a label's odd direction": (
        case(expert={"action_type": "scroll", "direction": "DOWN"}),
        "expected up, down, left, right",
    ),
    "a box of three": (case(candidate_bboxes=[[1, 2, 3]]), "expected [x1, y1, x2, y2]"),
    "a box that is a flat list": (case(candidate_bboxes=[1, 2, 3, 4]), "expected [x1, y1, x2, y2]"),
    "an odd single box": (case(single_bbox=[]), "single_bbox has []"),
    "no id": (case(case_id=""), "case_id is ''"),
    "an id that is a number": (case(case_id=5), "case_id is 5"),
    "a screen of nothing": (case(screen_w=0), "0 x 2400"),
    "a screen of a fraction": (case(screen_w=1080.5), "positive whole numbers"),
    "a screen that is a text": (case(screen_w="1080"), "positive whole numbers"),
    "a screen beyond floats": (case(screen_w=10**400), "positive whole numbers"),
    "a screen too narrow": (case(screen_w=3, expert__x=1), "too narrow"),
    "a screen too small for the label": (
        case(screen_w=500, screen_h=1000),
        "lies beyond the screen of 500 x 1000",
    ),
    "sides swapped": (case(screen_w=2400, screen_h=1080), "is screen_w x screen_h right?"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_lines_are_named_with_their_place(kind, tmp_path):
    line, message = BAD[kind]
    file = tmp_path / "cases.jsonl"
    file.write_text(case(case_id="good") + "\n" + line + "\n")
    code, out, err = run("judge", file, "--protocol", "osatlas_ac")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert f"{file}:2: " in err
    assert message in err


def test_a_repeated_case_names_both_lines():
    with pytest.raises(InputError, match=r"cases.jsonl:3: repeats case_id '1-0-0' of cases.jsonl:1"):
        judge(case(), case(case_id="x"), case())


@pytest.mark.parametrize("lines", [[], [""], ["\n", "  "]])
def test_no_case_is_an_error(lines):
    with pytest.raises(InputError, match="there is no case"):
        judge(*lines)


def test_bytes_that_are_no_text_are_named():
    with pytest.raises(InputError, match=r"cases\.jsonl:1: is no JSON"):
        judge(b'{"case_id": "\xff"}')


def test_an_unknown_protocol_and_file_are_one_line(tmp_path):
    file = tmp_path / "cases.jsonl"
    file.write_text(case())
    for arguments, message in (
        ((file, "--protocol", "uis1_evl"), "did you mean uis1_eval"),
        ((tmp_path / "none.jsonl", "--protocol", "solar"), "none.jsonl: can't be read"),
        ((tmp_path, "--protocol", "solar"), "can't be read"),
        ((file,), "--protocol"),
    ):
        code, out, err = run("judge", *arguments)
        assert (code, out) == (2, "")
        assert message in err
        assert "Traceback" not in err


def test_a_protocol_tells_its_source_and_its_faults():
    code, out, _ = run("judge", "--protocol", "osatlas_ac", "--about")
    assert code == 0
    assert "OS-Copilot/OS-Atlas bad08407" in out
    assert "a minus sign is lost" in out


def test_an_off_screen_answer_and_odd_boxes_are_judged():
    odd = case(
        prediction={"action_type": "click", "x": -100, "y": 9999.5},
        candidate_bboxes=[[-55, 0, 10, 10], [5, 5, 5, 5], [9, 9, 1, 1]],
    )
    for protocol in PROTOCOLS:
        assert judge(odd, protocol=protocol)[0]["exact_match"] in (0, None)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["x", "y", "text", "action_type"]), inner)
    ),
    max_leaves=6,
)


@given(
    field=st.sampled_from(
        [*GOOD, "expert__x", "prediction__x", "prediction__y", "prediction__action_type", "single_bbox"]
    ),
    value=VALUES,
    protocol=st.sampled_from(list(PROTOCOLS)),
)
def test_any_value_gives_a_verdict_or_its_own_error(field, value, protocol):
    try:
        (verdict,) = judge(case(**{field: value}), protocol=protocol)
    except InputError as error:
        assert str(error).startswith("cases.jsonl:1: ")
    else:
        assert json.loads(json.dumps(verdict, allow_nan=False)) == verdict
