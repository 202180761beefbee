"""Whatever bytes a record holds, a builder answers with an episode or a reject and goes on."""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest
from android_control_writer import Recording

from solar_rl.episodes import checked
from solar_rl.schema import Episode, Reject

ODD = [
    None,
    True,
    -1,
    0,
    1e400,
    float("nan"),
    10**30,
    "",
    "x",
    "\ud800",
    [],
    [[]],
    [1, 2, 3, 4],
    {},
    {"action": 1},
]


def mutated(data: bytes, dice: random.Random) -> bytes:
    out = bytearray(data)
    for _ in range(dice.randint(1, 4)):
        place = dice.randrange(len(out))
        choice = dice.randrange(4)
        if choice == 0:
            out[place] = dice.randrange(256)
        elif choice == 1:
            out[place] ^= 1 << dice.randrange(8)
        elif choice == 2:
            del out[place : place + dice.randint(1, 40)]
        else:
            out[place:place] = bytes(dice.randrange(256) for _ in range(dice.randint(1, 9)))
    return bytes(out or b"\0")


def spoilt(value, dice):
    """Replace one random part of a JSON value by something odd."""
    if isinstance(value, (dict, list)) and value and dice.random() < 0.85:
        copy = dict(value) if isinstance(value, dict) else list(value)
        key = dice.choice(list(copy) if isinstance(copy, dict) else range(len(copy)))
        if dice.random() < 0.1:
            del copy[key]
        else:
            copy[key] = spoilt(copy[key], dice)
        return copy
    return dice.choice(ODD)


def assert_sound(items, count):
    kinds = Counter(type(item) for item in items)
    assert sum(kinds.values()) == count and set(kinds) <= {Episode, Reject}
    for item in checked(items, file="f", seen=set()):
        if isinstance(item, Reject):
            assert item.reason and item.message and item.record
            json.dumps([item.message, item.episode_id]).encode()


def test_androidcontrol_records_of_any_bytes(read_shard):
    dice = random.Random(1)
    good = Recording().example()
    front = len(good) - 600  # past the screenshots, whose checksums hide what lies behind them
    records = [mutated(good, dice) for _ in range(150)]
    records += [good[:front] + mutated(good[front:], dice) for _ in range(350)]
    assert_sound(read_shard(records), 500)


LINE = {
    "android_control_jsonl": {
        "episode_id": 5,
        "goal": "a goal",
        "split": "test",
        "actions": [
            {"action_type": "click", "x": 3, "y": 4},
            {"action_type": "input_text", "text": "a"},
            {"action_type": "scroll", "direction": "up"},
            {"action_type": "open_app", "app_name": "b"},
        ],
        "step_instructions": ["a", "b", "c", "d"],
        "candidate_bboxes": [[[1, 2, 3, 4]], [], [], [[1, 2, 3, 4]]],
    },
    "ui_s1": {
        "episode_id": 5,
        "goal": "a goal",
        "is_successful": True,
        "steps": [
            {
                "action_content": {"action": "swipe", "coordinate": [540, 600], "coordinate2": [540, 1800]},
                "screenshot": "5_0.png",
                "step_instruction": "go",
                "check_options": {"direction": "up", "candidate_bbox": [[1, 2, 3, 4]]},
            },
            {"action_content": {"action": "system_button", "button": "Back"}, "screenshot": "5_1.png"},
        ],
    },
}


@pytest.mark.parametrize("builder", LINE)
def test_lines_with_odd_values_anywhere(tmp_path, read, builder):
    dice = random.Random(2)
    lines = [json.dumps(spoilt(LINE[builder], dice)).encode() for _ in range(1500)]
    (tmp_path / "odd.jsonl").write_bytes(b"\n".join(lines))
    assert_sound(read(builder, tmp_path), len(lines))


@pytest.mark.parametrize("builder", LINE)
def test_lines_of_any_bytes(tmp_path, read, builder):
    dice = random.Random(3)
    good = json.dumps(LINE[builder]).encode()
    lines = [mutated(good, dice).replace(b"\n", b" ") or b"x" for _ in range(500)]
    (tmp_path / "odd.jsonl").write_bytes(b"\n".join(lines))
    assert_sound(read(builder, tmp_path), sum(bool(line.strip()) for line in lines))
