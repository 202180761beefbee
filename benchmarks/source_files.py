"""Generate files of every source that a builder reads, of any size, for bench_sources.py.

Screens are noisy PNGs of 1080x2400 pixels and about 1 MB, as recorded ones are. The files' shapes are those of the tests'
writers.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import numpy as np
from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "builders"), str(ROOT / "benchmarks")]

import aitw_writer  # noqa: E402
import aitz_writer  # noqa: E402
import amex_writer  # noqa: E402
import desktop_writer  # noqa: E402
import gui_odyssey_writer  # noqa: E402
import parquet_writer  # noqa: E402
from bench_android_control import HEIGHT, WIDTH, crowded_tree, noisy_pixels, noisy_png  # noqa: E402
from bench_android_control import write as write_android_control  # noqa: E402

STEPS = 6
"""Steps of an episode."""
SHARDS = 8
"""Files that a source of shards is cut into."""
_SCREENS: list[bytes] = []


def screens() -> list[bytes]:
    """Return eight noisy screens, made once."""
    if not _SCREENS:
        random = np.random.default_rng(0)
        _SCREENS.extend(noisy_png(random) for _ in range(8))
    return _SCREENS


def _patched() -> None:
    """Let the tests' writers write large screens."""
    numbers = count()
    for module in (aitz_writer, amex_writer, desktop_writer, gui_odyssey_writer, parquet_writer):
        module.png = lambda *_: screens()[next(numbers) % 8]  # type: ignore[attr-defined]
    for module in (aitw_writer, aitz_writer, amex_writer, gui_odyssey_writer):
        module.WIDTH, module.HEIGHT = WIDTH, HEIGHT


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _until(folder: Path, megabytes: float, write_one: Callable[[int], None]) -> None:
    """Write pieces until the folder is large enough; the first tells how many."""
    write_one(0)
    for number in range(1, max(1, round(megabytes * 1e6 / _size(folder)))):
        write_one(number)


def android_control(folder: Path, megabytes: float) -> None:
    """Write shards of GZIP TFRecords."""
    for shard in range(SHARDS):
        name = f"android_control-{shard:05d}-of-{SHARDS:05d}"
        write_android_control(
            folder / name, max(1, round(megabytes / SHARDS)), seed=shard, first=shard * 100_000
        )


def _click(number: int, step: int) -> dict[str, object]:
    return {
        "action_type": "click",
        "x": (37 * number + 91 * step) % WIDTH,
        "y": (53 * number + 17 * step) % HEIGHT,
    }


def _box(number: int, step: int) -> list[int]:
    x, y = (37 * number + 91 * step) % WIDTH, (53 * number + 17 * step) % HEIGHT
    return [x - 40, y - 40, x + 40, y + 40]


def _lines(rows: Iterator[dict[str, object]], file: Path, megabytes: float) -> None:
    with file.open("w") as lines:
        while lines.tell() < megabytes * 1e6:
            lines.write(json.dumps(next(rows)) + "\n")


def android_control_jsonl(folder: Path, megabytes: float) -> None:
    """Write actions without screens."""
    rows = (
        {
            "episode_id": n,
            "goal": f"Open the shop and buy the shoes number {n}",
            "split": "test",
            "actions": [_click(n, s) for s in range(STEPS)],
            "step_instructions": [f"tap on the picture of shoe {s}" for s in range(STEPS)],
            "candidate_bboxes": [[_box(n, s), [0, 0, WIDTH, HEIGHT]] for s in range(STEPS)],
        }
        for n in count()
    )
    _lines(rows, folder / "lines.jsonl", megabytes)


def ui_s1(folder: Path, megabytes: float) -> None:
    """Write lines for evaluation, without screens."""

    def step(n: int, s: int) -> dict[str, object]:
        click = {"action": "click", "coordinate": [_click(n, s)["x"], _click(n, s)["y"]]}
        checks = {**click, "candidate_bbox": [_box(n, s), [0, 0, WIDTH, HEIGHT]]}
        name = f"/datasets/AndroidControl/images/{n}_{s}.png"
        return {
            "action_content": click,
            "screenshot": name,
            "step_instruction": f"tap {s}",
            "check_options": checks,
        }

    rows = (
        {
            "goal": f"Buy the shoes {n}",
            "is_successful": True,
            "episode_id": n,
            "steps": [step(n, s) for s in range(STEPS)],
        }
        for n in count()
    )
    _lines(rows, folder / "lines.jsonl", megabytes)


