"""The interchange format's door: what a line may say, what it may not, and what is told about it."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from solar_rl.builder import load_builder
from solar_rl.config import SourceConfig
from solar_rl.episodes import check_episode
from solar_rl.errors import ConfigError
from solar_rl.schema import Episode, Reject

Items = list[Episode | Reject]


def png(width: int = 40, height: int = 80) -> bytes:
    data = io.BytesIO()
    Image.new("RGB", (width, height), (9, 99, 199)).save(data, "PNG")
    return data.getvalue()


def line(**changes: Any) -> dict[str, Any]:
    step = {"action": {"action_type": "click", "x": 540, "y": 600}, "target_box": [500, 500, 600, 700]}
    whole = {
        "episode_id": "e",
        "goal": "Tap",
        "platform": "android",
        "coordinates": "pixels",
        "screen_width": 1080,
        "screen_height": 2400,
        "steps": [step],
    }
    return {name: value for name, value in (whole | changes).items() if value is not None}


def step(action: dict[str, Any] | None = None, **keys: Any) -> list[dict[str, Any]]:
    return [{"action": action or {"action_type": "wait"}} | keys]


@pytest.fixture
def one(tmp_path: Path, read: Callable[..., Items]) -> Callable[..., Episode | Reject]:
    """Read a file that holds one line."""

    def _one(row: dict[str, Any] | str, **options: Any) -> Episode | Reject:
        text = row if isinstance(row, str) else json.dumps(row, ensure_ascii=False)
        (tmp_path / "a.jsonl").write_text(text + "\n", encoding="utf-8")
        (item,) = read("jsonl", tmp_path / "a.jsonl", **options)
        return item

    return _one


# --- what a line says --------------------------------------------------------------------------------


def test_pixels_are_shares_of_the_steps_own_screen(one: Callable[..., Any]) -> None:
    steps = [*line()["steps"], {**line()["steps"][0], "screen_width": 2160, "screen_height": 1200}]
    episode = one(line(steps=steps))
    first, second = (s.action for s in episode.steps)
    assert (first.x, first.y) == (0.5, 0.25)
    assert (second.x, second.y) == (0.25, 0.5)
    assert episode.steps[0].target_box == (500 / 1080, 500 / 2400, 600 / 1080, 700 / 2400)
    assert (episode.source, episode.split, episode.license) == ("jsonl", "train", None)


def test_unit_coordinates_come_through_to_the_bit(one: Callable[..., Any]) -> None:
    action = {"action_type": "drag", "x": 0.1, "y": 1 / 3, "x2": 0.7000000000000001, "y2": 1.0}
    found = one(line(coordinates="unit", steps=step(action))).steps[0].action
    assert (found.x, found.y, found.x2, found.y2) == (0.1, 1 / 3, 0.7000000000000001, 1.0)


def test_every_key_lands_where_it_belongs(one: Callable[..., Any]) -> None:
    other = {"action_type": "press", "button": "enter", "box": [0, 0, 540, 1200]}
    row = line(
        split="test",
        app="Uhr",
        category="alarm",
        subsplits=["app_unseen"],
        recorded_success=True,
        source="mine",
        license="mit",
        steps=step(
            {"action_type": "input_text", "text": "7:00 \u00a0Wecker Ü 闹钟"},
            step_index=0,
            instruction="type",
            thought="hm",
            app="Clock",
            screen_text="a\nb",
            screen_size="inferred",
            box_rule="source",
            candidate_boxes=[[0, 0, 1080, 2400], [540, 0, 1080, 1200]],
            alternatives=[other],
        ),
    )
    episode = one(row)
    check_episode(episode)
    assert (episode.category, episode.subsplits, episode.recorded_success) == ("alarm", ("app_unseen",), True)
    assert (episode.source, episode.license, episode.app, episode.split) == ("mine", "mit", "Uhr", "test")
    found = episode.steps[0]
    assert found.action.text == "7:00 \u00a0Wecker Ü 闹钟"
    assert (found.instruction, found.thought, found.app, found.screen_text) == ("type", "hm", "Clock", "a\nb")
    assert (found.screen_size, found.box_rule) == ("inferred", "source")
    assert found.candidate_boxes == ((0, 0, 1, 1), (0.5, 0, 1, 0.5))
    assert found.alternatives[0].action.button == "enter"
    assert found.alternatives[0].box == (0, 0, 0.5, 0.5)


def test_a_whole_number_is_an_id(one: Callable[..., Any]) -> None:
    assert one(line(episode_id=8193)).episode_id == "8193"


def test_boxes_are_clipped_to_the_screen_and_those_outside_it_go(one: Callable[..., Any]) -> None:
    boxes = [[-50, 0, 540, 1200], [1100, 0, 1200, 50], [10, 10, 10, 10]]
    episode = one(line(steps=step(candidate_boxes=boxes, target_box=[0, 2500, 9, 2600])))
    assert episode.steps[0].candidate_boxes == ((0, 0, 0.5, 0.5), (10 / 1080, 10 / 2400) * 2)
    assert episode.steps[0].target_box is None


def test_the_image_gives_the_size_where_nobody_states_one(tmp_path: Path, one: Callable[..., Any]) -> None:
    (tmp_path / "shots").mkdir()
    (tmp_path / "shots" / "0.png").write_bytes(png())
    action = {"action_type": "click", "x": 10, "y": 20}
    row = line(steps=step(action, image="shots/0.png"), screen_width=None, screen_height=None)
    found = one(row).steps[0]
    assert (found.screen_width, found.screen_height) == (40, 80)
    assert (found.action.x, found.action.y) == (0.25, 0.25)
    assert found.screenshot.data == png()


def test_images_may_lie_elsewhere(tmp_path: Path, one: Callable[..., Any]) -> None:
    (tmp_path / "other place").mkdir()
    (tmp_path / "other place" / "0.png").write_bytes(png())
    episode = one(line(steps=step(image="0.png")), images=str(tmp_path / "other place"))
    assert episode.steps[0].screenshot.width == 40


# --- what a line may not say -------------------------------------------------------------------------

FAULTS: dict[str, tuple[dict[str, Any] | str, str, str]] = {
    "half a line": ('{"episode_id": ', "bad_json", "no JSON"),
    "a list": ("[]", "bad_value", ""),
    "NaN": (
        json.dumps(line(steps=step({"action_type": "click", "x": float("nan"), "y": 1}))),
        "bad_value",
        "x",
    ),
    "half a surrogate": ('{"episode_id": "\\ud800"}', "bad_json", "no JSON"),
    "a typo at the top": (line(gaol="x"), "unknown_key", "did you mean 'goal'?"),
    "a typo in a step": (line(steps=step(instructions="x")), "unknown_key", "did you mean 'instruction'?"),
    "a typo in an action": (
        line(steps=step({"action_type": "wait", "buton": "x"})),
        "unknown_key",
        "steps.0.action.buton: unknown key 'buton' (did you mean 'button'?)",
    ),
    "a typo in an alternative": (
        line(steps=step(alternatives=[{"action_type": "wait", "bx": []}])),
        "unknown_key",
        "steps.0.alternatives.0.bx",
    ),
    "no goal": (line(goal=None), "missing_field", "'goal' is missing"),
    "no coordinates": (line(coordinates=None), "missing_field", "'coordinates' is missing"),
    "other coordinates": (
        line(coordinates="thousand"),
        "bad_value",
        "coordinates: Input should be 'unit' or",
    ),
    "no steps": (line(steps=[]), "no_steps", "no steps"),
    "a text for a number": (
        line(steps=step({"action_type": "click", "x": "540", "y": 1})),
        "bad_value",
        "steps.0.action.x: Input should be a valid number, got '540'",
    ),
    "three edges": (
        line(steps=step(target_box=[1, 2, 3])),
        "bad_value",
        "steps.0.target_box: has too few numbers",
    ),
    "edges swapped": (
        line(steps=step(candidate_boxes=[[9, 0, 1, 1]])),
        "bad_box",
        "steps.0.candidate_boxes.0",
    ),
    "a gap": (line(steps=step(step_index=1)), "step_gap", "steps.0.step_index: is 1, expected 0"),
    "an unknown action": (
        line(steps=step({"action_type": "tap"})),
        "bad_action",
        "unknown action type 'tap'",
    ),
    "a scroll without direction": (line(steps=step({"action_type": "scroll"})), "bad_action", "direction"),
    "no size": (
        line(screen_width=None, screen_height=None),
        "missing_field",
        "steps.0: has neither an image",
    ),
    "half a size": (line(screen_height=None), "missing_field", "come together"),
    "pixels called unit": (line(coordinates="unit"), "off_screen", "say coordinates: pixels"),
    "no such image": (
        line(steps=step(image="no.png")),
        "missing_image",
        "steps.0.image: no such image: 'no.png'",
    ),
    "a folder for an image": (line(steps=step(image=".")), "missing_image", "no such image"),
    "a parent": (line(steps=step(image="../a.png")), "bad_path", "leaves the file's folder"),
    "a hidden parent": (line(steps=step(image="x/../../a.png")), "bad_path", "leaves the file's folder"),
    "the root": (line(steps=step(image="/etc/hostname")), "bad_path", "no path relative"),
    "a drive": (line(steps=step(image="C:/a.png")), "bad_path", "no path relative"),
    "a backslash": (line(steps=step(image="shots\\a.png")), "bad_path", "write forward slashes"),
    "a NUL": (line(steps=step(image="a\0.png")), "bad_path", "no path relative"),
    "no name": (line(steps=step(image="")), "bad_path", "no path relative"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_broken_line_is_a_reject_that_names_line_and_key(fault: str, one: Callable[..., Any]) -> None:
    row, reason, words = FAULTS[fault]
    item = one(row)
    assert isinstance(item, Reject), item
    assert (item.file, item.record, item.reason) == ("a.jsonl", "line 1", reason)
    assert words in item.message


def test_a_link_may_not_lead_out_unless_asked(tmp_path: Path, one: Callable[..., Any]) -> None:
    outside = tmp_path / "secret.png"
    outside.write_bytes(png())
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "link.png").symlink_to(outside)
    row = line(steps=step(image="link.png"))
    item = one(row, images=str(folder))
    assert isinstance(item, Reject)
    assert (item.reason, "follow_links" in item.message) == ("bad_path", True)
    assert one(row, images=str(folder), follow_links=True).steps[0].screenshot.data == png()


def test_a_file_that_is_itself_a_link_finds_its_images(tmp_path: Path, read: Callable[..., Items]) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (real / "a.jsonl").write_text(json.dumps(line(steps=step(image="0.png"))))
    (real / "0.png").write_bytes(png())
    (tmp_path / "linked").symlink_to(real)
    (episode,) = read("jsonl", tmp_path / "linked")
    assert isinstance(episode, Episode)


def test_a_cut_or_changed_image_is_told(tmp_path: Path, one: Callable[..., Any]) -> None:
    (tmp_path / "0.png").write_bytes(png()[:-20])
    assert one(line(steps=step(image="0.png"))).reason == "bad_image"
    (tmp_path / "0.png").write_bytes(png())
    changed = one(line(steps=step(image="0.png", image_sha256="0" * 64)))
    assert changed.reason == "image_changed"


# --- files -------------------------------------------------------------------------------------------


def test_bom_crlf_blank_lines_and_no_last_line_end(tmp_path: Path, read: Callable[..., Items]) -> None:
    rows = [json.dumps(line(episode_id=name)) for name in "ab"]
    (tmp_path / "a b.jsonl").write_bytes(b"\xef\xbb\xbf" + "\r\n\r\n".join([*rows, "{"]).encode())
    first, second, broken = read("jsonl", tmp_path / "a b.jsonl")
    assert (first.episode_id, second.episode_id) == ("a", "b")
    assert broken.record == "line 5"


def test_gzip_is_told_by_content_and_its_damage_is_a_reject(
    tmp_path: Path, read: Callable[..., Items]
) -> None:
    rows = "".join(
        json.dumps(line(episode_id=str(n), goal=f"{n * 7919}")) + "\n" for n in range(500)
    ).encode()
    packed = gzip.compress(rows)
    (tmp_path / "a.jsonl").write_bytes(packed)
    assert len(read("jsonl", tmp_path / "a.jsonl")) == 500
    (tmp_path / "a.jsonl").write_bytes(packed[: len(packed) // 2])
    items = read("jsonl", tmp_path / "a.jsonl")
    assert 1 < len(items) < 500
    assert items[-1].reason == "truncated"
    (tmp_path / "a.jsonl").write_bytes(packed[:200] + bytes(20) + packed[220:])
    assert read("jsonl", tmp_path / "a.jsonl")[-1].reason in {"bad_gzip", "bad_json"}


def test_utf_16_is_told(tmp_path: Path, read: Callable[..., Items]) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps(line()), encoding="utf-16")
    (item,) = read("jsonl", tmp_path / "a.jsonl")
    assert "UTF-8" in item.message


def test_an_endless_line_costs_no_memory(
    tmp_path: Path, read: Callable[..., Items], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("solar_rl.lines.read_lines.__kwdefaults__", {"longest": 1 << 16})
    rows = [json.dumps(line(episode_id="a")), "x" * 300_000, json.dumps(line(episode_id="b"))]
    (tmp_path / "a.jsonl").write_text("\n".join(rows))
    first, long, last = read("jsonl", tmp_path / "a.jsonl")
    assert (first.episode_id, long.reason, long.record, last.episode_id) == (
        "a",
        "line_too_long",
        "line 2",
        "b",
    )


@pytest.mark.parametrize("size", [1, 7, 100, 333, 5000])
def test_ranges_of_bytes_give_every_line_once_and_number_it(
    tmp_path: Path, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [json.dumps(line(episode_id=f"e{n}")) if n % 3 else f"broken {n}" for n in range(12)]
    (tmp_path / "a.jsonl").write_text("\n".join(rows) + "\n")
    whole = load_builder(SourceConfig(builder="jsonl", path=str(tmp_path)))
    expected = list(whole.read(whole.shards()[0]))
    monkeypatch.setattr(type(whole), "shard_bytes", size)
    assert len(whole.shards()) == -(-(tmp_path / "a.jsonl").stat().st_size // size)
    found = [item for shard in whole.shards() for item in whole.read(shard)]
    assert found == expected
    assert [item.record for item in found if isinstance(item, Reject)] == [
        "line 1",
        "line 4",
        "line 7",
        "line 10",
    ]


def test_a_folder_holds_several_files_in_the_order_of_their_names(
    tmp_path: Path, read: Callable[..., Items]
) -> None:
    (tmp_path / "b.jsonl").write_text(json.dumps(line(episode_id="b")))
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(json.dumps(line(episode_id="a")).encode()))
    (tmp_path / "notes.txt").write_text("no")
    assert [item.episode_id for item in read("jsonl", tmp_path)] == ["a", "b"]


def test_a_folder_without_lines_and_a_wrong_images_folder_are_the_users_errors(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"holds no file \.jsonl"):
        load_builder(SourceConfig(builder="jsonl", path=str(tmp_path)))
    (tmp_path / "a.jsonl").touch()
    with pytest.raises(ConfigError, match="no such folder"):
        load_builder(SourceConfig(builder="jsonl", path=str(tmp_path), options={"images": "nowhere"}))
