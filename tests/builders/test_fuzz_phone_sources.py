"""Whatever a file of GUI-Odyssey, AITZ, AMEX or AITW holds, each episode is built or rejected, and none is lost."""

from __future__ import annotations

import copy
import json
import random
import shutil
from pathlib import Path

import aitw_writer
import aitz_writer
import amex_writer
import gui_odyssey_writer
import pytest
from android_control_writer import png
from test_fuzz_sources import assert_sound, mutated, spoilt

from solar_rl.builder import load_builder
from solar_rl.config import SourceConfig
from solar_rl.episodes import checked
from solar_rl.schema import Episode, Reject

ODYSSEY = gui_odyssey_writer.annotation(
    gui_odyssey_writer.CLICK,
    {"action": "CLICK", "info": "KEY_BACK"},
    {"action": "SCROLL", "info": [[500, 750], [500, 250]]},
    {"action": "TEXT", "info": "cats"},
    {"action": "INCOMPLETE", "ps": "no such app"},
)
AITZ = aitz_writer.steps(
    aitz_writer.TAP, {"result_action_type": 3, "result_action_text": "cats"}, {"result_action_type": 1}
)
AMEX = amex_writer.instruction(
    amex_writer.TAP,
    {"action": "SWIPE", "touch_coord": [54, 180], "lift_coord": [54, 60]},
    {"action": "TYPE", "type_text": "cats"},
    amex_writer.DONE,
)
SOURCES = {"gui_odyssey": ODYSSEY, "aitz": AITZ, "amex": AMEX}


def lay_out(root: Path, builder: str, files: list[bytes]) -> Path:
    """Write a source's folders around the bytes of its episode files, with no screenshot but one."""
    if builder == "aitz":
        for number, data in enumerate(files):
            folder = root / "general" / f"E-{number}"
            folder.mkdir(parents=True)
            (folder / f"E-{number}.json").write_bytes(data)
            (folder / "GENERAL-5_0.png").write_bytes(png())
        return root
    if builder == "gui_odyssey":
        gui_odyssey_writer.write(root, [ODYSSEY])
    else:
        amex_writer.write(root, AMEX)
    folder = root / ("annotations" if builder == "gui_odyssey" else "instruction_anno")
    for old in folder.iterdir():
        old.unlink()
    for number, data in enumerate(files):
        (folder / f"{number:04}.json").write_bytes(data)
    return root


@pytest.mark.parametrize("builder", SOURCES)
def test_files_with_odd_values_anywhere(tmp_path, read, builder):
    dice = random.Random(2)
    files = [json.dumps(spoilt(copy.deepcopy(SOURCES[builder]), dice)).encode() for _ in range(600)]
    items = read(builder, lay_out(tmp_path, builder, files))
    assert_sound(items, len(files))
    assert any(isinstance(item, Episode) for item in items) and any(
        isinstance(item, Reject) for item in items
    )


@pytest.mark.parametrize("builder", SOURCES)
def test_files_of_any_bytes(tmp_path, read, builder):
    dice = random.Random(3)
    good = json.dumps(SOURCES[builder]).encode()
    files = [mutated(good, dice) for _ in range(300)]
    assert_sound(read(builder, lay_out(tmp_path, builder, files)), len(files))


def test_elements_of_amex_with_odd_values(tmp_path, read):
    dice = random.Random(4)
    for number in range(100):
        elements = spoilt(copy.deepcopy(amex_writer.ELEMENTS), dice)
        root = amex_writer.write(tmp_path / str(number), AMEX, elements=json.dumps(elements).encode())
        assert_sound(read("amex", root), 1)


def test_records_of_aitw_of_any_bytes_lose_no_episode(tmp_path, read):
    """Each of 150 episodes is one step; what a damaged record no longer says is a reject of the record."""
    dice = random.Random(5)
    good = aitw_writer.step(**aitw_writer.TAP)
    records = [mutated(good, dice) for _ in range(150)]
    records += [b"".join((good[:-400], mutated(good[-400:], dice))) for _ in range(150)]
    items = read("aitw", aitw_writer.write(tmp_path, records))
    for item in checked(items, file="f", seen=set()):
        assert isinstance(item, Episode) or (item.reason and item.message and item.record)
    told = sum(item.ref_len if isinstance(item, Episode) else 1 for item in items)
    assert told <= len(records) and any(isinstance(item, Reject) for item in items)


