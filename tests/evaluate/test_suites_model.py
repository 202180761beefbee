"""A real (if tiny and random) model on suites: greedy, resumable, asked as it was trained."""

import json

import pytest

from solar_rl.cli import main
from solar_rl.config import TransformersSampler

torch = pytest.importorskip("torch")
pytest.importorskip("trl")
pytestmark = pytest.mark.train
SHORT = ("--sampler.max_new_tokens", "8", "--bootstrap", "20", "--json", "--prompt.max_pixels", "50176")


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    from solar_rl.train.tiny import make_tiny_policy

    return make_tiny_policy(tmp_path_factory.mktemp("policies") / "tiny")


def run(capsys, *words):
    with pytest.raises(SystemExit) as stopped:
        main(["evaluate", *map(str, words)])
    said = capsys.readouterr()
    assert stopped.value.code == 0, said.err
    return json.loads(said.out)


def test_steps_are_answered_greedily_once(capsys, policy, tmp_path, monkeypatch):
    words = ("--model", policy, "--suite", "phone_steps", "--limit", 1, *SHORT)
    first = run(capsys, *words, "--out", tmp_path / "a")
    assert (
        first["temperature"] == 0 and first["counts"]["cut off at max_new_tokens"] == first["counts"]["steps"]
    )
    assert first["protocols"][0]["metrics"]["exact_match"]["value"] < 0.5
    kept = (tmp_path / "a" / "predictions.jsonl").read_bytes()
    assert run(capsys, *words, "--out", tmp_path / "b")["protocols"] == first["protocols"]
    assert (tmp_path / "b" / "predictions.jsonl").read_bytes() == kept

    def no_model(*_, **__):
        raise AssertionError("every answer is known")

    monkeypatch.setattr("solar_rl.sampling.transformers.load_policy", no_model)
    (tmp_path / "a" / "predictions.jsonl").unlink()
    assert run(capsys, *words, "--out", tmp_path / "a") == first
    assert (tmp_path / "a" / "predictions.jsonl").read_bytes() == kept


def test_the_phone_is_played_and_played_again(capsys, policy, tmp_path):
    words = ("--model", policy, "--suite", "phone", "--limit", 2, "--suite.tasks", "[short]", *SHORT)
    words += ("--suite.max_steps", 3, "--out", tmp_path)
    first = run(capsys, *words)
    assert first["overall"]["success"] == 0.0 and first["overall"]["steps"] <= 3
    assert all(len(episode["answers"]) == episode["steps"] for episode in first["episodes"])
    assert run(capsys, *words) == first


def test_a_checkpoint_is_asked_as_it_was_trained(capsys, policy, tmp_path):
    record = {"made_by": {"prompt": {"format": "json", "max_pixels": 50176, "level": "high"}}}
    (policy / "training.json").write_text(json.dumps(record))
    with pytest.raises(SystemExit):
        main(["evaluate", "--model", str(policy), "--suite", "phone_steps", "--dry-run"])
    said = capsys.readouterr().out
    (policy / "training.json").unlink()
    assert "format json" in said and "to 50,176 pixels" in said


def test_a_greedy_answer_is_the_likeliest(policy):
    from solar_rl.sampling.transformers import _Draw

    scores = torch.tensor([[0.1, 2.0, 1.9], [3.0, 0.0, 5.0]])
    draw = _Draw([1, 2], 0.0, [2])
    assert draw(torch.zeros(2, 1), scores).argmax(dim=-1).tolist() == [1, 0]
    expected = torch.log_softmax(scores.double(), dim=-1)[[0, 1], [1, 0]].tolist()
    assert [row[0] for row in draw.logprobs()] == pytest.approx(expected)
    with pytest.raises(ValueError, match="set n to 1"):
        TransformersSampler(model="m", temperature=0, n=2)
