"""`solar-rl inspect`: what lies there, what is wrong with it, and a dataset.yaml that builds."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
import pytest

from solar_rl.builder import Builder, Sign
from solar_rl.cli import main
from solar_rl.inspection import Guess, guess, guesses
from solar_rl.inspection.formats import builders


class Run(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def solar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Run]:
    """Run the command line in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def _solar(*arguments: object) -> Run:
        out, err, code = io.StringIO(), io.StringIO(), 0
        with redirect_stdout(out), redirect_stderr(err):
            try:
                main([str(argument) for argument in arguments])
            except SystemExit as stop:
                code = int(stop.code or 0)
        return Run(code, out.getvalue(), err.getvalue())

    return _solar


def episode(name: str, action: dict[str, Any] | None = None, **keys: Any) -> dict[str, Any]:
    step = {
        "action": action or {"action_type": "click", "x": 0.5, "y": 0.5},
        "target_box": [0.4, 0.4, 0.6, 0.6],
    }
    row = {"episode_id": name, "goal": f"do {name}", "platform": "android", "coordinates": "unit"}
    return row | {"screen_width": 1080, "screen_height": 2400, "steps": [step, step]} | keys


def write(path: Path, *rows: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


ANSWER = {"episode_id": "e", "step_index": 0, "candidate_index": 0, "completion": "wait"}
KNOWN = {
    "jsonl": episode("e"),
    "android_control_jsonl": {
        "episode_id": 1,
        "goal": "g",
        "actions": [{"action_type": "wait"}],
        "step_instructions": ["wait"],
        "candidate_bboxes": [[]],
    },
    "ui_s1": {"goal": "g", "steps": [{"action_content": {"action": "wait"}, "screenshot": "1_0.png"}]},
    "candidates": ANSWER,
}


# --- the format --------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", KNOWN)
def test_a_file_and_its_folder_are_recognised_and_by_no_other_builder(format: str, tmp_path: Path) -> None:
    file = write(tmp_path / "my data" / "a.jsonl", KNOWN[format])
    assert [each.format for each in guesses(file)] == [format]
    if format != "candidates":
        assert [each.format for each in guesses(file.parent)] == [format]


def test_gzip_bom_and_crlf_hide_nothing(tmp_path: Path) -> None:
    text = json.dumps(KNOWN["jsonl"]).encode()
    (tmp_path / "a.jsonl").write_bytes(b"\xef\xbb\xbf" + text + b"\r\n")
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(text))
    assert guess(tmp_path / "a.jsonl")[0].format == "jsonl"
    assert guess(tmp_path / "b.jsonl.gz")[0].format == "jsonl"


def test_candidates_as_parquet_are_recognised(tmp_path: Path) -> None:
    pl.DataFrame([ANSWER]).write_parquet(tmp_path / "c.parquet")
    assert guess(tmp_path / "c.parquet")[0].format == "candidates"


STRANGE = {
    "text": b"hello\n",
    "a list": b"[1, 2]",
    "numbers": b"1\n2\n",
    "nulls": bytes(4096),
    "an endless line": b"x" * 9_000_000,
    "utf-16": '{"a": 1}'.encode("utf-16"),
    "half a gzip": gzip.compress(b"abc" * 999)[:20],
    "gzip magic": b"\x1f\x8b",
    "parquet magic": b"PAR1PAR1",
    "another object": b'{"a": 1}',
    "steps of another kind": b'{"goal": "g", "steps": [[1], 2]}\n',
    "steps that are a number": b'{"goal": "g", "steps": 3, "actions": 4}\n',
}


