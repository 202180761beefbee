"""Whatever the files of the desktop, web and parquet sources hold, a builder answers with episodes or rejects."""

from __future__ import annotations

import json
import random

import pytest
from android_control_writer import notes_screen, png
from desktop_writer import (
    GOOD,
    PLAN,
    agentnet,
    at,
    bench,
    keyboard,
    mouse,
    right,
    write_opencua,
    write_session,
)
from parquet_writer import element, gui_r1_row, mind2web_row, write_parquet
from test_fuzz_sources import assert_sound, mutated, spoilt

from solar_rl.errors import RecordError

CODES = [
    "pyautogui.moveTo(0.1, 0.2)\npyautogui.dragTo(0.3, 0.4, button='left')",
    "pyautogui.keyDown('ctrl')\npyautogui.press('a')\npyautogui.keyUp('ctrl')",
    "pyautogui.write(message='x')\npyautogui.press(['enter', 'tab'], presses=2)",
    "pyautogui.scroll(-5, x=0.5, y=0.5)\ncomputer.terminate(status='success')",
]
TRAJECTORY = agentnet(*CODES)
TASK = bench(
    {
        "ground_truth_actions": [right("click", (0.4, 0.4, 0.2, 0.2), position=at(0.5, 0.5))],
        "alternative_options": [[right("hotkey", keys=["ctrl", "s"])], [right("scroll", amount=-3)]],
    },
    {"ground_truth_actions": [right("write", text="a"), right("press", keys=["enter"])]},
)
ROLLOUT = {
    "episode_id": "a",
    "task": "Notes",
    "goal": "Save",
    "success": 1,
    "split": "train",
    "screen": [108, 240],
    "steps": [
        {
            "action": {"action_type": "click", "index": 1},
            "screenshot": "0.png",
            "forest": "0.pb",
            "thought": "t",
        },
        {
            "action": {"action_type": "scroll", "direction": "up", "index": 0},
            "elements": [[1, 2, 3, 4], None],
        },
        {"action": {"action_type": "input_text", "text": "a", "x": 3, "y": 4}, "instruction": "i"},
        {"action": {"action_type": "answer", "text": "7"}},
        {"action": {"action_type": "status", "goal_status": "complete"}},
    ],
}


def dumped(value) -> bytes:
    return json.dumps(value).encode()


def test_opencua_lines_with_odd_values_anywhere(tmp_path, read):
    dice = random.Random(4)
    rows = [dumped(spoilt(TRAJECTORY, dice)) for _ in range(1500)]
    assert_sound(read("opencua", write_opencua(tmp_path, *rows)), len(rows))


def test_opencua_code_of_any_text(tmp_path, read):
    dice = random.Random(5)
    rows = [agentnet(mutated(dice.choice(CODES).encode(), dice).decode("latin-1")) for _ in range(1500)]
    assert_sound(read("opencua", write_opencua(tmp_path, *rows)), len(rows))


def test_opencua_tasks_with_odd_values_anywhere(tmp_path, read):
    dice = random.Random(6)
    write_opencua(tmp_path, TASK)
    for number in range(600):
        (tmp_path / f"{number}.json").write_bytes(dumped(spoilt(TASK, dice)))
    assert_sound(read("opencua", tmp_path), 601)


def test_screenagent_turns_with_odd_values_anywhere(tmp_path, read):
    dice = random.Random(7)
    area = {
        "upper_left_position": {"width": 1, "height": 2},
        "lower_right_position": {"width": 50, "height": 90},
    }
    turns = [
        [PLAN],
        [mouse("click", (54, 60), clickable_area=area), mouse("drag", (60, 90))],
        [keyboard("press", keyboard_key="Ctrl+A"), keyboard("text", keyboard_text="x")],
        [mouse("scroll_down", (5, 6)), GOOD],
    ]
    for number in range(80):
        folder = write_session(tmp_path / f"s{number}", *turns)
        file = dice.choice(sorted(folder.glob("*.json")))
        file.write_bytes(dumped(spoilt(json.loads(file.read_bytes()), dice)))
    assert_sound(read("screenagent", tmp_path), 80)


