"""Suites: what is shipped is sound, and a model, an expert or a file of predictions is measured on them."""

import json

import pytest
from lawful_dataset import write_small_dataset

from solar_rl.cli import main
from solar_rl.errors import ConfigError, InputError
from solar_rl.evaluate.suites import ClosedLoopSuite, StepSuite, load_suite, suite_names

SEVERAL = ("--suite.protocols", "[solar, uis1_eval, agentcpm_eval_ac004]")
FAST = ("--suite", "phone_steps", *SEVERAL, "--source.options.episodes", "3", "--bootstrap", "20", "--json")


def run(capsys, *words, code=0):
    """Run the verb; return what it prints."""
    with pytest.raises(SystemExit) as stopped:
        main(["evaluate", *map(str, words)])
    assert stopped.value.code == code
    said = capsys.readouterr()
    return said.err if code else said.out


@pytest.fixture(scope="module")
def expert(tmp_path_factory):
    """The folder that an expert's run leaves."""
    out = tmp_path_factory.mktemp("suites") / "expert"
    with pytest.raises(SystemExit):
        main(["evaluate", "--sampler", "expert", *FAST, "--out", str(out)])
    return out


def values(report, protocol="solar"):
    [found] = [each for each in report["protocols"] if each["protocol"] == protocol]
    return {name: each["value"] for name, each in found["metrics"].items()}


def test_every_shipped_suite_is_sound():
    assert {
        "android_control_low",
        "android_control_high",
        "gui_odyssey",
        "phone",
        "phone_steps",
        "miniwob",
    } <= set(suite_names())
    for name in suite_names():
        suite = load_suite(name)
        assert suite.name == name and suite.about
        if isinstance(suite, StepSuite):
            assert suite.protocols[0] == "solar" and suite.source["splits"] == ["test"]
            known = {None, *suite.protocols}
            assert {each.protocol for each in suite.published} <= known
            assert all(each.source for each in suite.published)


def test_low_and_high_differ_in_what_the_model_is_given_alone():
    low, high = load_suite("android_control_low"), load_suite("android_control_high")
    assert (low.level, high.level) == ("low", "high")
    same = {"name", "about", "prompt", "published"}
    assert low.model_dump(exclude=same) == high.model_dump(exclude=same)
    best = {each.model: each.value for each in low.published if each.metric == "exact_match"}
    assert best["SOLAR-RL (7B)"] == 88.57


def test_fields_are_set_and_mistakes_told(tmp_path):
    suite = load_suite("phone", {"suite.seeds": "3", "source.path": "elsewhere"})
    assert isinstance(suite, ClosedLoopSuite) and suite.seeds == 3
    with pytest.raises(InputError, match="did you mean 'phone'"):
        load_suite("phon")
    with pytest.raises(ConfigError, match=r"unknown key 'seed'.*did you mean 'seeds'"):
        load_suite("phone", {"suite.seed": "3"})
    own = tmp_path / "mine.yaml"
    own.write_text("about: mine\nsource: {builder: phone}\nbuckets: phone\nprotocols: [nobody]\n")
    with pytest.raises(ConfigError, match="'nobody' is no protocol"):
        load_suite(str(own))
    own.write_text(own.read_text().replace("nobody", "solar"))
    assert load_suite(str(own)).name == "mine"
    own.write_text("kind: other\n")
    with pytest.raises(ConfigError, match="expected steps or closed_loop"):
        load_suite(str(own))


def test_the_expert_is_perfect_under_every_protocol(expert):
    report = json.loads((expert / "report.json").read_text())
    for protocol in ("solar", "uis1_eval", "agentcpm_eval_ac004"):
        found = values(report, protocol)
        assert (found["exact_match"], found["task_sr"]) == (1.0, 1.0)
    assert report["counts"]["steps"] == len((expert / "predictions.jsonl").read_text().splitlines())
    assert report["protocols"][0]["bucket_rule"] == "phone"
    assert (expert / "rejects.jsonl").read_text() == ""


def test_what_was_answered_is_judged_again_from_its_file(expert, capsys, tmp_path):
    file = expert / "predictions.jsonl"
    again = json.loads(run(capsys, file, *FAST, "--verdicts", tmp_path / "v.jsonl"))
    first = json.loads((expert / "report.json").read_text())
    assert [values(again, p["protocol"]) for p in again["protocols"]] == [
        values(first, p["protocol"]) for p in first["protocols"]
    ]
    assert len((tmp_path / "v.jsonl").read_text().splitlines()) == 3 * again["counts"]["steps"]
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    half = tmp_path / "half.jsonl"
    half.write_text("\n".join(json.dumps(row) for row in lines[1:]))
    assert "have no prediction" in run(capsys, half, *FAST, code=2)
    found = json.loads(run(capsys, half, *FAST, "--missing", "wrong", "--protocol", "solar"))
    assert found["protocols"][0]["counts"]["missing"] == 1


