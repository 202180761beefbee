"""MiniWoB++ as an environment: the package's own pages and verdicts, repeatable, offline, and gone afterwards."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from builders.miniwob import EXPERTS, LEFT_OUT, SIMPLE, SUITE, MiniWobEnv, expert_action
from builders.miniwob.browser import find_browser
from builders.miniwob.doing import spelt
from solar_rl.actions import ACTION_TYPES, Action
from solar_rl.errors import InputError
from solar_rl.images import decode_image

pytestmark = pytest.mark.browser
ROOT = Path(__file__).parents[2]


def play(env: MiniWobEnv, task: str, seed: int) -> list[Action]:
    """Let the expert play an episode to its end."""
    env.reset(task, seed)
    actions = []
    while not env.done:
        actions.append(expert_action(env).action)
        env.act(actions[-1])
    return actions


@pytest.mark.parametrize("task", SUITE + SIMPLE)
def test_the_expert_reaches_the_full_reward(env, task):
    play(env, task, 31)
    assert env.success, env.page.goal


@pytest.mark.parametrize("task", SUITE)
def test_as_a_list_the_expert_touches_points_that_it_names_and_reaches_the_full_reward(
    env, task, monkeypatch
):
    monkeypatch.setattr(env, "text", "list")
    monkeypatch.setattr(env, "screenshots", False)
    seen = env.reset(task, 31)
    while not env.done:
        shown = expert_action(env)
        if shown.action.action_type == "click":
            point = f" {shown.action.x * 1000:.0f} {shown.action.y * 1000:.0f}"
            assert any(
                line.startswith(shown.name) and line.endswith(point) for line in seen.screen_text.split("\n")
            )
        seen = env.act(shown.action)
    assert env.success, seen.screen_text


@pytest.mark.parametrize("task", ["click-button", "email-inbox", "form-sequence", "login-user-popup"])
def test_the_expert_reaches_it_with_the_mouse_too(env, task, monkeypatch):
    monkeypatch.setattr(env, "action_space", "pointer")
    play(env, task, 7)
    assert env.success


def test_the_same_seed_shows_the_same_pixels_whatever_was_played_before(env):
    first = env.reset("email-inbox-forward", 5)
    play(env, "choose-date-nodelay", 1)
    again = env.reset("email-inbox-forward", 5)
    assert again == first
    assert env.reset("email-inbox-forward", 6).goal != first.goal


def test_pages_and_verdicts_are_those_of_the_package(env, monkeypatch):
    """The package's own gymnasium environment shows the same goal and elements, and rewards the same clicks."""
    gymnasium, miniwob = pytest.importorskip("gymnasium"), pytest.importorskip("miniwob")
    from miniwob.action import ActionTypes
    from miniwob.reward import get_binary_reward

    for variable, program in zip(
        ("MINIWOB_CHROME_BINARY", "MINIWOB_CHROMEDRIVER"), find_browser(None, None), strict=True
    ):
        monkeypatch.setenv(variable, program)
    gymnasium.register_envs(miniwob)
    theirs = gymnasium.make("miniwob/click-button-v1", reward_processor=get_binary_reward)
    try:
        for seed, right in ((3, True), (4, False), (5, True)):
            shown, _ = theirs.reset(seed=seed, options={"record_screenshots": False})
            env.reset("click-button", seed)
            assert shown["utterance"] == env.page.goal
            assert [(e["ref"], e["tag"], e["text"]) for e in shown["dom_elements"]] == [
                (e.ref, e.tag, e.text) for e in env.page.elements
            ]
            wanted = expert_action(env).action
            [target] = [e for e in env.page.all(tag="button") if e.box and e.box.contains(wanted.x, wanted.y)]
            others = [
                e for e in env.page.all() if e.tag in ("button", "input_text") and e.text != target.text
            ]
            chosen = target if right else next(e for e in others if e.tag == "button" and e.point)
            click = theirs.unwrapped.create_action(ActionTypes.CLICK_ELEMENT, ref=chosen.ref)
            _, reward, done, _, _ = theirs.step(click)
            env.act(Action("click", x=chosen.point[0], y=chosen.point[1]))
            assert (done, reward == 1.0) == (env.done, env.success) == (True, right)
    finally:
        theirs.close()


def test_an_observation_is_one_screen_in_three_ways(env):
    seen = env.reset("login-user", 2)
    picture = decode_image(seen.screenshot.data)
    assert picture.size == (seen.width, seen.height) == (320, 420)
    assert picture.convert("RGB").getpixel((300, 90)) == (255, 255, 0), "the yellow bar belongs to it"
    assert len(seen.boxes) == len(seen.screen_text.splitlines())
    assert all(0 <= a <= 1 for box in seen.boxes for a in box)
    assert 'label "Username"' in seen.screen_text
    field = env.page.all(id="password")[0]
    env.act(Action("click", x=field.point[0], y=field.point[1]))
    seen = env.act(Action("input_text", text="abc"))
    assert 'value "\N{BULLET}\N{BULLET}\N{BULLET}"' in seen.screen_text and "abc" not in seen.screen_text


def test_what_is_scrolled_out_is_neither_shown_nor_touched(env):
    env.reset("order-food", 0)
    order = env.page.all(tag="button", text="Order!")[0]
    assert order.box is None and "Order!" not in env.page.text()
    for _ in range(8):
        env.act(Action("scroll", direction="down", x=0.5, y=0.7))
    assert env.page.all(tag="button", text="Order!")[0].box is not None
    env.act(Action("scroll", direction="up", x=0.5, y=0.7))
    assert not env.done