@pytest.mark.parametrize("kind", STRANGE)
@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.parquet", "a", "a.jsonl.gz"])
def test_no_builder_takes_what_is_not_its_own_and_none_raises(kind: str, name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(STRANGE[kind])
    for path in (tmp_path / name, tmp_path):
        for builder_name, builder in builders():
            assert builder.recognises(path) is None, builder_name


def test_every_shipped_builder_that_reads_files_recognises_its_own() -> None:
    """A builder without ``recognises`` would never be guessed."""
    silent = [name for name, each in builders() if each.recognises.__func__ is Builder.recognises.__func__]
    assert not silent


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: path / "nowhere", "no such file or folder"),
        (lambda path: write(path / "a.jsonl"), "the file is empty"),
        (lambda path: path, "the folder is empty"),
        (lambda path: write(path / "a.zip", "PK"), "unpack it"),
        (lambda path: write(path / "a.txt", "hello"), "known: "),
        (lambda path: write(path / "a.json", {"a": 1}), "keys a"),
        (lambda path: write(path / "in" / "deep" / "a.jsonl", KNOWN["ui_s1"]).parents[1], "deep (ui_s1)"),
    ],
)
def test_what_is_unknown_is_one_helpful_line(
    make: Callable[[Path], Path], words: str, tmp_path: Path, solar: Callable[..., Run]
) -> None:
    run = solar("inspect", make(tmp_path))
    assert (run.code, run.out) == (2, "")
    assert words in run.err
    assert run.err.count("\n") == 1


def test_a_pipe_is_not_waited_for(tmp_path: Path, solar: Callable[..., Run]) -> None:
    os.mkfifo(tmp_path / "pipe")
    run = solar("inspect", "pipe")
    assert (run.code, run.err) == (2, "solar-rl: pipe: is neither a file nor a folder\n")


PIPES = (
    "a.json",
    "a.jsonl",
    "a.parquet",
    "manifest.json",
    "a/a.json",
    "annotations/a.json",
    "train/b/b.json",
)
PIPES += ("android_control-00000-of-00001", "instruction_anno/a.json", "general/general-0001-of-00002")


