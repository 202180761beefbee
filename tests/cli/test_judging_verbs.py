"""parse and evaluate on the command line: figures on stdout, one clear line and exit 2 for wrong input."""

import io
import json
import re
import sys
from contextlib import redirect_stderr, redirect_stdout

import pytest
from lawful_dataset import write_small_dataset

from solar_rl.actions import ACTION_FIELDS
from solar_rl.cli import main
from solar_rl.store.dataset import open_dataset


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("judging")
    write_small_dataset(folder / "small")
    steps = open_dataset(folder / "small").steps.collect(engine="in-memory")
    lines = []
    for row in steps.select("episode_id", "step_index", *ACTION_FIELDS).to_dicts():
        lines.append(json.dumps({name: value for name, value in row.items() if value is not None}))
    (folder / "pred.jsonl").write_text("\n".join(lines))
    return folder


@pytest.fixture
def solar(home, monkeypatch):
    monkeypatch.chdir(home)
    monkeypatch.setenv("COLUMNS", "140")

    def run(*arguments, stdin: bytes = b""):
        out, err, code = io.StringIO(), io.StringIO(), 0
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        with redirect_stdout(out), redirect_stderr(err):
            try:
                main([str(argument) for argument in arguments])
            except SystemExit as stop:
                code = int(stop.code or 0)
        return code, out.getvalue(), err.getvalue()

    return run


def test_parse_says_each_answer_and_exits_0(solar):
    lines = b'{"raw": "Action: press_back()"}\n{"raw": "hm"}\n'
    code, out, err = solar("parse", "--format", "ui_tars", stdin=lines)
    assert (code, err) == (0, "")
    assert [json.loads(line) for line in out.splitlines()] == [
        {"type": "navigate_back"},
        {"error": True, "reason": "no 'Action:'"},
    ]
    code, out, _ = solar("parse", "--format", "ui_tars", "--canonical", stdin=lines)
    assert json.loads(out.splitlines()[0]) == {"action_type": "press", "button": "back"}


@pytest.mark.parametrize(
    ("arguments", "stdin", "told"),
    [
        (("--format", "ui_tars"), b'{"raw": "x"}\n{"raw', "line 2: is no JSON"),
        (("--format", "ui_tars"), b"\xff", "line 1: is no JSON"),
        (("--format", "ui_venus"), b'{"raw": "x"}', "needs resized_w and resized_h"),
        (("--format", "tars"), b"", "no format is named 'tars'"),
        (("nowhere.jsonl", "--format", "ui_tars"), b"", "nowhere.jsonl: can't be read"),
        ((), b"", "--format"),
    ],
)
def test_parse_refuses_broken_input(solar, arguments, stdin, told):
    code, _, err = solar("parse", *arguments, stdin=stdin)
    assert code == 2
    assert told in err
    assert err.count("\n") == 1


def test_evaluate_prints_protocol_steps_and_metrics(solar):
    code, out, _ = solar("evaluate", "pred.jsonl", "--data", "small", "--protocol", "uis1_eval")
    assert code == 0
    assert "protocol uis1_eval: X-PLUG/MobileAgent 11cea575" in out
    assert re.search(r"uis1_eval, \d+ steps: metrics", out)
    assert "by bucket (rule phone)" in out
    assert "level not stated, no skip list" in out


def test_evaluate_writes_verdicts_unless_dry(solar, home):
    arguments = ("evaluate", "pred.jsonl", "--data", "small", "--bootstrap", 0, "--verdicts", "v.jsonl")
    assert solar(*arguments, "--dry-run")[0] == 0
    assert not (home / "v.jsonl").exists()
    code, out, err = solar(*arguments, "--json", "--level", "low")
    assert code == 0
    (result,) = json.loads(out)
    assert (result["level"], result["data"]) == ("low", "small 1.0.0")
    (found,) = result["protocols"]
    assert found["metrics"]["task_sr"] == {"value": 1.0, "low": None, "high": None, "of": 18}
    rows = [json.loads(line) for line in (home / "v.jsonl").read_text().splitlines()]
    assert len(rows) == found["counts"]["judged"] == 81
    assert "81 verdicts" in err
    assert {"episode_id", "step_index", "type_match", "exact_match", "reward", "dropped", "protocol"} <= rows[
        0
    ].keys()


def test_evaluate_lays_all_protocols_side_by_side(solar):
    code, out, _ = solar("evaluate", "pred.jsonl", "--data", "small", "--protocol", "all", "--bootstrap", 20)
    assert code == 0
    for name in ("solar", "agentcpm_eval_014", "uir1_reward", "sources:", "disagree most"):
        assert name in out