def test_androidworld_lines_with_odd_values_anywhere(tmp_path, read):
    dice = random.Random(8)
    (tmp_path / "0.png").write_bytes(png())
    (tmp_path / "0.pb").write_bytes(notes_screen())
    lines = [dumped(spoilt(ROLLOUT, dice)) for _ in range(1500)]
    lines += [mutated(dumped(ROLLOUT), dice).replace(b"\n", b" ") or b"x" for _ in range(500)]
    (tmp_path / "odd.jsonl").write_bytes(b"\n".join(lines))
    assert_sound(read("android_world", tmp_path), sum(bool(line.strip()) for line in lines))


TEXTS = [None, "", "x", "-1", "nan", "[]", "{}", "null", "3", '{"op": 3}', '{"attributes": []}', "é" * 50]


def garbled(text, dice):
    return mutated(text.encode().ljust(170), dice).decode("latin-1").rstrip()


def odd(row, dice):
    """Replace a text of a row by another one, or a number of its box."""
    row = dict(row)
    name = dice.choice([n for n, value in row.items() if isinstance(value, (str, list))])
    if isinstance(row[name], str):
        row[name] = dice.choice([*TEXTS, garbled(row[name], dice)])
    elif name == "gt_bbox":
        row[name] = dice.choice(
            [None, [], [0.5], [float("nan")] * 4, [1e300, 1], [-1, 2, 3, 4], [5, 5, 1, 1]]
        )
    else:
        row[name] = dice.choice([None, [], [dice.choice(TEXTS)], [garbled(t, dice) for t in row[name]]])
    return row


def test_gui_r1_rows_with_odd_values_anywhere(tmp_path, read):
    dice = random.Random(9)
    actions = ("click", "type", "scroll", "wait", "hotkey")
    rows = [odd(gui_r1_row(dice.choice(actions), text="down"), dice) for _ in range(600)]
    assert_sound(read("gui_r1", write_parquet(tmp_path / "train.parquet", *rows)), len(rows))


def test_mind2web_rows_with_odd_values_anywhere(tmp_path, read):
    dice = random.Random(10)
    rows = []
    for number in range(600):
        row = mind2web_row(f"t{number}", 0, dice.choice(("CLICK", "TYPE")), "x", element(1, 2, 30, 40))
        row = odd(row, dice)
        rows.append(row | {"annotation_id": f"t{number}"})
    assert_sound(read("mind2web", write_parquet(tmp_path / "train-00000-of-00001.parquet", *rows)), len(rows))


@pytest.mark.parametrize("builder", ["gui_r1", "mind2web"])
def test_parquet_files_of_any_bytes(tmp_path, read, builder):
    dice = random.Random(11)
    file = tmp_path / "train-00000-of-00001.parquet"
    row = gui_r1_row() if builder == "gui_r1" else mind2web_row("a", 0)
    good = write_parquet(file, *[row] * 3).read_bytes()
    for _ in range(150):
        file.write_bytes(mutated(good, dice))
        for item in read(builder, tmp_path):
            assert item.episode_id or item.reason


def test_code_is_read_in_bounded_time_and_never_run(tmp_path):
    from builders._hand import Hand
    from builders.opencua.code import perform

    touched = tmp_path / "touched"
    attacks = [
        f"open({str(touched)!r}, 'w')",
        f"pyautogui.write(open({str(touched)!r}, 'w').name)",
        f"pyautogui.write(message=[__import__('pathlib').Path({str(touched)!r}).touch()])",
        "(" * 5000 + ")" * 5000,
        "pyautogui.write(" + "[" * 150 + "]" * 150 + ")",
        "pyautogui.press('a', presses=10**9)",
        "pyautogui.press('a', presses=1000000000)",
        "pyautogui.write(message='a' * 10**9)",
        "1" + "+1" * 9000,
        "pyautogui.click(x=" + "9" * 5000 + ", y=0)",
    ]
    for code in attacks:
        with pytest.raises(RecordError):
            perform(code, Hand(), "reject")
    assert not touched.exists()