def test_pipes_in_a_folder_are_not_waited_for(tmp_path: Path) -> None:
    for name in PIPES:
        (tmp_path / "data" / name).parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(tmp_path / "data" / name)
    command = [sys.executable, "-m", "solar_rl.cli", "inspect", "data"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert "no format is recognised" in done.stderr


def test_an_archive_is_to_be_unpacked_even_where_lines_can_be_read_in_it(
    tmp_path: Path, solar: Callable[..., Run]
) -> None:
    write(tmp_path / "lines.jsonl", *(episode(f"e{n}") for n in range(3)))
    with tarfile.open(tmp_path / "lines.tar", "w") as archive:
        archive.add(tmp_path / "lines.jsonl", "lines.jsonl")
    run = solar("inspect", "lines.tar")
    assert run.code == 2
    assert "lines.tar: is an archive (unpack it" in run.err


def test_a_file_beside_a_source_is_told_with_what_it_looks_like(
    tmp_path: Path, solar: Callable[..., Run]
) -> None:
    lines = write(tmp_path / "lines.jsonl", episode("e")).read_text()
    (tmp_path / "wide.jsonl").write_text(lines, encoding="utf-16")
    (tmp_path / "table.csv").write_text("a,b\n")
    assert "(it is UTF-16, save it as UTF-8), but lies in" in solar("inspect", "wide.jsonl").err
    assert "(it begins with b'a,b\\n'), but lies in" in solar("inspect", "table.csv").err


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("several", [True, False])
def test_json_that_is_not_a_line_an_episode_is_told_how_to_become_so(
    indent: int | None, several: bool, tmp_path: Path, solar: Callable[..., Run]
) -> None:
    value = [episode("e"), episode("f")] if several else episode("e")
    (tmp_path / "whole.json").write_text(json.dumps(value, indent=indent))
    run = solar("inspect", "whole.json")
    good = indent is None and not several
    assert run.code == 0
    assert ("one episode a line: jq" in run.out) is not good


def test_a_tie_is_told(tmp_path: Path, solar: Callable[..., Run], monkeypatch: pytest.MonkeyPatch) -> None:
    class Twin(Builder):
        @classmethod
        def recognises(cls, path: Path) -> Sign:
            return Sign(0.9, "looks alike")

    known = builders()
    monkeypatch.setattr("solar_rl.inspection.formats.builders", lambda: [*known, ("twin", Twin)])
    write(tmp_path / "a.jsonl", episode("e"))
    assert guesses(tmp_path / "a.jsonl")[1] == Guess("twin", 0.9, "looks alike")
    run = solar("inspect", "a.jsonl")
    assert "look with --builder twin" in run.out
    assert "isn't certain: jsonl or twin" in run.err


# --- what is in it -----------------------------------------------------------------------------------


def test_counts_problems_and_the_yaml(tmp_path: Path, solar: Callable[..., Run]) -> None:
    rows = [episode("a", split="test"), episode("b", app="Clock"), "{", episode("a"), "{"]
    write(tmp_path / "my data.jsonl", *rows)
    run = solar("inspect", "my data.jsonl", "--json")
    assert run.code == 0, run.err
    found = json.loads(run.out)
    assert (found["format"], found["episodes"], found["rejects"], found["whole"]) == ("jsonl", 2, 3, True)
    assert (found["steps"], found["episode_length"]) == (4, {"min": 2, "median": 2, "max": 2})
    assert found["actions"] == {"click": 4}
    assert found["screens"] == [{"width": 1080, "height": 2400, "screen_size": "stated", "steps": 4}]
    assert found["splits"] == {"test": 1, "train": 1}
    assert (found["point"], found["target_box"], found["screenshot"]) == (4, 4, 0)
    problems = {each["reason"]: each for each in found["problems"]}
    assert problems["bad_json"]["count"] == 2
    assert problems["bad_json"]["record"] == "line 3"
    assert problems["duplicate_id"]["record"] == "episode a"
    text = solar("inspect", "my data.jsonl").out
    assert "2, 3 rejected" in text
    assert "bad_json 2; the first: my data.jsonl, line 3" in text


def test_a_limit_is_told(tmp_path: Path, solar: Callable[..., Run]) -> None:
    write(tmp_path / "a.jsonl", *(episode(str(n)) for n in range(9)))
    assert "the first 4" in solar("inspect", "a.jsonl", "--limit", 4).out
    assert "the first" not in solar("inspect", "a.jsonl", "--limit", 9).out
    assert solar("inspect", "a.jsonl", "--limit", 0).code == 2


def test_the_written_yaml_builds(tmp_path: Path, solar: Callable[..., Run]) -> None:
    write(tmp_path / "my data" / "a.jsonl", episode("a"), episode("b"))
    run = solar("inspect", "my data", "--write", "new/start.yaml")
    assert run.code == 0, run.err
    assert solar("build", "new/start.yaml", "--out", "built").code == 0
    assert (tmp_path / "built" / "manifest.json").exists()
    again = solar("inspect", "my data", "--write", "new/start.yaml")
    assert (again.code, "isn't overwritten" in again.err) == (2, True)


def test_the_yaml_takes_a_format_that_can_write_the_actions(
    tmp_path: Path, solar: Callable[..., Run]
) -> None:
    drag = {"action_type": "drag", "x": 0.1, "y": 0.1, "x2": 0.9, "y2": 0.9}
    write(
        tmp_path / "a.jsonl",
        episode("a", steps=[{"action": drag}, {"action": {"action_type": "hover", "x": 0, "y": 0}}]),
    )
    found = json.loads(solar("inspect", "a.jsonl", "--json").out)
    (tmp_path / "a.yaml").write_text(found["dataset_yaml"])
    run = solar("build", "a.yaml", "--out", "built")
    assert run.code == 0, run.err
    assert "rejected" not in run.out


@pytest.mark.parametrize(
    ("platform", "format"), [("android", "qwen25vl_mobile_use"), ("desktop", "json"), ("web", "json")]
)
def test_only_a_phone_is_told_of_in_a_phones_words(
    platform: str, format: str, tmp_path: Path, solar: Callable[..., Run]
) -> None:
    write(tmp_path / "a.jsonl", episode("a") | {"platform": platform})
    assert f"format: {format}" in solar("inspect", "a.jsonl").out


def test_options_reach_the_builder_and_the_yaml(tmp_path: Path, solar: Callable[..., Run]) -> None:
    (tmp_path / "shots").mkdir()
    write(tmp_path / "a.jsonl", episode("a"))
    run = solar("inspect", "a.jsonl", "--source.options.images", "shots")
    assert "images: shots" in run.out
    wrong = solar("inspect", "a.jsonl", "--source.options.imags", "shots")
    assert (wrong.code, "did you mean 'images'?" in wrong.err) == (2, True)
    other = solar("inspect", "a.jsonl", "--sampler.n", "4")
    assert (other.code, "can't set 'sampler.n'" in other.err) == (2, True)


def test_a_builder_of_ones_own_may_lie_in_the_current_folder(
    tmp_path: Path, solar: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", sys.path.copy())
    code = "from builders.jsonl import Jsonl\n\n\nclass Mine(Jsonl):\n    name = 'mine'\n"
    (tmp_path / "a_builder_of_mine.py").write_text(code)
    lines = write(tmp_path / "lines.jsonl", episode("e"))
    run = solar("inspect", lines, "--builder", "a_builder_of_mine:Mine")
    assert (run.code, run.err) == (0, "")
    assert "builder: a_builder_of_mine:Mine" in run.out
    assert "1, 0 rejected" in run.out


def test_a_wrong_builder_is_told_by_its_rejects(tmp_path: Path, solar: Callable[..., Run]) -> None:
    write(tmp_path / "a.jsonl", episode("a"))
    run = solar("inspect", "a.jsonl", "--builder", "ui_s1")
    assert "problem" in run.out
    assert solar("inspect", "a.jsonl", "--builder", "nobody").code == 2


def test_what_is_no_source_says_what_to_do_with_it(tmp_path: Path, solar: Callable[..., Run]) -> None:
    write(tmp_path / "c.jsonl", ANSWER)
    assert "import-candidates c.jsonl" in solar("inspect", "c.jsonl").out
    write(tmp_path / "a.jsonl", episode("a"))
    assert solar("build", "jsonl", "--source.path", "a.jsonl", "--out", "built").code == 0
    run = solar("inspect", "built")
    assert "solar-rl stats built" in run.out
    assert json.loads(solar("inspect", "built", "--json").out)["format"] == "dataset"


def test_export_writes_a_built_dataset(tmp_path: Path, solar: Callable[..., Run]) -> None:
    write(tmp_path / "a.jsonl", episode("a"), episode("b"))
    solar("build", "jsonl", "--source.path", "a.jsonl", "--out", "built")
    assert json.loads(solar("export", "built", "--out", "lines", "--json").out) == {
        "folder": "lines",
        "episodes": 2,
    }
    assert json.loads(solar("inspect", "lines", "--json").out)["episodes"] == 2
    assert solar("export", "built", "--out", "lines").code == 2


# --- real files --------------------------------------------------------------------------------------


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("folder", "format"),
    [
        ("androidcontrol_tfrecord", "android_control"),
        ("androidcontrol_tfrecord/android_control-00000-of-00001", "android_control"),
        ("androidcontrol_test_actions", "android_control_jsonl"),
        ("ui_s1", "ui_s1"),
    ],
)
def test_real_sources_are_recognised(folder: str, format: str, shared: Path) -> None:
    assert [each.format for each in guesses(shared / folder)] == [format]


@pytest.mark.real_data
@pytest.mark.parametrize(
    "folder", ["gui_odyssey guiodyssey_synthetic", "opencua opencua", "screenagent screenagent"]
)
def test_real_folders_of_many_files_are_recognised(folder: str, shared: Path) -> None:
    name, path = folder.split()
    assert [each.format for each in guesses(shared / path)] == [name]


@pytest.mark.real_data
def test_a_piece_of_a_source_is_told_where_it_belongs(shared: Path, solar: Callable[..., Run]) -> None:
    run = solar("inspect", shared / "guiodyssey_synthetic" / "annotations")
    assert (run.code, "which is gui_odyssey" in run.err) == (2, True)
    run = solar("inspect", shared / "androidcontrol_tfrecord" / "splits.json")
    assert (run.code, "which is android_control" in run.err) == (2, True)