def test_a_text_may_come_with_a_place(env):
    env.reset("enter-text", 1)
    x, y = env.page.all(id="tt")[0].point
    env.act(Action("input_text", text="a\ue006 b\N{GRINNING FACE}", x=x, y=y))
    assert env.page.all(id="tt")[0].value == "a b", "private and astral characters can't be typed"
    env.act(Action("press", keys=("ctrl", "a")))
    env.act(Action("press", keys=("Delete",)))
    assert env.page.all(id="tt")[0].value == ""


@pytest.mark.parametrize(
    ("action", "key"),
    [
        (Action("press", keys=("ctrl", "a")), "C-a"),
        (Action("press", keys=("shift", "Tab")), "S-<Tab>"),
        (Action("press", button="enter"), "<Enter>"),
        (Action("press", keys=("ArrowLeft",)), "<ArrowLeft>"),
        (Action("press", keys=("A",)), "A"),
        (Action("press", button="back"), None),
        (Action("press", keys=("f13",)), None),
        (Action("press", keys=("x", "a")), None),
    ],
)
def test_keys_are_spelt_as_the_package_spells_them(action, key):
    assert spelt(action) == key


def test_no_action_raises(env):
    for kind in ACTION_TYPES:
        env.reset("book-flight-nodelay", 3)
        action = Action(
            kind,
            x=0.97,
            y=1.0,
            x2=0.1,
            y2=0.1,
            direction="left",
            text="\u0430\n",
            app_name="Nowhere",
            button="home",
            status="complete",
        )
        env.act(action)
        assert not env.success


def test_an_episode_ends_with_the_agent_the_page_or_the_steps(env, monkeypatch):
    env.reset("click-button", 1)
    last = env.act(Action("finished", status="complete"))
    assert env.done and not env.success, "saying so is not doing so"
    assert env.act(Action("click", x=0.5, y=0.5)) is last and env.steps == 1
    monkeypatch.setattr(env, "max_steps", 2)
    env.reset("click-button", 1)
    env.act(Action("wait"))
    assert not env.done
    env.act(Action("wait"))
    assert env.done and not env.success


def test_there_is_no_time_limit_and_no_network(env):
    env.reset("click-button", 1)
    run = env.browser._driver.execute_script
    assert run("return core.EPISODE_MAX_TIME;") > 86_400_000, "more than a day, in milliseconds"
    env.reset("click-button", 2)
    assert run("return core.EPISODE_MAX_TIME;") > 86_400_000, "after a reload too"
    script = """const [url, done] = arguments;
        fetch(url, {mode: "no-cors"}).then(() => done("reached"), () => done("refused"));"""
    for url in ("https://example.com/", "https://93.184.215.14/"):
        assert env.browser._driver.execute_async_script(script, url) == "refused"


def test_tasks_that_measure_nothing_are_refused(env):
    for task, reason in LEFT_OUT.items():
        with pytest.raises(InputError, match=reason):
            env.reset(task, 0)
    assert not set(LEFT_OUT) & set(EXPERTS) and set(SUITE) <= set(EXPERTS) and len(SUITE) == 20


def test_a_task_without_an_expert_says_so(env):
    env.reset("tic-tac-toe", 1)
    with pytest.raises(InputError, match="has no expert"):
        expert_action(env)
    with pytest.raises(InputError, match="no-such-task"):
        env.reset("no-such-task", 1)


def test_without_a_browser_it_says_what_to_install(a_browser, no_programs):
    with pytest.raises(InputError, match=r"no chromium was found.*chromium-driver"):
        MiniWobEnv()


def test_a_program_that_is_no_driver_is_told(a_browser, tmp_path):
    fake = tmp_path / "chromedriver"
    fake.write_text("#!/bin/sh\nexit 1\n")
    fake.chmod(0o755)
    with pytest.raises(InputError, match="Chromium doesn't start"):
        MiniWobEnv(chromedriver=str(fake))


LONELY = """
import sys, tempfile
tempfile.tempdir = sys.argv[1]
from builders.miniwob import MiniWobEnv
env = MiniWobEnv()
env.reset("click-test", 1)
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A temporary folder for a browser of one's own; pytest's are too deep for its sockets."""
    with tempfile.TemporaryDirectory(prefix="sm-", dir="/tmp") as folder:
        yield Path(folder)


def alive(folder: Path) -> list[int]:
    """Processes that name a folder on their command line."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if str(folder).encode() in command and int(entry.name) != os.getpid():
            found.append(int(entry.name))
    return found


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks at /proc")
@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGKILL])
def test_a_killed_program_leaves_no_browser_behind(a_browser, short_path, sign):
    with subprocess.Popen(
        [sys.executable, "-c", LONELY, short_path],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stdout.readline() == "ready\n"
        assert len(alive(short_path)) > 2, "the lease, the driver and Chromium"
        program.send_signal(sign)
        program.wait()
    give_up = time.monotonic() + 30
    while (alive(short_path) or any(short_path.iterdir())) and time.monotonic() < give_up:
        time.sleep(0.05)
    assert not alive(short_path)
    assert not list(short_path.iterdir()), "its files are gone too"


def test_closing_ends_the_browser_and_removes_its_files(a_browser, short_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(short_path))
    with pytest.raises(ZeroDivisionError), MiniWobEnv(screenshots=False) as env:
        seen = env.reset("click-test", 1)
        assert seen.screenshot is None and (seen.width, seen.height) == (320, 420)
        assert shutil.which("chromedriver") and list(short_path.iterdir())
        1 / 0
    assert not list(short_path.iterdir())
    env.close()
