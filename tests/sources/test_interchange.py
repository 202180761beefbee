"""The interchange format as a whole: its schema says what its reader says, and a round trip loses nothing."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import polars as pl
import pyarrow as pa
import pytest

from solar_rl import pipeline
from solar_rl.actions import ACTION_FIELDS, ACTION_TYPES, BUTTONS, DIRECTIONS, STATUSES, Action
from solar_rl.builder import load_builder
from solar_rl.config import DatasetConfig, SourceConfig
from solar_rl.errors import ActionError, InputError, RecordError
from solar_rl.interchange import Images, decoding, export_dataset, json_schema, read_line, write_episodes
from solar_rl.interchange.decoding import parse_line
from solar_rl.interchange.model import told_line
from solar_rl.interchange.reference import keys_markdown
from solar_rl.privacy import Masker, find
from solar_rl.schema import Episode, Step

DOCS = Path(__file__).parents[2] / "docs" / "interchange.md"
CARD = Path(__file__).parents[2] / "datasets" / "jsonl" / "README.md"


def validator() -> Any:
    return jsonschema.Draft202012Validator(json_schema())


def lines_of(page: Path) -> list[dict[str, Any]]:
    """The lines of the format that a page shows."""
    text = page.read_text(encoding="utf-8")
    starts = [match.start() for match in re.finditer(r'{"episode_id"', text)]
    return [json.JSONDecoder().raw_decode(text[start:])[0] for start in starts]


@pytest.mark.parametrize("value", [3_000_000_000, 6125550123, -1, 0])
def test_a_number_out_of_range_is_told_as_it_is_and_is_no_phone_number(value: int) -> None:
    row = {"episode_id": "e", "goal": "g", "platform": "android", "coordinates": "unit", "steps": []}
    with pytest.raises(RecordError) as caught:
        told_line(json.dumps(row | {"screen_width": value}))
    message = caught.value.message
    assert message.endswith(f", got {value:,}")
    limit = "less than 2,147,483,648" if value > 0 else "greater than or equal to 1"
    assert f"Input should be {limit}," in message
    assert find(message) == []
    assert Masker(b"0").text(message) == message


def test_a_number_where_a_text_belongs_may_be_private() -> None:
    row = {"episode_id": "e", "goal": 2125550123, "platform": "android", "coordinates": "unit", "steps": []}
    with pytest.raises(RecordError) as caught:
        told_line(json.dumps(row))
    assert [found.kind for found in find(caught.value.message)] == ["phone"]


# --- the schema --------------------------------------------------------------------------------------


def test_the_shipped_schema_is_current() -> None:
    """Mend with: python docs/refresh_interchange.py."""
    text = resources.files("solar_rl.interchange").joinpath("episode.schema.json").read_text()
    assert json.loads(text) == json_schema()


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(json_schema())


def example_action(kind: str) -> dict[str, Any]:
    values = {
        "x": 0.5,
        "y": 0.5,
        "x2": 0.1,
        "y2": 0.1,
        "text": "a",
        "app_name": "Clock",
        "keys": ["ctrl", "c"],
    }
    values |= {"direction": DIRECTIONS[0], "button": BUTTONS[0], "status": STATUSES[0]}
    del values["keys" if kind == "press" else "button"]
    return {"action_type": kind} | values


@pytest.mark.parametrize("kind", ACTION_TYPES)
@pytest.mark.parametrize("missing", [name for name in ACTION_FIELDS if name != "action_type"])
def test_the_schema_asks_for_what_an_action_asks_for(kind: str, missing: str) -> None:
    fields = {name: value for name, value in example_action(kind).items() if name != missing}
    row = {
        "episode_id": "e",
        "goal": "g",
        "platform": "web",
        "coordinates": "unit",
        "steps": [{"action": fields, "screen_width": 9, "screen_height": 9}],
    }
    try:
        Action(**fields)
        fits = True
    except ActionError:
        fits = False
    assert validator().is_valid(row) == fits


def test_a_line_can_say_all_that_an_episode_holds() -> None:
    schema = json_schema()
    for record, part in ((Episode, schema), (Step, schema["$defs"]["InterchangeStep"])):
        said = {"image" if each.name == "screenshot" else each.name for each in fields(record)}
        assert said <= part["properties"].keys()
    assert set(ACTION_FIELDS) == schema["$defs"]["InterchangeAction"]["properties"].keys()


# --- the fast decoder --------------------------------------------------------------------------------

LINE = {
    "episode_id": "e",
    "goal": "g",
    "platform": "web",
    "coordinates": "pixels",
    "screen_width": 9,
    "screen_height": 9,
    "steps": [
        {
            "action": {"action_type": "click", "x": 5, "y": 6.5},
            "target_box": [1, 2, 3, 4],
            "candidate_boxes": [[1, 2, 3, 4.5]],
            "alternatives": [{"action_type": "press", "keys": ["a"], "box": None}],
            "image_sha256": "a" * 64,
        }
    ],
}
TEXT = json.dumps(LINE)
NUMBERS = ("-0", "1e999", "NaN", "05", "5.", "1E2", "1" + 400 * "0", str(2**70), "true", "null", '"5"', "5.0")
ODD_TEXTS = (r'"\ud800"', r'"\ud83d\ude00"', '"\x01"', r'"\u0000"', "7", "1.0", "null", str(10**30))
SWAPS = [
    *(('"x": 5', f'"x": {number}') for number in NUMBERS),
    *(('"screen_width": 9', f'"screen_width": {number}') for number in (*NUMBERS, "0", str(2**31))),
    *((old, old[:-3] + text) for old in ('"episode_id": "e"', '"goal": "g"') for text in ODD_TEXTS),
    ('"x": 5', '"x": 5, "x": 8'),
    ('"x": 5', '"z": 5, "x": 5'),
    ("[1, 2, 3, 4]", "[1, 2, 3]"),
    ("[1, 2, 3, 4]", "[1, 2, 3, 4, 5]"),
    ("[[1, 2, 3, 4.5]]", "null"),
    ('["a"]', "[]"),
    ('["a"]', "[1]"),
    ('"pixels"', '"metres"'),
    ("a" * 64, "A" * 64),
    ("a" * 64, "a" * 64 + r"\n"),
    ('"goal": "g", ', ""),
]


def fields_of(value: Any) -> Any:
    """A model or a struct as plain values, each beside its type."""
    if isinstance(value, tuple):
        return [fields_of(each) for each in value]
    names = getattr(type(value), "model_fields", getattr(value, "__struct_fields__", None))
    return (
        (type(value), value) if names is None else {name: fields_of(getattr(value, name)) for name in names}
    )


@pytest.mark.parametrize(("old", "new"), SWAPS)
def test_the_fast_decoder_takes_what_the_model_takes_and_the_model_tells_the_rest(old: str, new: str) -> None:
    assert old in TEXT
    line = TEXT.replace(old, new)
    try:
        told = fields_of(told_line(line))
    except RecordError as error:
        with pytest.raises(RecordError) as met:
            parse_line(line)
        assert (met.value.reason, str(met.value)) == (error.reason, str(error))
    else:
        assert fields_of(parse_line(line)) == told


def test_a_good_line_never_reaches_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "told_line", lambda line: pytest.fail("the model was asked"))
    assert parse_line(TEXT).steps[0].action.x == 5.0


# --- the round trip ----------------------------------------------------------------------------------


def episodes_of(builder: str, path: Path | None = None, **options: Any) -> list[Episode]:
    source = SourceConfig(builder=builder, path=str(path) if path else None, options=options)
    made = load_builder(source)
    return [item for shard in made.shards() for item in made.read(shard) if isinstance(item, Episode)]


@pytest.mark.parametrize(("builder", "options"), [("phone", {"episodes": 6}), ("toy_source:ToyBuilder", {})])
def test_any_builders_episodes_come_back_from_their_lines(
    builder: str, options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "pipeline")
    episodes = episodes_of(builder, **options)
    assert write_episodes(episodes, tmp_path / "out") == len(episodes)
    assert episodes_of("jsonl", tmp_path / "out") == episodes
    check = validator()
    for row in (tmp_path / "out" / "episodes.jsonl").read_text().splitlines():
        assert check.is_valid(json.loads(row))


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("builder", "file"),
    [
        ("android_control", "androidcontrol_tfrecord"),
        ("android_control_jsonl", "androidcontrol_test_actions/androidcontrol_test_part.jsonl"),
        ("ui_s1", "ui_s1/android_control_evaluation_std_part.jsonl"),
    ],
)
def test_real_episodes_come_back_from_their_lines(
    builder: str, file: str, shared: Path, tmp_path: Path
) -> None:
    episodes = episodes_of(builder, shared / file)
    write_episodes(episodes, tmp_path / "out")
    assert episodes_of("jsonl", tmp_path / "out") == episodes


def test_an_exported_dataset_builds_the_same_tables(tmp_path: Path) -> None:
    source = SourceConfig(builder="phone", options={"episodes": 8})
    config = DatasetConfig(name="round", source=source, preview_rows=0)
    pipeline.build(config, tmp_path / "first")
    assert export_dataset(tmp_path / "first", tmp_path / "lines") == 8
    lines = SourceConfig(builder="jsonl", path=str(tmp_path / "lines"))
    pipeline.build(config.model_copy(update={"source": lines}), tmp_path / "second")
    first = sorted((tmp_path / "first" / "data").rglob("*.parquet"))
    assert len(first) > 5
    for path in first:
        again = tmp_path / "second" / path.relative_to(tmp_path / "first")
        assert pl.read_parquet(path).equals(pl.read_parquet(again)), path


def test_an_export_never_writes_over_anything(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("x")
    with pytest.raises(InputError, match="is not empty"):
        write_episodes([], tmp_path)
    with pytest.raises(InputError, match="no built dataset"):
        export_dataset(tmp_path, tmp_path / "new")


def test_an_export_that_fails_leaves_nothing_and_can_be_done_again(tmp_path: Path) -> None:
    config = DatasetConfig(name="round", source=SourceConfig(builder="phone", options={"episodes": 2}))
    pipeline.build(config, tmp_path / "built")
    steps = next((tmp_path / "built" / "data" / "steps").iterdir())
    whole = steps.read_bytes()
    steps.write_bytes(whole[:100])
    before = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(pa.ArrowInvalid):
        export_dataset(tmp_path / "built", tmp_path / "lines")
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    steps.write_bytes(whole)
    (tmp_path / "lines").mkdir()
    assert export_dataset(tmp_path / "built", tmp_path / "lines") == 2
    assert sorted(path.name for path in (tmp_path / "lines").iterdir()) == ["episodes.jsonl", "images"]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*before, "lines"])


# --- the documents -----------------------------------------------------------------------------------


@pytest.mark.parametrize("page", [DOCS, CARD], ids=lambda page: page.name)
def test_the_lines_that_documents_show_are_read(page: Path, tmp_path: Path) -> None:
    shown = lines_of(page)
    assert shown
    for row in shown:
        assert validator().is_valid(row)
        for step in row["steps"]:
            step.pop("image", None)
        plain = {"screen_width": 1080, "screen_height": 2400} | row
        assert read_line(json.dumps(plain), Images(tmp_path)).steps


def test_the_document_is_current() -> None:
    """Mend with: python docs/refresh_interchange.py."""
    assert f"<!-- keys -->\n{keys_markdown()}<!-- end -->" in DOCS.read_text(encoding="utf-8")
