from __future__ import annotations

import io
import json
import random
import tracemalloc
from importlib.metadata import version

import pytest
from aitw_writer import DONE, HEIGHT, TAP, WIDTH, episode, pixels, step, write
from android_control_writer import frame, png
from PIL import Image

from solar_rl.actions import Action, Box
from solar_rl.builder import load_builder
from solar_rl.config import SourceConfig
from solar_rl.errors import ConfigError
from solar_rl.schema import Episode, Reject

BACK = {"results/action_type": [5]}


@pytest.fixture
def read_records(tmp_path, read):
    def _read(records, **options):
        return read("aitw", write(tmp_path, records), **options)

    return _read


@pytest.mark.parametrize(
    ("features", "action"),
    [
        (TAP, Action("click", x=0.25, y=0.5)),
        ({"results/action_type": [3], "results/type_action": ["Käse "]}, Action("input_text", text="Käse ")),
        (BACK, Action("press", button="back")),
        ({}, Action("press", button="home")),
        ({"results/action_type": [7]}, Action("press", button="enter")),
        (DONE, Action("finished", status="complete")),
        ({"results/action_type": [11]}, Action("finished", status="infeasible")),
        (
            {**TAP, "results/yx_lift": [0.25, 0.5]},
            Action("scroll", 0.25, 0.5, 0.5, 0.25, direction="down"),
        ),
        ({**TAP, "results/yx_lift": [0.5, 0.875]}, Action("scroll", 0.25, 0.5, 0.875, 0.5, direction="left")),
        ({**TAP, "results/yx_lift": [0.53125, 0.25]}, Action("click", x=0.25, y=0.5)),
    ],
)
def test_reads_every_action(read_records, features, action):
    [found] = read_records([step(**features)])
    assert found.steps[0].action == action


def test_reads_what_surrounds_the_actions(read_records):
    [found] = read_records(episode("77", TAP, DONE))
    assert (found.episode_id, found.goal, found.app) == ("77", "open the clock", "Chrome")
    assert (found.category, found.split, found.license) == ("general", "train", "cc-by-4.0")
    assert found.recorded_success is True
    first, last = found.steps
    assert (first.screen_width, first.screen_height, first.screen_size) == (WIDTH, HEIGHT, "stated")
    assert first.screen_text == 'TEXT "Clock" [4,18,6,22]\nICON_TIME [2,16,14,28]'
    small, large = first.candidate_boxes
    assert small == pytest.approx(Box(0.2, 0.45, 0.3, 0.55)) and large == pytest.approx(
        Box(0.1, 0.4, 0.7, 0.7)
    )
    assert (first.target_box, first.box_rule) == (small, "smallest")
    assert (last.target_box, last.box_rule) == (None, None)


@pytest.mark.parametrize(("channels", "mode"), [(1, "L"), (3, "RGB"), (4, "RGBA")])
def test_raw_pixels_become_a_png_of_the_same_pixels(read_records, channels, mode):
    raw = {"image/channels": [channels], "image/encoded": [pixels(7, channels)]}
    [found] = read_records([step(**raw)])
    image = Image.open(io.BytesIO(found.steps[0].screenshot.data))
    assert (image.format, image.mode, image.size) == ("PNG", mode, (WIDTH, HEIGHT))
    assert image.tobytes() == pixels(7, channels)
    [again] = read_records([step(**raw)])
    assert again.steps[0].screenshot.sha256 == found.steps[0].screenshot.sha256


def test_what_packs_the_pixels_belongs_to_the_identity_of_a_build(tmp_path):
    write(tmp_path, episode("e", TAP))
    source = SourceConfig(builder="aitw", path=str(tmp_path))
    assert load_builder(source).fingerprint() == {"isal": version("isal")}


def test_an_image_that_is_encoded_already_stays_as_it_is(read_records):
    [found] = read_records([step(**{"image/encoded": [png(3)]})])
    assert found.steps[0].screenshot.data == png(3) and found.steps[0].screen_width == 108


def test_an_activity_without_a_package_is_kept_as_it_is(read_records):
    [found] = read_records([step(current_activity=["Launcher"])])
    assert found.app == "Launcher"
    [found] = read_records([step(current_activity=None)])
    assert found.app is None