def test_a_dataset_folder_does_as_well(capsys, tmp_path):
    data = write_small_dataset(tmp_path / "small")
    words = ("--sampler", "expert", "--data", data, "--split", "test", "--json", "--bootstrap", 0)
    report = json.loads(run(capsys, *words, "--out", tmp_path / "out", "--limit", 2))
    assert values(report)["exact_match"] == 1.0
    assert report["data"].startswith("2 episodes") and report["suite"] is None
    assert "format json" in report["prompt"]  # the model is asked as the dataset's sampler was


def test_low_needs_instructions(capsys, tmp_path):
    words = ("--suite", "phone_steps", "--sampler", "expert", "--level", "low", "--out", tmp_path, "--json")
    report = json.loads(run(capsys, *words, "--source.options.episodes", 1))
    assert report["counts"]["steps without an instruction"] == 0 and report["level"] == "low"


def test_published_figures_stand_beside_ours_under_the_same_rule_alone(capsys, tmp_path):
    own = tmp_path / "own.yaml"
    own.write_text(
        "about: mine\nsource: {builder: phone, options: {episodes: 2}}\nbuckets: phone\nprotocols: [solar, uis1_eval]\n"
        "published:\n"
        "  - {model: A, metric: exact_match, value: 50, protocol: uis1_eval, source: somewhere}\n"
        "  - {model: B, metric: exact_match, value: 60, source: elsewhere}\n"
    )
    words = ("--suite", own, "--sampler", "expert", "--out", tmp_path / "o")
    report = json.loads(run(capsys, *words, "--json"))
    assert [row["ours"] for row in report["published"]] == [100.0, None]
    text = run(capsys, *words)
    assert "not measured here; ours where the rule is the same" in text and "somewhere" in text
    own.write_text(own.read_text() + "reference: {episodes: 9, steps: 90, source: the whole}\n")
    report = json.loads(run(capsys, *words, "--json", "--source.options.seed", 5))
    assert [row["ours"] for row in report["published"]] == [None, None]
    assert "the whole has 9 and 90" in report["data"] and report["changed"] == {"source.options.seed": "5"}
    assert "ours left out" in run(capsys, *words)


def test_closed_loop_from_the_command_line(capsys, tmp_path):
    words = (
        "--suite",
        "phone",
        "--sampler",
        "expert",
        "--limit",
        1,
        "--suite.tasks",
        "[short]",
        "--bootstrap",
        20,
    )
    report = json.loads(run(capsys, *words, "--out", tmp_path, "--json"))
    assert report["overall"]["success"] == report["overall"]["progress"] == 1.0
    assert report["overall"]["wrong"] == 0.0 and report["changed"] == {"tasks": ["short"]}
    [line] = (tmp_path / "episodes.jsonl").read_text().splitlines()
    assert json.loads(line)["ended"] == "finished"
    assert "by length of the expert's way (rule phone)" in run(capsys, *words, "--out", tmp_path)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "what is to be measured"),
        (("p.jsonl",), "need their labels"),
        (("p.jsonl", "--data", "d", "--source.path", "x"), "--source.path means nothing here"),
        (("p.jsonl", "q.jsonl", "--data", "d"), "unexpected argument 'q.jsonl'"),
        (("--suite", "phone_steps"), "who is to be measured"),
        (("--model", "m"), "on what"),
        (("--suite", "phone_steps", "--model", "m", "p.jsonl"), "which is to be measured"),
        (("--suite", "phone", "--sampler", "expert", "--protocol", "solar"), "played in closed loop"),
        (("--suite", "phone", "--sampler", "expert", "--level", "low"), "no step instructions"),
        (("--suite", "phone_steps", "--sampler", "expert", "--protocol", "nobody"), "no protocol is named"),
        (("--suite", "gui_odyssey", "--sampler", "expert"), "needs source.path"),
        (("--suite", "phone_steps", "--sampler", "nobody"), "nobody"),
        (
            ("--suite", "phone_steps", "--model", "m", "--sampler.n", "4"),
            "temperature 0 gives the same answer",
        ),
    ],
)
def test_wrong_words_are_told_in_one_line(capsys, tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    error = run(capsys, *words, code=2)
    assert said in error and error.count("\n") <= 3 and "Traceback" not in error


def test_a_dry_run_asks_nobody(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for suite in ("phone", "phone_steps"):
        said = run(capsys, "--suite", suite, "--model", "some/model", "--dry-run")
        assert "would measure some/model" in said and "format qwen25vl_mobile_use" in said
    assert not list(tmp_path.iterdir())
