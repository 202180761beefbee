"""A source with several right answers, from its files to the verdicts: each way of judging knows them all."""

from __future__ import annotations

import json

import pytest
from desktop_writer import at, bench, right, write_opencua

from solar_rl import open_dataset, pipeline
from solar_rl.columns import label_columns, read_alternative
from solar_rl.config import DatasetConfig, ValidityConfig
from solar_rl.evaluate.verdicts import judge
from solar_rl.pipeline import derive
from solar_rl.schema import SCORE_COLUMNS
from solar_rl.verify import rules

SCORES = [column.name for column in SCORE_COLUMNS]
TASK = bench(
    {
        "ground_truth_actions": [right("click", (0.4, 0.4, 0.1, 0.1), position=at(0.45, 0.45))],
        "alternative_options": [
            [right("click", (0.8, 0.8, 0.1, 0.1), position=at(0.85, 0.85))],
            [right("hotkey", keys=["ctrl", "s"])],
        ],
    },
    {"ground_truth_actions": [right("write", text="slides")]},
)
OTHERS = [
    {"action_type": "click", "x": 0.86, "y": 0.85},
    {"action_type": "press", "keys": ["Control", "S"]},
]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bench")
    source = {"builder": "opencua", "path": str(write_opencua(folder / "source", TASK))}
    config = {"name": "bench", "version": "1.0.0", "source": source, "prompt": {"format": "json"}}
    config["sampler"] = {"type": "recorded", "path": str(recorded(folder)), "n": 2}
    pipeline.build(DatasetConfig.model_validate(config), folder / "built")
    return folder / "built"


def recorded(folder):
    """Write candidates: candidate i does the i-th other right thing at step 0."""
    rows = [
        {"episode_id": "b1", "step_index": step, "candidate_index": i, "completion": completion}
        for i, other in enumerate(OTHERS)
        for step, completion in enumerate(
            (
                json.dumps({"action": other["action_type"]} | scaled(other)),
                json.dumps({"action": "input_text", "text": "slides"}),
            )
        )
    ]
    file = folder / "candidates.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def scaled(action):
    values = {name: value for name, value in action.items() if name != "action_type"}
    return {name: round(1000 * v) if name in ("x", "y") else v for name, v in values.items()}


def test_what_the_source_calls_right_is_stored_and_counts(built):
    data = open_dataset(built)
    texts = data.steps.collect().sort("step_index")["alternatives"].to_list()
    assert [read_alternative(text).action.action_type for text in texts[0]] == ["click", "press"] and texts[
        1
    ] == []
    rewards = data.rewards.collect().sort("step_index", "candidate_index")
    assert rewards["valid"].to_list() == [True] * 4
    assert rewards["rule"].to_list() == ["point", "press", "text", "text"]
    assert rewards["box_x1"][0] == pytest.approx(0.8), "the evidence is that of the answer that was met"
    assert data.trajectories.collect()["success"].to_list() == [True, True]


def test_judging_again_and_by_the_verifier_called_rules_say_the_same(built, tmp_path):
    data = open_dataset(built)
    before = data.rewards.collect()
    derive.run(derive.plan(built, {"validity.box_sigma": "0.5"}, tmp_path / "again", None, "score"))
    assert open_dataset(tmp_path / "again").rewards.collect().equals(before)
    keys = ["episode_id", "step_index", "candidate_index"]
    steps = data.steps.collect().join(
        data.episodes.select("episode_id", "goal", "ref_len").collect(), on="episode_id"
    )
    assert rules()(steps, data.candidates.collect().sort(keys)).equals(before.sort(keys).select(SCORES))


def test_evaluation_under_our_protocol_knows_them_and_peers_judge_by_the_label(built):
    data = open_dataset(built)
    rows = label_columns(data.candidates.collect(), data.steps.collect(), data.episodes.collect())
    rows = rows.filter(step_index=0)
    assert judge(rows, "solar", ValidityConfig())["exact_match"].to_list() == [1, 1]
    assert judge(rows, "uis1_eval", ValidityConfig())["exact_match"].drop_nulls().to_list() in ([0], [0, 0])