def jsonl(folder: Path, megabytes: float) -> None:
    """Write the interchange format with its screens."""
    file = folder / "lines.jsonl"

    def write_one(n: int) -> None:
        steps = []
        for s in range(STEPS):
            (folder / f"{n}_{s}.png").write_bytes(screens()[(n + s) % 8])
            steps.append({"image": f"{n}_{s}.png", "action": _click(n, s), "instruction": f"tap {s}"})
        row = {
            "episode_id": f"e{n}",
            "goal": f"Buy {n}",
            "platform": "android",
            "coordinates": "pixels",
            "steps": steps,
        }
        with file.open("a") as lines:
            lines.write(json.dumps(row) + "\n")

    _until(folder, megabytes, write_one)


def gui_odyssey(folder: Path, megabytes: float) -> None:
    """Write annotations, a screen a step, and the splits."""
    _patched()
    episode = [gui_odyssey_writer.CLICK] * (STEPS - 1) + [gui_odyssey_writer.DONE]
    episodes = max(1, round(megabytes / STEPS / (len(screens()[0]) / 1e6)))
    rows = [gui_odyssey_writer.annotation(*episode, episode=f"{n:06d}") for n in range(episodes)]
    gui_odyssey_writer.write(folder, rows)


def aitz(folder: Path, megabytes: float) -> None:
    """Write a folder an episode."""
    _patched()
    actions = [aitz_writer.TAP] * (STEPS - 1) + [aitz_writer.DONE]

    def write_one(n: int) -> None:
        rows = aitz_writer.steps(*actions, episode=f"GENERAL-{n}")
        aitz_writer.write(folder, rows, episode=f"GENERAL-{n}")

    _until(folder, megabytes, write_one)


def opencua(folder: Path, megabytes: float) -> None:
    """Write trajectories of AgentNet and their screens."""
    _patched()
    codes = ["pyautogui.click(x=0.31, y=0.42)"] * (STEPS - 1) + ["computer.terminate(status='success')"]
    rows = []
    episodes = max(1, round(megabytes / STEPS / (len(screens()[0]) / 1e6)))
    for n in range(episodes):
        row = desktop_writer.agentnet(*codes, task_id=f"t{n}")
        for s, step in enumerate(row["traj"]):
            step["image"] = f"{n}_{s}.png"
        rows.append(row)
    desktop_writer.write_opencua(folder, *rows, screens=0)
    for n in range(episodes):
        for s in range(STEPS):
            (folder / "images" / f"{n}_{s}.png").write_bytes(screens()[(n + s) % 8])