def test_steps_are_grouped_and_ordered_however_they_lie(read_records):
    dice = random.Random(4)
    records = [r for name in "abcdef" for r in episode(name, TAP, BACK, TAP, DONE)]
    tidy = {e.episode_id: e for e in read_records(records)}
    for _ in range(5):
        dice.shuffle(records)
        assert {e.episode_id: e for e in read_records(records)} == tidy
    assert [s.action.action_type for s in tidy["a"].steps] == ["click", "press", "click", "finished"]


def test_an_episode_comes_out_once_its_last_step_was_read(read_records):
    first, second = episode("a", TAP, DONE), episode("b", TAP, DONE)
    assert [e.episode_id for e in read_records([*first, *second])] == ["a", "b"]
    assert [e.episode_id for e in read_records([first[0], *second, first[1]])] == ["b", "a"]


def test_gaps_between_numbers_are_closed(read_records):
    [found] = read_records([step(i, length=3, shade=i) for i in (9, 2, 5)])
    assert [s.step_index for s in found.steps] == [0, 1, 2]
    shades = [Image.open(io.BytesIO(s.screenshot.data)).getpixel((0, 0))[0] for s in found.steps]
    assert shades == [2, 5, 9]


def test_an_incomplete_episode_is_rejected_or_kept(read_records):
    records = [*episode("a", TAP, BACK, DONE)[:2], *episode("b", DONE)]
    good, reject = read_records(records)
    assert good.episode_id == "b"
    assert (reject.reason, reject.episode_id, reject.record) == (
        "missing_steps",
        "a",
        "episode a from record 0",
    )
    assert "2 steps are in the file, episode_length is 3" in reject.message
    assert [(e.episode_id, e.ref_len) for e in read_records(records, incomplete="keep")] == [
        ("b", 1),
        ("a", 2),
    ]


BROKEN = {
    "unknown action": ({"results/action_type": [8]}, "unknown_action", "record 1: unknown action type 8"),
    "CAGUI's actions": ({"results/action_type": [0]}, "unknown_action", "expected one of 3, 4, 5"),
    "no action": ({"results/action_type": None}, "missing_field", "results/action_type is missing"),
    "two actions": ({"results/action_type": [5, 6]}, "lengths_mismatch", "holds 2 values"),
    "an action in words": ({"results/action_type": ["tap"]}, "missing_field", "results/action_type"),
    "an empty text": ({"results/action_type": [3]}, "empty_text", "results/type_action is empty"),
    "a text that is no text": (
        {"results/action_type": [3], "results/type_action": [b"\xff"]},
        "bad_text",
        "results/type_action is not UTF-8",
    ),
    "no point": ({"results/action_type": [4]}, "off_screen", "click at (-1.0, -1.0)"),
    "half a point": ({**TAP, "results/yx_lift": [0.5]}, "bad_number", "holds 1 numbers, expected y and x"),
    "NaN": ({**TAP, "results/yx_lift": [0.5, float("nan")]}, "bad_number", "results/yx_lift is nan"),
    "another step's number": ({"step_id": [0]}, "repeated_step", "step_id 0 is there twice"),
    "no number": ({"step_id": None}, "missing_field", "step_id"),
    "too few pixels": ({"image/encoded": [b"abc"]}, "bad_image", "3 bytes are neither 20x40 pixels of 3"),
    "no pixels": ({"image/encoded": None}, "missing_field", "image/encoded"),
    "no height": ({"image/height": None}, "missing_field", "image/height"),
    "a negative size": ({"image/height": [-40], "image/width": [-20]}, "bad_image", "-20x-40"),
    "two channels": ({"image/channels": [2]}, "bad_image", "20x40 pixels of 2 bytes"),
    "half a box": ({"image/ui_annotations_positions": [0.1, 0.2]}, "bad_box", "2 numbers of boxes"),
    "a box too many": (
        {"image/ui_annotations_text": ["a"]},
        "lengths_mismatch",
        "2 positions, 1 texts and 2 types",
    ),
    "another goal": ({"goal_info": ["close"]}, "mixed_episodes", "goal_info is another one"),
    "another length": ({"episode_length": [9]}, "mixed_episodes", "episode_length"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_one_broken_step_rejects_its_whole_episode_alone(read_records, case):
    features, reason, message = BROKEN[case]
    items = read_records([*episode("a", TAP, features, DONE), *episode("b", DONE)])
    [reject] = [item for item in items if isinstance(item, Reject)]
    assert (reject.reason, reject.episode_id, reject.file) == (reason, "a", "general/general-00000-of-00002")
    assert message in reject.message
    assert [item.episode_id for item in items if isinstance(item, Episode)] == ["b"]


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (b"\xff\xff\xff", "bad_record"),
        (step(episode_id=None), "missing_field"),
        (step(episode_length=[0]), "bad_number"),
        (step(goal_info=[" "]), "empty_text"),
    ],
)
def test_a_record_that_names_no_episode_is_a_reject_of_its_own(read_records, record, reason):
    reject, good = read_records([record, *episode("b", DONE)])
    assert (reject.reason, reject.record, reject.episode_id) == (reason, "record 0", None)
    assert good.episode_id == "b"


