"""Evaluate a small dataset: nothing is lost between the file and the figures."""

import json

import polars as pl
import pytest
from lawful_dataset import write_small_dataset

from solar_rl.actions import ACTION_FIELDS
from solar_rl.errors import InputError
from solar_rl.evaluate import evaluate, prepare
from solar_rl.evaluate.files import EvaluationData, read_skip_list
from solar_rl.evaluate.predictions import read_predictions


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_small_dataset(tmp_path_factory.mktemp("small"))


@pytest.fixture(scope="module")
def labels(folder):
    return EvaluationData(str(folder))


@pytest.fixture
def expert(labels):
    """Predictions that repeat the labels, as lines of a file."""
    return [
        {name: value for name, value in row.items() if value is not None}
        for row in labels.steps.select("episode_id", "step_index", *ACTION_FIELDS).to_dicts()
    ]


def read(rows):
    return read_predictions([json.dumps(row) for row in rows], where="p", frame_of=lambda _: None)


def run(rows, labels, protocol="solar", **options):
    cases = prepare(read(rows), labels.steps, labels.episodes, **options)
    return evaluate(cases, protocol, resamples=50)


def values(found):
    return dict(found.metrics.select("metric", "value").iter_rows())


def test_the_expert_is_perfect(expert, labels):
    found = run(expert, labels)
    assert set(values(found).values()) == {1.0}
    assert found.counts == {
        "steps": labels.steps.height,
        "skipped": 0,
        "missing": 0,
        "unreadable": 0,
        "dropped": 0,
        "judged": labels.steps.height,
        "episodes": labels.episodes.height,
    }
    assert found.by["bucket"]["bucket"].to_list() == ["short (1-5)", "long (6-10)"]
    assert found.by["action_type"]["steps"].sum() == labels.steps.height


def test_the_order_of_the_file_is_no_matter(expert, labels):
    assert run(expert[::-1], labels).as_dict() == run(expert, labels).as_dict()


def test_an_unreadable_answer_is_wrong_and_counted(expert, labels):
    key = {name: expert[0][name] for name in ("episode_id", "step_index")}
    found = run([key | {"parse_error": "cut off"}, *expert[1:]], labels)
    assert found.counts["unreadable"] == 1
    steps = labels.steps.height
    assert values(found)["exact_match"] == pytest.approx((steps - 1) / steps)


def test_a_missing_prediction_is_never_silent(expert, labels):
    with pytest.raises(
        InputError,
        match=r"1 of \d+ steps that solar judges have no prediction, such as step 0 of episode e000",
    ):
        run(expert[1:], labels)
    steps, episodes = labels.steps.height, labels.episodes.height
    wrong = run(expert[1:], labels, missing="wrong")
    assert wrong.counts["missing"] == 1
    assert wrong.counts["judged"] == steps
    assert values(wrong)["exact_match"] == pytest.approx((steps - 1) / steps)
    assert values(wrong)["task_sr"] == pytest.approx((episodes - 1) / episodes)
    skipped = run(expert[1:], labels, missing="skip")
    assert (skipped.counts["missing"], skipped.counts["judged"]) == (1, steps - 1)
    assert set(values(skipped).values()) == {1.0}
    of = dict(skipped.metrics.select("metric", "of").iter_rows())
    assert of["task_sr"] == episodes - 1, "an episode with a gap has no task success"


def test_an_unknown_step_is_refused(expert, labels):
    stranger = {"episode_id": "e999", "step_index": 0, "action_type": "wait"}
    with pytest.raises(InputError, match="don't have, such as step 0 of episode e999"):
        run([*expert, stranger], labels)


def test_a_label_off_the_screen_is_dropped_not_wrong(expert, labels):
    click = labels.steps.with_row_index().filter(pl.col("action_type") == "click")["index"][0]
    moved = labels.steps.with_columns(x=pl.when(pl.int_range(pl.len()) == click).then(1.5).otherwise("x"))
    cases = prepare(read(expert), moved, labels.episodes)
    found = evaluate(cases, "solar", resamples=0)
    assert (found.counts["dropped"], found.counts["judged"]) == (1, moved.height - 1)
    assert values(found)["exact_match"] == 1.0
    (reason,) = found.verdicts["dropped"].drop_nulls()
    assert reason == "label_off_screen"


def test_skip_lists_leave_out_steps_and_whole_episodes(expert, labels, tmp_path):
    path = tmp_path / "skip.jsonl"
    path.write_text('{"episode_id": "e000", "step_index": 1}\n\n{"episode_id": "e001"}\n')
    skip = read_skip_list(path, labels.steps)
    of_e001 = labels.steps.filter(pl.col("episode_id") == "e001").height
    assert skip.height == 1 + of_e001
    kept = [row for row in expert if row["episode_id"] != "e001"]
    found = run(kept, labels, skip=skip)
    assert found.counts["skipped"] == 1 + of_e001
    assert found.counts["judged"] == labels.steps.height - 1 - of_e001


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{}", "'episode_id' is missing"),
        ('{"episode_id": "e0', "is no JSON"),
        ('{"episode_id": "zz"}', "names a step that the data don't have"),
        ('{"episode_id": "e000", "step_index": 99}', "names a step that the data don't have"),
        ('{"episode_id": "e000", "step_index": "1"}', "'step_index' is no whole number"),
    ],
)
def test_a_wrong_skip_list_is_refused(line, told, labels, tmp_path):
    path = tmp_path / "skip.jsonl"
    path.write_text(f"\n{line}\n")
    with pytest.raises(InputError, match=told) as caught:
        read_skip_list(path, labels.steps)
    assert "skip.jsonl:2" in str(caught.value)


def test_a_split_is_evaluated_alone(folder):
    alone = EvaluationData(str(folder), "test")
    assert alone.episodes["split"].unique().to_list() == ["test"]
    with pytest.raises(InputError, match="no split is named 'dev'"):
        EvaluationData(str(folder), "dev")


def test_steps_of_all_splits_are_in_order(labels):
    assert labels.steps.equals(labels.steps.sort("episode_id", "step_index"))


def test_frames_come_from_screenshot_and_prompt(labels):
    frame_of = labels.frames()
    assert frame_of(("e000", 0)) == (56, 84), "36 x 80 pixels, smart-resized"
    assert frame_of(("zz", 0)) is None