def mind2web(folder: Path, megabytes: float) -> None:
    """Write parquet files of tasks, eight steps a row group."""
    _patched()
    rows = [
        parquet_writer.mind2web_row(f"task{n}", s)
        for n in range(max(1, round(megabytes / STEPS / (len(screens()[0]) / 1e6))))
        for s in range(STEPS)
    ]
    size = -(-len(rows) // 4)
    for part in range(4):
        some = rows[part * size : (part + 1) * size]
        if some:
            parquet_writer.write_parquet(folder / f"train-{part:05d}-of-00004.parquet", *some, group=8)


def gui_r1(folder: Path, megabytes: float) -> None:
    """Write a parquet file of single steps."""
    _patched()
    rows = [parquet_writer.gui_r1_row() for _ in range(max(1, round(megabytes / (len(screens()[0]) / 1e6))))]
    parquet_writer.write_parquet(folder / "train.parquet", *rows, group=8)


def jsonl_text(folder: Path, megabytes: float) -> None:
    """Write the interchange format without screens: points, boxes and texts."""

    def step(n: int, s: int) -> dict[str, object]:
        boxes = {"target_box": _box(n, s), "candidate_boxes": [_box(n, s), [0, 0, WIDTH, HEIGHT]]}
        return {"action": _click(n, s), "instruction": f"tap on the picture of shoe {s}", **boxes}

    rows = (
        {
            "episode_id": f"e{n}",
            "goal": f"Open the shop and buy the shoes number {n}",
            "platform": "android",
            "coordinates": "pixels",
            "screen_width": WIDTH,
            "screen_height": HEIGHT,
            "steps": [step(n, s) for s in range(STEPS)],
        }
        for n in count()
    )
    _lines(rows, folder / "lines.jsonl", megabytes)


def aitw(folder: Path, megabytes: float) -> None:
    """Write shards of GZIP TFRecords, raw pixels and 40 elements a step."""
    _patched()
    random = np.random.default_rng(0)
    pixels = [noisy_pixels(random)[:, :, :3].tobytes() for _ in range(8)]
    positions = random.uniform(0.01, 0.9, (40, 4)).round(4).ravel().tolist()
    elements = {
        "image/ui_annotations_positions": positions,
        "image/ui_annotations_text": [f"Product {n}" if n % 2 else "" for n in range(40)],
        "image/ui_annotations_ui_types": ["TEXT" if n % 2 else "ICON_CALL" for n in range(40)],
    }

    def write_one(n: int) -> None:
        actions = [aitw_writer.TAP] * (STEPS - 1) + [aitw_writer.DONE]
        actions = [{**a, "image/encoded": [pixels[(n + s) % 8]]} for s, a in enumerate(actions)]
        aitw_writer.write(
            folder, aitw_writer.episode(str(n), *actions, **elements), f"general-{n:05d}-of-99999"
        )

    _until(folder, megabytes, write_one)


def amex(folder: Path, megabytes: float) -> None:
    """Write instructions, and 20 elements a screen."""
    _patched()
    element = amex_writer.ELEMENTS["clickable_elements"][0]
    elements = {"clickable_elements": [element] * 20, "scrollable_elements": []}
    tap = {"action": "TAP", "touch_coord": [54, 60], "lift_coord": [54, 60]}
    actions = [tap] * (STEPS - 1) + [amex_writer.DONE]

    def write_one(n: int) -> None:
        row = amex_writer.instruction(*actions, episode=f"e{n}")
        for step in row["steps"]:
            step["device_dim"] = [WIDTH, HEIGHT]
        amex_writer.write(folder, row, elements=elements)

    _until(folder, megabytes, write_one)


def screenagent(folder: Path, megabytes: float) -> None:
    """Write sessions of turns with a JPEG of 1024x768 and about 50 kB, and the prompt beside the answer."""
    pixels = np.random.default_rng(0).integers(0, 256, (96, 128, 3), np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels).resize((1024, 768)).save(out, "JPEG", quality=75)
    desktop_writer.png = lambda *_: out.getvalue()  # type: ignore[attr-defined]
    click = desktop_writer.mouse("click", (300, 400))
    more = {"video_width": 1024, "video_height": 768, "LLM_prompt": "You work on a desktop. " * 200}

    def write_one(n: int) -> None:
        turns = [[desktop_writer.PLAN], *[[click]] * STEPS, [desktop_writer.GOOD]]
        desktop_writer.write_session(folder / f"session{n}", *turns, **more)

    _until(folder, megabytes, write_one)


def android_world(folder: Path, megabytes: float) -> None:
    """Write rollouts with a screen and a forest of 300 elements a step."""
    random = np.random.default_rng(0)
    trees = [crowded_tree(random) for _ in range(8)]

    def step(n: int, s: int) -> dict[str, object]:
        (folder / f"{n}_{s}.png").write_bytes(screens()[(n + s) % 8])
        (folder / f"{n}_{s}.pb").write_bytes(trees[(n + s) % 8])
        return {"action": _click(n, s), "screenshot": f"{n}_{s}.png", "forest": f"{n}_{s}.pb"}

    def write_one(n: int) -> None:
        row = {"episode_id": n, "goal": f"Buy {n}", "success": 1, "steps": [step(n, s) for s in range(STEPS)]}
        with (folder / "lines.jsonl").open("a") as lines:
            lines.write(json.dumps(row) + "\n")

    _until(folder, megabytes, write_one)


SOURCES: dict[str, Callable[[Path, float], None]] = {
    "android_control": android_control,
    "gui_odyssey": gui_odyssey,
    "aitz": aitz,
    "opencua": opencua,
    "jsonl": jsonl,
    "gui_r1": gui_r1,
    "mind2web": mind2web,
    "android_control_jsonl": android_control_jsonl,
    "ui_s1": ui_s1,
    "jsonl_text": jsonl_text,
    "aitw": aitw,
    "amex": amex,
    "screenagent": screenagent,
    "android_world": android_world,
}
"""Source to what writes its files."""
BUILDERS = {"jsonl_text": "jsonl"}
"""Builders of the sources that aren't named after theirs."""
