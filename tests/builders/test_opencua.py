from __future__ import annotations

import json

import pytest
from desktop_writer import agentnet, at, bench, right, write_opencua

from solar_rl.actions import Action, Box
from solar_rl.errors import ConfigError
from solar_rl.schema import Alternative, Episode


@pytest.fixture
def read_rows(tmp_path, read):
    def _read(*rows, **options):
        return read("opencua", write_opencua(tmp_path, *rows), **options)

    return _read


@pytest.fixture
def did(read_rows):
    def _did(*codes, **options):
        [episode] = read_rows(agentnet(*codes), **options)
        assert isinstance(episode, Episode), episode
        return [step.action for step in episode.steps]

    return _did


@pytest.mark.parametrize(
    ("code", "action"),
    [
        ("pyautogui.click(x=0.1632, y=0.2711)", Action("click", 0.1632, 0.2711)),
        ("pyautogui.click(0.5, 0.25)", Action("click", 0.5, 0.25)),
        ("pyautogui.click(x=0.5, y=0.25, button='right')", Action("right_click", 0.5, 0.25)),
        ("pyautogui.click(x=0.5, y=0.25, clicks=2)", Action("double_click", 0.5, 0.25)),
        ("pyautogui.doubleClick(x=0.5, y=0.25)", Action("double_click", 0.5, 0.25)),
        ("pyautogui.rightClick(x=0.5, y=0.25)", Action("right_click", 0.5, 0.25)),
        ("pyautogui.moveTo(x=0.5, y=0.25)", Action("hover", 0.5, 0.25)),
        ("pyautogui.moveTo(0.1, 0.2)\npyautogui.dragTo(0.5, 0.6, button='left')", Action("drag", 0.1, 0.2, 0.5, 0.6)),
        ("pyautogui.scroll(-5)", Action("scroll", direction="down")),
        ("pyautogui.scroll(3, x=0.5, y=0.5)", Action("scroll", 0.5, 0.5, direction="up")),
        ("pyautogui.moveTo(0.1, 0.2); pyautogui.scroll(2)", Action("scroll", 0.1, 0.2, direction="up")),
        ("pyautogui.hscroll(4)", Action("scroll", direction="right")),
        ("pyautogui.hscroll(-4)", Action("scroll", direction="left")),
        ("pyautogui.write(message='Käse, \"x\"')", Action("input_text", text='Käse, "x"')),
        ("pyautogui.typewrite('a\\nb', interval=0.1)", Action("input_text", text="a\nb")),
        ("pyautogui.press('enter')", Action("press", button="enter")),
        ("pyautogui.press(keys=['esc'])", Action("press", keys=("esc",))),
        ("pyautogui.press('down', presses=3)", Action("press", keys=("down", "down", "down"))),
        ("pyautogui.press('home')", Action("press", keys=("home",))),
        ("pyautogui.hotkey('ctrl', 'c')", Action("press", keys=("ctrl", "c"))),
        ("pyautogui.hotkey(['ctrl', 'shift', 't'])", Action("press", keys=("ctrl", "shift", "t"))),
        ("pyautogui.keyDown('alt'); pyautogui.press('tab'); pyautogui.keyUp('alt')", Action("press", keys=("alt", "tab"))),
        ("pyautogui.keyDown('win')\npyautogui.keyUp('win')", Action("press", keys=("win",))),
        ("pyautogui.mouseDown(0.1, 0.2)\npyautogui.moveTo(0.3, 0.4)\npyautogui.mouseUp()", Action("drag", 0.1, 0.2, 0.3, 0.4)),
        ("pyautogui.write('x')\npyautogui.press('enter')", Action("input_text", text="x\n")),
        ("import pyautogui\nimport time\ntime.sleep(2)", Action("wait")),
        ("computer.wait()", Action("wait")),
        ("computer.terminate(status='success')", Action("finished", status="complete")),
        ("computer.terminate('failure')", Action("finished", status="infeasible")),
    ],
)  # fmt: skip
def test_reads_every_call(did, code, action):
    assert did(code) == [action]


