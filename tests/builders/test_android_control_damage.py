"""Broken records and files: each is a reject that says what and where, and the good records are built."""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path

import pytest
from android_control_writer import HEIGHT, WIDTH, Recording, example, frame, png, write_shard

from solar_rl.episodes import checked
from solar_rl.schema import Episode, Reject

SHARD = "android_control-00000-of-00001"
WAIT = {"action_type": "wait"}


def ids(items):
    return [item.episode_id if isinstance(item, Episode) else item.reason for item in items]


def between(broken):
    """Put a broken record between two good ones."""
    return [Recording(episode_id=1), broken, Recording(episode_id=3)]


def one(action, **more):
    return Recording(episode_id=2, actions=[WAIT, action], **more)


def broken_png():
    data = bytearray(png(9))
    data[len(data) // 2] ^= 1
    return bytes(data)


BROKEN = {
    "unknown action": (
        one({"action_type": "teleport"}),
        "unknown_action",
        "step 1: unknown action 'teleport'",
    ),
    "action of another kind": (one({"action_type": ["click"]}), "unknown_action", "step 1"),
    "no action type": (one({"x": 1}), "missing_field", "step 1: action_type is missing"),
    "broken JSON": (one('{"action_type": "cli'), "bad_json", "action 1 is no JSON"),
    "JSON of another kind": (one("[1, 2]"), "bad_json", "action 1 is list"),
    "action that is not UTF-8": (one(b'{"action_type":"\xff"}'), "bad_json", "action 1"),
    "NaN": (one('{"action_type":"click","x":NaN,"y":5}'), "bad_number", "step 1: x is nan"),
    "infinity": (one('{"action_type":"click","x":5,"y":1e999}'), "bad_number", "step 1: y is inf"),
    "endless number": (
        one(f'{{"action_type":"click","x":5,"y":{10**400}}}'),
        "bad_number",
        "step 1: y is 1000",
    ),
    "coordinate as text": (one({"action_type": "click", "x": "5", "y": 5}), "bad_number", "x is '5'"),
    "no coordinate": (one({"action_type": "long_press", "x": 5}), "missing_field", "y is missing"),
    "right of the screen": (
        one({"action_type": "click", "x": WIDTH + 1, "y": 5}),
        "off_screen",
        "step 1: click at (109, 5) lies outside the 108x240 screen",
    ),
    "above the screen": (one({"action_type": "click", "x": 5, "y": -1}), "off_screen", "(5, -1)"),
    "empty text": (one({"action_type": "input_text", "text": ""}), "empty_text", "step 1: text is empty"),
    "no text": (one({"action_type": "input_text"}), "missing_field", "step 1: text is missing"),
    "half a surrogate pair": (one('{"action_type":"input_text","text":"\\ud83d"}'), "bad_text", "Unicode"),
    "blank app": (one({"action_type": "open_app", "app_name": " "}), "empty_text", "app_name is empty"),
    "direction": (one({"action_type": "scroll", "direction": "north"}), "bad_value", "direction is 'north'"),
    "no direction": (one({"action_type": "scroll"}), "missing_field", "direction is missing"),
    "empty goal": (one(WAIT, goal=" "), "empty_text", "the goal is empty"),
    "goal that is not UTF-8": (one(WAIT, goal=b"\xff\xfe"), "bad_text", "goal is not UTF-8"),
    "instruction that is not UTF-8": (
        one(WAIT, instructions=["", b"\xff"]),
        "bad_text",
        "step 1: step_instr",
    ),
    "no actions": (Recording(episode_id=2, actions=[]), "no_steps", "no actions"),
    "a screenshot too few": (
        one(WAIT, screenshots=[png()] * 2),
        "screens_mismatch",
        "2 screenshots for 2 actions, expected 3",
    ),
    "a screenshot too many": (
        one(WAIT, screenshots=[png()] * 4),
        "screens_mismatch",
        "4 screenshots for 2 actions",
    ),
    "a tree too few": (one(WAIT, trees=[b""] * 2), "screens_mismatch", "2 accessibility_trees"),
    "a width too few": (one(WAIT, widths=[WIDTH] * 2), "screens_mismatch", "2 screenshot_widths"),
    "heights of another kind": (one(WAIT, heights=[b"x"] * 3), "screens_mismatch", "0 screenshot_heights"),
    "an instruction too few": (one(WAIT, instructions=["x"]), "lengths_mismatch", "1 step_instructions"),
    "another size than stated": (
        one(WAIT, heights=[HEIGHT, 99, HEIGHT]),
        "bad_image",
        "step 1: the screenshot is 108x240, stated is 108x99",
    ),
    "undecodable screenshot": (
        one(WAIT, screenshots=[png(), broken_png(), png()]),
        "bad_image",
        "step 1: the checksum of PNG chunk IDAT",
    ),
    "cut screenshot": (
        one(WAIT, screenshots=[png()[:-20], png(), png()]),
        "bad_image",
        "step 0: the PNG is cut off",
    ),
    "no screenshot": (one(WAIT, screenshots=[b"", png(), png()]), "bad_image", "step 0: begins with nothing"),
    "broken tree": (one(WAIT, trees=[b"", b"\x0a\x7f", b""]), "bad_tree", "step 1: 2 bytes can't be decoded"),
    "no goal": (one(WAIT, leave_out=("goal",)), "missing_field", "feature goal is missing"),
    "no screenshots": (
        one(WAIT, leave_out=("screenshots",)),
        "missing_field",
        "feature screenshots is missing",
    ),
    "no id": (one(WAIT, leave_out=("episode_id",)), "missing_field", "feature episode_id is missing"),
    "no Example": (b"\x0a\xff\xff", "bad_record", "3 bytes can't be decoded as a tf.train.Example"),
    "empty record": (b"", "missing_field", "episode_id"),
    "empty feature": (example({"episode_id": []}), "missing_field", "feature episode_id is empty"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_record_is_rejected_alone(read_shard, case):
    record, reason, message = BROKEN[case]
    first, reject, last = read_shard(between(record))
    assert (first.episode_id, last.episode_id) == ("1", "3")
    assert isinstance(reject, Reject) and reject.reason == reason
    assert message in reject.message
    assert (reject.file, reject.record) == (SHARD, "record 1")
    named = isinstance(record, Recording) and "episode_id" not in record.leave_out
    assert reject.episode_id == ("2" if named else None)


def test_a_duplicate_id_is_rejected_by_the_check_behind_every_builder(read_shard):
    items = read_shard([Recording(episode_id=5), Recording(episode_id=5), Recording(episode_id=6)])
    assert ids(checked(items, file=SHARD, seen=set())) == ["5", "duplicate_id", "6"]


def raw_shard(numbers):
    return [frame(Recording(episode_id=n, actions=[WAIT]).example()) for n in numbers]


def read_raw(tmp_path: Path, read, raw: bytes):
    (tmp_path / SHARD).write_bytes(gzip.compress(raw, 1, mtime=0))
    return read("android_control", tmp_path)


def flip(data: bytes, position: int) -> bytes:
    changed = bytearray(data)
    changed[position] ^= 0x40
    return bytes(changed)


def test_a_flipped_byte_in_the_data_costs_that_record_alone(tmp_path, read):
    frames = raw_shard(range(4))
    items = read_raw(tmp_path, read, b"".join([frames[0], flip(frames[1], 500), *frames[2:]]))
    assert ids(items) == ["0", "bad_crc", "2", "3"]
    assert items[1].record == "record 1" and "checksum of the record's" in items[1].message


def test_a_flipped_byte_in_the_datas_checksum_costs_that_record_alone(tmp_path, read):
    frames = raw_shard(range(3))
    assert ids(read_raw(tmp_path, read, b"".join([frames[0], flip(frames[1], -1), frames[2]]))) == [
        "0",
        "bad_crc",
        "2",
    ]


@pytest.mark.parametrize("position", [0, 7, 9])
def test_a_wrong_length_ends_the_file_with_one_reject_that_says_so(tmp_path, read, position):
    frames = raw_shard(range(4))
    items = read_raw(tmp_path, read, b"".join([frames[0], flip(frames[1], position), *frames[2:]]))
    assert ids(items) == ["0", "bad_crc"]
    assert items[1].record == "record 1" and "the rest of the file is left out" in items[1].message


@pytest.mark.parametrize(
    ("cut", "message"), [(5, "a record's length"), (300, "a record of"), (-2, "a record of")]
)
def test_a_record_that_is_cut_off_is_rejected(tmp_path, read, cut, message):
    frames = raw_shard(range(3))
    items = read_raw(tmp_path, read, frames[0] + frames[1] + frames[2][:cut])
    assert ids(items) == ["0", "1", "truncated"]
    assert items[2].record == "record 2" and message in items[2].message


def test_a_file_cut_at_any_place_gives_its_whole_records_and_one_reject(tmp_path, read):
    frames = raw_shard(range(3))
    whole = gzip.compress(b"".join(frames), 1, mtime=0)
    ends = [sum(map(len, frames[: n + 1])) for n in range(3)]
    for cut in [0, 1, 9, *range(20, len(whole) - 9, 97), len(whole) - 8, len(whole) - 1]:
        (tmp_path / SHARD).write_bytes(whole[:cut])
        items = read("android_control", tmp_path)
        there = len(zlib.decompressobj(31).decompress(whole[:cut]))
        good = [str(n) for n, end in enumerate(ends) if end <= there]
        assert ids(items) == [*good, "truncated"], f"cut at {cut}"


def test_a_flipped_byte_anywhere_in_the_gzip_file_is_never_silent(tmp_path, read):
    whole = gzip.compress(b"".join(raw_shard(range(3))), 1, mtime=0)
    for position in range(0, len(whole), 31):
        if 4 <= position < 10:  # the header's time and system are free
            continue
        (tmp_path / SHARD).write_bytes(flip(whole, position))
        items = read("android_control", tmp_path)
        assert any(isinstance(item, Reject) for item in items), f"flipped {position}"
        assert all(item.goal == "Save the note" for item in items if isinstance(item, Episode))


def test_damage_in_the_gzip_stream_keeps_what_lies_before_it(tmp_path, read):
    frames = raw_shard(range(3))
    first = zlib.compressobj(1, zlib.DEFLATED, 31)
    whole = first.compress(frames[0] + frames[1]) + first.flush(zlib.Z_SYNC_FLUSH) + b"\xff" * 50
    (tmp_path / SHARD).write_bytes(whole)
    items = read("android_control", tmp_path)
    assert ids(items) == ["0", "1", "bad_gzip"] and "the gzip stream is damaged" in items[2].message


def test_a_wrong_gzip_checksum_is_said_once(tmp_path, read):
    path = write_shard(tmp_path / SHARD, [Recording(episode_id=1)])
    path.write_bytes(flip(path.read_bytes(), -6))
    assert ids(read("android_control", path)) == ["1", "bad_gzip_checksum"]
    frames = raw_shard(range(2))
    spoilt = gzip.compress(flip(frames[0], 400) + frames[1], 1, mtime=0)
    path.write_bytes(flip(spoilt, -6))
    assert ids(read("android_control", path)) == ["bad_crc", "1"]


@pytest.mark.parametrize("content", [b"", b"no gzip at all, just text", json.dumps({"a": 1}).encode()])
def test_a_file_of_another_kind_is_one_reject(tmp_path, read, content):
    (tmp_path / SHARD).write_bytes(content)
    [reject] = read("android_control", tmp_path)
    assert reject.reason == ("bad_gzip" if content else "truncated") and reject.record == "record 0"