def test_random_damage_to_an_aitw_file_never_loses_an_episode_in_silence(tmp_path, read):
    """Cut or flip the compressed file anywhere: whoever is missing afterwards, something was said."""
    names = [f"{number}" for number in range(12)]
    records = [r for n in names for r in aitw_writer.episode(n, aitw_writer.TAP, aitw_writer.DONE)]
    whole = next(aitw_writer.write(tmp_path, records).glob("*/*")).read_bytes()
    dice = random.Random(6)
    for _ in range(60):
        data = bytearray(whole)
        if dice.random() < 0.5:
            del data[dice.randrange(1, len(data)) :]
        else:
            data[dice.randrange(12, len(data))] ^= 1 << dice.randrange(8)
        (tmp_path / "damaged").write_bytes(data)
        items = read("aitw", tmp_path / "damaged")
        built = {item.episode_id for item in items if isinstance(item, Episode)}
        assert built == set(names) or any(isinstance(item, Reject) for item in items)
        assert all(item.ref_len == 2 for item in items if isinstance(item, Episode))


RECOGNISED = {
    "gui_odyssey": lambda root: gui_odyssey_writer.write(root, [ODYSSEY]),
    "aitz": lambda root: aitz_writer.write(root, AITZ),
    "amex": lambda root: amex_writer.write(root, AMEX),
    "aitw": lambda root: aitw_writer.write(root, [aitw_writer.step()]),
}


@pytest.mark.parametrize("builder", RECOGNISED)
def test_a_format_is_recognised_as_itself_alone(tmp_path, builder):
    root = RECOGNISED[builder](tmp_path / "root")
    for other in RECOGNISED:
        cls = type(load_builder(SourceConfig(builder=other, path=str(RECOGNISED[other](tmp_path / other)))))
        sign = cls.recognises(root)
        assert (sign is not None) == (other == builder)
        if sign:
            assert sign.certainty >= 0.9 and sign.why
            load_builder(SourceConfig(builder=builder, path=str(root), options=sign.options))


def test_recognising_says_which_options_a_part_of_a_release_needs(tmp_path):
    root = gui_odyssey_writer.write(tmp_path / "o", [ODYSSEY])
    cls = type(load_builder(SourceConfig(builder="gui_odyssey", path=str(root))))
    assert cls.recognises(root).options == {}
    (root / "splits" / "random_split.json").unlink()
    shutil.rmtree(root / "screenshots")
    assert cls.recognises(root).options == {"screenshots": None, "split_family": "task"}
    shutil.rmtree(root / "splits")
    options = cls.recognises(root).options
    assert options == {"screenshots": None, "split_family": "none"}
    load_builder(SourceConfig(builder="gui_odyssey", path=str(root), options=options))


@pytest.mark.parametrize("builder", RECOGNISED)
def test_recognising_raises_nothing(tmp_path, builder):
    good = RECOGNISED[builder](tmp_path.parent / f"{tmp_path.name}-good")
    cls = type(load_builder(SourceConfig(builder=builder, path=str(good))))
    (tmp_path / "annotations").mkdir()
    (tmp_path / "annotations" / "a.json").write_bytes(b"{")
    (tmp_path / "instruction_anno").mkdir()
    (tmp_path / "instruction_anno" / "a.json").write_text('{"steps": [7]}')
    (tmp_path / "x-of-y").write_bytes(b"\x1f\x8b")
    (tmp_path / "e").mkdir()
    (tmp_path / "e" / "e.json").write_text("[7]")
    for path in (
        tmp_path,
        tmp_path / "x-of-y",
        tmp_path / "e",
        tmp_path / "not there",
        tmp_path / "e" / "e.json",
    ):
        assert cls.recognises(path) is None