def test_a_drag_starts_where_the_last_step_left_the_mouse(did):
    assert did("pyautogui.click(0.1, 0.2)", "pyautogui.dragTo(0.5, 0.6)")[1] == Action(
        "drag", 0.1, 0.2, 0.5, 0.6
    )
    scroll = did("pyautogui.click(0.1, 0.2)", "pyautogui.scroll(-1)")[1]
    assert scroll == Action("scroll", direction="down"), "nobody chose a place for it"


def test_a_triple_click_is_no_canonical_action_unless_it_is_asked_to_be_one(read_rows, did):
    for code in ("computer.tripleClick(x=0.5, y=0.5)", "pyautogui.triple_click(0.5, 0.5)"):
        [reject] = read_rows(agentnet(code))
        assert reject.reason == "unknown_action" and "triple_click double_click" in reject.message
        assert did(code, triple_click="double_click") == [Action("double_click", 0.5, 0.5)]


def test_several_actions_in_one_step_are_a_step_each_or_a_reject_but_never_dropped(read_rows):
    line = agentnet(
        "pyautogui.click(0.1, 0.2)\npyautogui.write('x')\npyautogui.press('tab')", "computer.wait()"
    )
    [episode] = read_rows(line)
    assert [s.action.action_type for s in episode.steps] == ["click", "input_text", "press", "wait"]
    assert [s.step_index for s in episode.steps] == [0, 1, 2, 3]
    assert [s.screenshot is not None for s in episode.steps] == [True, False, False, True]
    assert [s.thought for s in episode.steps] == ["thought 0", None, None, "thought 1"]
    assert {s.instruction for s in episode.steps[:3]} == {"do 0"}
    assert {(s.screen_width, s.screen_size) for s in episode.steps} == {(108, "stated")}
    [reject] = read_rows(line, several_actions="reject")
    assert reject.reason == "several_actions" and "step 0: 3 actions in one step: click" in reject.message


def test_what_the_source_says_of_a_trajectory_is_kept(read_rows):
    [episode] = read_rows(agentnet("computer.wait()", task_completed=False, natural_language_task="please"))
    assert (episode.platform, episode.split, episode.recorded_success) == ("desktop", "train", False)
    assert (episode.goal, episode.steps[0].thought, episode.steps[0].instruction) == (
        "sort the table",
        "thought 0",
        "do 0",
    )
    [renamed] = read_rows(
        agentnet("computer.wait()", natural_language_task="please"), goal="natural_language_task"
    )
    assert renamed.goal == "please"


def test_steps_that_the_source_calls_wrong_are_no_labels(read_rows):
    line = agentnet("computer.wait()", "computer.wait()")
    line["traj"][1]["value"]["last_step_correct"] = False
    [reject] = read_rows(line)
    assert (
        reject.reason == "incorrect_step"
        and "step 1" in reject.message
        and "incorrect_steps keep" in reject.message
    )
    assert isinstance(read_rows(line, incorrect_steps="keep")[0], Episode)
    line["traj"][1]["value"] |= {"last_step_correct": True, "last_step_redundant": True}
    assert isinstance(read_rows(line)[0], Episode)
    assert read_rows(line, redundant_steps="reject")[0].reason == "redundant_step"


def test_gaps_in_step_numbers_are_by_design_and_repeated_numbers_are_not(read_rows):
    line = agentnet("computer.wait()", "pyautogui.click(0.5, 0.5)")
    line["traj"][0]["index"], line["traj"][1]["index"] = 15, 13
    [episode] = read_rows(line)
    assert [s.action.action_type for s in episode.steps] == ["click", "wait"]
    line["traj"][0]["index"] = 13
    assert read_rows(line)[0].reason == "repeated_step"