def test_levels_are_measured_apart(solar, home):
    lines = (home / "pred.jsonl").read_text().splitlines()
    both = [json.dumps(json.loads(line) | {"level": level}) for level in ("high", "low") for line in lines]
    (home / "both.jsonl").write_text("\n".join(both))
    code, out, _ = solar("evaluate", "both.jsonl", "--data", "small", "--json", "--bootstrap", 0)
    assert code == 0
    assert [(one["level"], one["protocols"][0]["counts"]["judged"]) for one in json.loads(out)] == [
        ("high", 81),
        ("low", 81),
    ]


@pytest.mark.parametrize(
    ("change", "arguments", "told"),
    [
        (lambda lines: lines, ("--protocol", "uis1"), "no protocol is named 'uis1' (did you mean 'uis1_"),
        (lambda lines: lines, ("--split", "dev"), "no split is named 'dev'"),
        (lambda lines: lines, ("--format", "json"), "bad.jsonl:1: 'raw' is missing"),
        (lambda lines: lines, ("--skip", "none.jsonl"), "none.jsonl: can't be read"),
        (lambda lines: lines, ("--verdicts", "no/where.jsonl"), "no/where.jsonl: can't be written"),
        (lambda lines: lines[1:], (), "1 of 81 steps that solar judges have no prediction"),
        (lambda lines: [*lines, lines[0]], (), "bad.jsonl:82: step 0 of episode e000 is answered twice"),
        (
            lambda lines: [*lines, lines[0].replace("e000", "e9")],
            (),
            "1 of 82 predictions are for steps that",
        ),
        (lambda lines: [*lines, '{"episode_id": "e'], (), "bad.jsonl:82: is no JSON"),
        (lambda lines: [], (), "bad.jsonl: holds no predictions"),
    ],
)
def test_evaluate_refuses_wrong_input(solar, home, change, arguments, told):
    lines = sorted((home / "pred.jsonl").read_text().splitlines())
    (home / "bad.jsonl").write_text("\n".join(change(lines)))
    code, _, err = solar("evaluate", "bad.jsonl", "--data", "small", "--bootstrap", 0, *arguments)
    assert code == 2
    assert told in err
    assert err.count("\n") == 1


def test_calibrate_holds_the_rules_against_themselves(solar):
    code, out, _ = solar("calibrate", "small", "--verifier", "rules", "--limit", 50, "--json")
    assert code == 0
    found = json.loads(out)
    assert found["figures"]["candidates"] == found["figures"]["compared"] == 50
    assert found["figures"]["agreement"] == 1.0
    assert sum(row["candidates"] for row in found["by_type"]) == 50
    code, out, _ = solar("calibrate", "small", "--verifier", "rules")
    assert code == 0
    for title in ("reliability", "disagreement by action type", "ece"):
        assert title in out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--verifier", "http://127.0.0.1:1/v1"), "needs the name of its model"),
        (("--verifier", "http://127.0.0.1:1/v1", "--model", "m", "--retries", 0), "can't be reached"),
        (("--verifier", "judge"), "'judge' is no verifier"),
        (("--verifier", "rules", "--limit", 0), "limit"),
        ((), "verifier"),
    ],
)
def test_calibrate_refuses_wrong_input(solar, arguments, told):
    code, _, err = solar("calibrate", "small", *arguments)
    assert code == 2
    assert told in err
    assert err.count("\n") == 1


def test_calibrate_asks_nothing_when_dry(solar):
    code, out, _ = solar("calibrate", "small", "--verifier", "http://127.0.0.1:1/v1", "--dry-run")
    assert code == 0
    assert "would judge" in out


def test_the_result_file_of_agentcpm_is_read_as_it_is(solar, home):
    """Their file lacks open_app, which their protocol drops, and has a finish beyond AndroidControl's steps."""
    lines = []
    for line in (home / "pred.jsonl").read_text().splitlines():
        row = json.loads(line)
        if row["action_type"] == "open_app":
            continue
        answer = {"POINT": [500, 250]} if row["action_type"] == "click" else "Error"
        lines.append({"episode_id": row["episode_id"], "step_id": row["step_index"], "pred": answer})
    finish = {"episode_id": "e000", "step_id": 99, "result_action_type": 10, "pred": {"STATUS": "finish"}}
    (home / "all.jsonl").write_text("\n".join(json.dumps(row) for row in [*lines, finish]))
    arguments = ("evaluate", "all.jsonl", "--peer", "agentcpm", "--data", "small", "--bootstrap", 0, "--json")
    code, out, err = solar(*arguments, "--protocol", "agentcpm_eval_014")
    assert code == 0, err
    (found,) = json.loads(out)[0]["protocols"]
    assert found["counts"]["missing"] == 0
    assert found["counts"]["dropped"] > 0
    clicks = next(row for row in found["by"]["action_type"] if row["action_type"] == "click")
    assert clicks["exact_match"] == 1.0
    code, _, err = solar(*arguments, "--protocol", "solar")
    assert code == 2
    assert "steps that solar judges have no prediction" in err
    assert solar(*arguments, "--protocol", "all", "--missing", "skip")[0] == 0
