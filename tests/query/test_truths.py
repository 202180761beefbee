"""What to know about the labels: each oddity planted once is counted once, with its place."""

import polars as pl
import pytest
from lawful_dataset import preview_frame, tables, write_small_dataset

from solar_rl import query, stats

QUARTER = "clicks, smallest box from 25%"


def planted() -> dict[str, pl.DataFrame]:
    """Return the small dataset with oddities at known clicks, instructions, goals and ends."""
    frames = tables(12)
    steps = frames["steps"]
    clicks = steps.with_row_index().filter(action_type="click")["index"].to_list()
    at = pl.int_range(pl.len())
    no_boxes = pl.lit([], pl.List(pl.List(pl.Float64)))
    huge = pl.lit([[0.0, 0.0, 1.0, 0.9]], pl.List(pl.List(pl.Float64)))
    elsewhere = pl.lit([[0.9, 0.9, 1.1, 0.95], [0.8, 0.8, 0.8, 0.9]], pl.List(pl.List(pl.Float64)))
    frames["steps"] = steps.with_columns(
        x=pl.when(at == clicks[0]).then(1.25).otherwise("x"),
        target_box=pl.when(at.is_in(clicks[:4])).then(None).otherwise("target_box"),
        candidate_boxes=pl.when(at.is_in(clicks[:2]))
        .then(no_boxes)
        .when(at == clicks[2])
        .then(huge)
        .when(at == clicks[3])
        .then(elsewhere)
        .otherwise("candidate_boxes"),
        instruction=pl.when(at == 0)
        .then(pl.lit(" "))
        .when(at == 1)
        .then(pl.lit("x"))
        .otherwise("instruction"),
    )
    return frames


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    frames = planted()
    last = pl.col("step_index") == pl.col("step_index").max().over("episode_id")
    waits = last & (pl.col("episode_id") == "e003")
    frames["steps"] = frames["steps"].with_columns(
        action_type=pl.when(waits).then(pl.lit("wait")).otherwise("action_type")
    )
    frames |= {"preview": preview_frame(frames)}
    with query.connect(write_small_dataset(tmp_path_factory.mktemp("small"), frames)) as con:
        answer = (
            stats.compute(con, "oddities") | stats.compute(con, "leakage") | stats.compute(con, "directions")
        )
    return frames, answer


def cases(found, what: str) -> dict:
    (row,) = found[1]["What to know about these labels"].filter(what=what).to_dicts()
    return row


def test_every_planted_oddity_is_counted_once(found):
    steps = found[0]["steps"]
    clicks = steps.filter(action_type="click")
    key = clicks.select(pl.format("{}, step {}", "episode_id", "step_index")).to_series()
    assert cases(found, "clicks beyond the screen") == {
        "what": "clicks beyond the screen",
        "cases": 1,
        "of": clicks.height,
        "share": pytest.approx(1 / clicks.height),
        "example": key[0],
    }
    boxless = clicks.filter(pl.col("candidate_boxes").list.len() == 0, pl.col("target_box").is_null()).height
    assert boxless >= 2
    assert cases(found, "clicks without a box")["cases"] == boxless
    assert cases(found, "clicks outside all boxes")["example"] == key[3]
    assert cases(found, "clicks, box off the screen")["cases"] == 1
    assert cases(found, "clicks, box without area")["cases"] == 1
    assert cases(found, QUARTER)["example"] == key[2]
    whole = clicks.filter(
        pl.col("candidate_boxes").list.len() == 2, pl.col("target_box").is_not_null()
    ).height
    assert cases(found, "clicks, box from 75%")["cases"] == 1 + whole


def test_instructions_goals_and_ends_are_counted(found):
    frames = found[0]
    lacking = frames["steps"].filter(pl.col("instruction").fill_null("").str.strip_chars() == "").height
    assert cases(found, "steps without instruction")["cases"] == lacking
    assert cases(found, "episodes ending in wait")["example"].startswith("e003, step ")
    assert cases(found, "episodes ending in wait")["cases"] == 1
    assert cases(found, "episodes without finished")["cases"] == 1
    again = frames["episodes"].filter(pl.col("goal").is_duplicated())
    assert cases(found, "episodes, goal repeated")["cases"] == again.height
    assert found[1]["Goals that occur again"]["episodes"].sum() == again.height


def test_a_scroll_against_its_instruction_is_named(tmp_path):
    frames = tables(12)
    frames["steps"] = frames["steps"].with_columns(
        instruction=pl.when(action_type="scroll")
        .then(pl.lit("Swipe up to see more"))
        .otherwise("instruction")
    )
    with query.connect(write_small_dataset(tmp_path, frames)) as con:
        table = stats.compute(con, "directions")["Scrolls: the instruction's words against the label"]
    scrolls = frames["steps"].filter(action_type="scroll").height
    assert table.select("words", "label", "steps").rows() == [("swipe up", "down", scrolls)]