def test_the_bench_has_boxes_and_several_right_answers(read_rows):
    task = bench(
        {
            "ground_truth_actions": [
                right("click", (0.4, 0.4, 0.2, 0.2), (0.8, 0.8, 0.1, 0.1), position=at(0.5, 0.5))
            ],
            "alternative_options": [
                [right("click", (0.1, 0.1, 0.2, 0.2), position=at(0.15, 0.15))],
                [right("hotkey", keys=["ctrl", "s"]), right("press", keys=["enter"])],
            ],
        },
        {"ground_truth_actions": [right("write", text="slides"), right("press", keys=["enter"])]},
        {"ground_truth_actions": [right("terminate", status="success")]},
    )
    [episode] = read_rows(task)
    click, typed, end = episode.steps
    assert (episode.goal, episode.split, episode.recorded_success) == ("export the slides", "test", None)
    assert click.target_box == Box(0.4, 0.4, 0.4 + 0.2, 0.4 + 0.2) and click.box_rule == "smallest_listed"
    assert click.alternatives == (
        Alternative(Action("click", (0.8 + (0.8 + 0.1)) / 2, (0.8 + (0.8 + 0.1)) / 2), Box(0.8, 0.8, 0.8 + 0.1, 0.8 + 0.1)),
        Alternative(Action("click", 0.15, 0.15), Box(0.1, 0.1, 0.1 + 0.2, 0.1 + 0.2)),
        Alternative(Action("press", keys=("ctrl", "s"))),
    )  # fmt: skip
    assert (typed.action, typed.alternatives) == (Action("input_text", text="slides\n"), ())
    assert (end.action.status, end.instruction, end.thought) == ("complete", "do 2", "thought 2")


@pytest.mark.parametrize(
    ("given", "action"),
    [
        (right("scroll", amount=-5), Action("scroll", direction="down")),
        (right("scroll", direction="up"), Action("scroll", direction="up")),
        (right("scroll", direction="left"), Action("scroll", direction="left")),
        (right("hscroll", pixels=3), Action("scroll", direction="right")),
        (right("doubleClick", position=at(0.5, 0.5)), Action("double_click", 0.5, 0.5)),
        (right("rightClick", position=at(0.5, 0.5)), Action("right_click", 0.5, 0.5)),
        (right("moveTo", position=at(0.5, 0.5)), Action("hover", 0.5, 0.5)),
        (right("press", keys=["enter"]), Action("press", button="enter")),
        (right("write", content="x"), Action("input_text", text="x")),
        (right("terminate", status="failure"), Action("finished", status="infeasible")),
    ],
)
def test_reads_every_right_action_of_the_bench(read_rows, given, action):
    [episode] = read_rows(bench({"ground_truth_actions": [given]}))
    assert episode.steps[0].action == action


def test_a_long_file_is_several_shards_that_give_every_line_once(tmp_path, read_rows, monkeypatch):
    from solar_rl.builder import load_builder
    from solar_rl.config import SourceConfig

    rows = [agentnet("computer.wait()", task_id=f"t{i}") for i in range(20)]
    folder = write_opencua(tmp_path, *rows[:12], b'{"half', *rows[12:])
    builder = load_builder(SourceConfig(builder="opencua", path=str(folder)))
    whole = [item for shard in builder.shards() for item in builder.read(shard)]
    monkeypatch.setattr(type(builder), "shard_bytes", 900)
    assert len(builder.shards()) > 3
    parts = [item for shard in builder.shards() for item in builder.read(shard)]
    assert parts == whole and len(whole) == 21
    assert [item.record for item in parts if not isinstance(item, Episode)] == ["line 13"]


def test_screenshots_lie_beside_the_files_elsewhere_or_nowhere(tmp_path, read_rows):
    line = agentnet("pyautogui.click(0.5, 0.5)", "computer.wait()")
    line["traj"][1]["image"] = "gone.png"
    [reject] = read_rows(line)
    assert reject.reason == "missing_image" and "step 1: screenshot gone.png" in reject.message
    [kept] = read_rows(line, missing_screenshots="keep")
    assert [(s.screenshot is None, s.screen_width, s.screen_size) for s in kept.steps] == [
        (False, 108, "stated"),
        (True, 108, "inferred"),
    ]
    line["traj"][0]["image"] = "../agentnet.jsonl"
    [kept] = read_rows(line, missing_screenshots="keep")
    assert {(s.screenshot, s.screen_width, s.screen_size) for s in kept.steps} == {(None, 1920, "assumed")}
    with pytest.raises(ConfigError, match="no such folder"):
        read_rows(line, images=str(tmp_path / "absent"))