def test_a_damaged_record_costs_its_episode_and_no_other(tmp_path, read):
    import gzip

    first, second = episode("a", TAP, DONE), episode("b", DONE)
    framed = [frame(record) for record in (*first, *second)]
    framed[1] = framed[1][:-5] + bytes([framed[1][-5] ^ 1]) + framed[1][-4:]
    (tmp_path / "some-file").write_bytes(gzip.compress(b"".join(framed)))
    crc, good, rest = read("aitw", tmp_path / "some-file")
    assert (crc.reason, crc.record) == ("bad_crc", "record 1")
    assert good.episode_id == "b" and good.category is None
    assert (rest.reason, rest.episode_id) == ("missing_steps", "a")


def test_files_are_found_in_folders_and_name_their_set(tmp_path):
    write(tmp_path, episode("a", DONE))
    write(tmp_path, episode("b", DONE), "google_apps-00007-of-00009")
    builder = load_builder(SourceConfig(builder="aitw", path=str(tmp_path)))
    assert builder.shards() == ["general/general-00000-of-00002", "google_apps/google_apps-00007-of-00009"]
    assert [file.is_file() for file in builder.source_files()] == [True, True]
    assert [e.category for shard in builder.shards() for e in builder.read(shard)] == [
        "general",
        "google_apps",
    ]


def test_splits_come_from_a_file_of_the_release(tmp_path, read):
    root = write(tmp_path / "data", [*episode("a", DONE), *episode("b", DONE), *episode("c", DONE)])
    splits = tmp_path / "standard.json"
    splits.write_text(json.dumps({"train": ["a"], "validation": ["b"], "test": []}))
    assert [e.split for e in read("aitw", root, splits=str(splits))] == ["train", "validation", "train"]
    with pytest.raises(ConfigError, match="no such file"):
        read("aitw", root, splits=str(tmp_path / "none.json"))


def test_a_folder_without_shards_is_said(tmp_path, read):
    with pytest.raises(ConfigError, match=r"holds no file \*-of-\*"):
        read("aitw", tmp_path)


def test_memory_does_not_grow_with_episodes_that_wait(tmp_path):
    """Thirty episodes lie interleaved, so that all wait until the end; their screenshots don't wait in memory."""
    noise = random.Random(1).randbytes(WIDTH * HEIGHT * 3 * 50)
    big = {"image/width": [WIDTH * 50], "image/encoded": [noise]}

    def peak(count):
        names = [f"{number}" for number in range(count)]
        records = [step(i, episode=name, length=3, **big) for i in range(3) for name in names]
        root = write(tmp_path / str(count), records)
        builder = load_builder(SourceConfig(builder="aitw", path=str(root)))
        tracemalloc.start()
        found = sum(1 for shard in builder.shards() for _ in builder.read(shard))
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert found == count
        return most

    few, many = peak(3), peak(30)
    assert many < few + 10 * len(noise), "27 more episodes of 3 screenshots each"
