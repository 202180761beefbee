"""Answers from a file: JSONL or parquet, nothing missing, nothing twice."""

import json

import polars as pl
import pytest
from demonstration import make_episode, make_requests

from solar_rl.config import PromptConfig, RecordedSampler
from solar_rl.errors import ConfigError, InputError
from solar_rl.sampling import make_sampler

PROMPT = PromptConfig(format="json")
EPISODE = make_episode()


def rows(n=2):
    return [
        {"episode_id": "e", "step_index": t, "candidate_index": k, "completion": f"{t}.{k}"}
        | {"token_ids": [t, k], "sampling_logprobs": [-1.0, -0.5], "seed": 100 * t + k, "sampler_id": "m"}
        for t in range(EPISODE.ref_len)
        for k in range(n)
    ]


def write_jsonl(path, data):
    path.write_text("\n".join(json.dumps(row) for row in data) + "\n", encoding="utf-8")
    return path


def load(path):
    return make_sampler(RecordedSampler(path=str(path), n=2), PROMPT)


def test_jsonl_and_parquet_give_the_same(tmp_path):
    write_jsonl(tmp_path / "a.jsonl", rows())
    pl.DataFrame(rows()).write_parquet(tmp_path / "a.parquet")
    requests = make_requests(EPISODE, PROMPT, 2)
    one, two = load(tmp_path / "a.jsonl"), load(tmp_path / "a.parquet")
    first = list(one.sample(requests))
    assert first == list(two.sample(requests))
    assert first[3][1].text == "3.1"
    assert first[3][1].token_ids == (3, 1)
    assert first[3][1].logprobs == (-1.0, -0.5)
    assert first[3][1].seed == 301
    assert one.sampler_id == two.sampler_id == "m"


def test_a_row_needs_its_key_and_its_text_only(tmp_path):
    bare = [
        {k: row[k] for k in ("episode_id", "step_index", "candidate_index", "completion")} for row in rows()
    ]
    sampler = load(write_jsonl(tmp_path / "bare.jsonl", bare))
    request = make_requests(EPISODE, PROMPT, 2)[1]
    (drawn,) = sampler.sample([request])
    assert [c.seed for c in drawn] == [request.seed, request.seed + 1]
    assert drawn[0].token_ids is None
    assert sampler.sampler_id == "recorded/bare"


def test_extra_rows_are_counted(tmp_path):
    sampler = load(write_jsonl(tmp_path / "a.jsonl", rows(3)))
    list(sampler.sample(make_requests(EPISODE, PROMPT, 2)))
    assert sampler.extra_rows == EPISODE.ref_len


def test_a_missing_answer_names_episode_step_and_candidate(tmp_path):
    sampler = load(write_jsonl(tmp_path / "a.jsonl", rows()[:-1]))
    with pytest.raises(InputError, match="no answer for episode e, step 7, candidate 1"):
        list(sampler.sample(make_requests(EPISODE, PROMPT, 2)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"completion": None}, "'completion'"),
        ({"step_index": "3"}, "'step_index'"),
        ({"candidate_index": -1}, "'candidate_index'"),
        ({"token_ids": [1, -2]}, "'token_ids.1'"),
        ({"token_ids": [1, 2**31]}, "'token_ids.1'"),
        ({"seed": -1}, "'seed'"),
        ({"token_ids": [1]}, "1 token_ids but 2 sampling_logprobs"),
    ],
)
def test_a_broken_row_names_its_line(tmp_path, change, message):
    data = rows()
    data[4] = data[4] | change
    with pytest.raises(InputError, match=message) as caught:
        load(write_jsonl(tmp_path / "a.jsonl", data))
    assert "a.jsonl:5" in str(caught.value)


def test_a_double_answer_is_an_error(tmp_path):
    with pytest.raises(InputError, match="episode e, step 0, candidate 0 appears twice"):
        load(write_jsonl(tmp_path / "a.jsonl", [*rows(), rows()[0]]))


def test_lines_that_are_no_json_are_errors(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"episode_id": \n', encoding="utf-8")
    with pytest.raises(InputError, match=r"a\.jsonl:1: is not JSON"):
        load(path)


def test_missing_and_odd_files_are_config_errors(tmp_path):
    with pytest.raises(ConfigError, match="no such file"):
        load(tmp_path / "a.jsonl")
    (tmp_path / "a.csv").write_text("x")
    with pytest.raises(ConfigError, match=r"expected a \.jsonl or a \.parquet"):
        load(tmp_path / "a.csv")
    (tmp_path / "a.parquet").write_text("x")
    with pytest.raises(InputError, match="can't be read as parquet"):
        load(tmp_path / "a.parquet")