BROKEN = {
    "no Python": ("pyautogui.click(", "bad_code", "is no Python"),
    "something else": ("x = 1", "bad_code", "'x = 1' is no call of pyautogui"),
    "another module": ("os.system('rm -rf /')", "bad_code", "is no call"),
    "an expression": ("pyautogui.click(x=0.1 + __import__('os').getpid(), y=0)", "bad_code", "is no literal"),
    "spread": ("pyautogui.click(**{'x': 0.1})", "bad_code", "is no call"),
    "deep": ("-" * 15_000 + "1", "bad_code", ""),
    "long": ("#" * 30_000, "bad_code", "30,000 characters"),
    "nothing": ("# nothing", "no_action", "no action"),
    "unknown": ("pyautogui.screenshot()", "unknown_action", "unknown action 'screenshot'"),
    "middle button": ("pyautogui.click(0.1, 0.1, button='middle')", "unknown_action", "middle"),
    "click with a key": ("pyautogui.keyDown('ctrl')\npyautogui.click(0.1, 0.1)\npyautogui.keyUp('ctrl')", "unknown_action", "ctrl held"),
    "key stays down": ("pyautogui.keyDown('ctrl')", "bad_value", "ctrl goes down"),
    "key comes up": ("pyautogui.keyUp('ctrl')", "bad_value", "didn't go down"),
    "button stays down": ("pyautogui.mouseDown(0.1, 0.1)", "bad_value", "goes down"),
    "no mouse yet": ("pyautogui.click()", "missing_field", "click has no point"),
    "drag from nowhere": ("pyautogui.dragTo(0.1, 0.1)", "missing_field", "drag has no point"),
    "half a point": ("pyautogui.click(x=0.1)", "missing_field", "y is missing"),
    "pixels": ("pyautogui.click(x=960, y=540)", "off_screen", "outside the screen"),
    "text as number": ("pyautogui.click(x='a', y=0)", "bad_number", "x is 'a'"),
    "no scroll": ("pyautogui.scroll(0)", "bad_value", "by 0"),
    "empty text": ("pyautogui.write('')", "empty_text", "empty"),
    "no key": ("pyautogui.press([])", "missing_field", "no key"),
    "status": ("computer.terminate(status='maybe')", "bad_value", "status is 'maybe'"),
    "too many": ("pyautogui.press('a', 1, 2, 3)", "bad_code", "4 arguments"),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_broken_code_is_rejected_alone_and_never_run(read_rows, case):
    code, reason, message = BROKEN[case]
    first, reject, last = read_rows(
        agentnet("computer.wait()", task_id="a"),
        agentnet(code, task_id="b"),
        agentnet("computer.wait()", task_id="c"),
    )
    assert (first.episode_id, last.episode_id) == ("a", "c")
    assert (reject.reason, reject.file, reject.record, reject.episode_id) == (
        reason,
        "agentnet.jsonl",
        "line 2",
        "b",
    )
    assert message in reject.message and "step 0" in reject.message


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        ({}, "bad_value"),
        ({"ground_truth_actions": []}, "bad_value"),
        ({"ground_truth_actions": [right("pinch")]}, "unknown_action"),
        ({"ground_truth_actions": [{"type": 3}]}, "unknown_action"),
        ({"ground_truth_actions": [right("click")]}, "missing_field"),
        ({"ground_truth_actions": [right("click", (0, 0, 1), position=at(0.5, 0.5))]}, "bad_box"),
        ({"ground_truth_actions": [right("scroll")]}, "missing_field"),
        ({"ground_truth_actions": [right("wait")], "alternative_options": {"a": 1}}, "bad_value"),
    ],
)  # fmt: skip
def test_broken_bench_steps_are_rejected(read_rows, step, reason):
    [reject] = read_rows(bench({"ground_truth_actions": None} | step))
    assert (reject.reason, reject.file, reject.record) == (reason, "b1.json", "task b1")


def test_an_empty_folder_and_half_a_file_are_told(tmp_path, read):
    with pytest.raises(ConfigError, match="holds no"):
        read("opencua", tmp_path)
    (tmp_path / "a.json").write_text(json.dumps(bench({}))[:50])
    [reject] = read("opencua", tmp_path)
    assert (reject.reason, reject.record) == ("bad_json", "task a")
