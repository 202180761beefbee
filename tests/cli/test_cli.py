from __future__ import annotations

import io
import json
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import polars as pl
import pytest

from solar_rl.cli import main

TOY = """
name: toy
source:
  builder: toy_source:ToyBuilder
  options: {episodes: 8}
"""
SOURCES = Path(__file__).parents[1] / "pipeline"


class Run(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


def solar(*arguments: object, cwd: Path | None = None) -> Run:
    """Run the command line in this process, as a shell in ``cwd`` would."""
    out, err, code = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True), io.StringIO(), 0
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.syspath_prepend(SOURCES)
        patch.setenv("COLUMNS", "120")
        if cwd is not None:
            patch.chdir(cwd)
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as stop:
            code = int(stop.code or 0)
    return Run(code, out.buffer.getvalue().decode(), err.getvalue())


def test_a_shell_gets_the_exit_code_and_a_clean_stdout(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "solar_rl.cli", "build", "nowhere.yaml"]
    run = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert run.returncode == 2
    assert run.stdout == ""
    assert run.stderr.count("\n") == 1


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cli")
    (folder / "toy.yaml").write_text(TOY)
    run = solar("build", "toy.yaml", "--out", "toy-1.0.0", cwd=folder)
    assert run.returncode == 0, run.stderr
    assert "8 episodes" in run.stdout
    return folder


def test_build_again_says_that_nothing_changed(home: Path) -> None:
    run = solar("build", "toy.yaml", "--out", "toy-1.0.0", cwd=home)
    assert run.returncode == 0
    assert "nothing changed" in run.stdout


def test_build_takes_dotted_overrides_and_prints_json(home: Path) -> None:
    run = solar("build", "toy.yaml", "--sampler.n=2", "--out", "two", "--limit", 3, "--json", cwd=home)
    result = json.loads(run.stdout)
    assert result["counts"]["episodes"] == 3
    assert result["counts"]["candidates"] == 2 * result["counts"]["steps"]


def test_dry_runs_write_nothing(home: Path) -> None:
    for verb in (
        ("build", "toy.yaml", "--out", "dry"),
        ("shape", "toy-1.0.0", "--out", "dry", "--shaping.alignment", "paper"),
        ("score", "toy-1.0.0", "--out", "dry", "--validity.preset", "lenient"),
        ("report", "toy-1.0.0"),
    ):
        before = sorted(home.rglob("*"))
        run = solar(*verb, "--dry-run", cwd=home)
        assert run.returncode == 0, run.stderr
        assert run.stdout
        assert sorted(home.rglob("*")) == before


def test_shape_makes_the_next_version_beside_the_old_one(home: Path) -> None:
    run = solar("shape", "toy-1.0.0", "--shaping.alignment", "paper", "--json", cwd=home)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["version"] == "1.0.1"
    assert (home / "toy-1.0.1" / "manifest.json").exists()
    assert solar("validate", "toy-1.0.1", cwd=home).returncode == 0


def test_stats_print_tables_and_json(home: Path) -> None:
    text = solar("stats", "toy-1.0.0", "first_failure", cwd=home)
    assert text.returncode == 0, text.stderr
    assert "first_failure" in text.stdout
    data = json.loads(solar("stats", "toy-1.0.0", "--json", cwd=home).stdout)
    assert {"first_failure", "validity", "rewards", "groups", "truncation"} <= data.keys()
    assert all(isinstance(rows, list) for tables in data.values() for rows in tables.values())


def test_a_terminal_never_obeys_what_a_query_returns(home: Path) -> None:
    words = "SELECT chr(27) || '[31mred' AS \"[bold]x\x1b]0;y\x07\", 'ä' || chr(8238) AS b"
    table = solar("query", "toy-1.0.0", words, cwd=home)
    assert table.returncode == 0, table.stderr
    assert r"\x1b[31mred" in table.stdout and r"[bold]x\x1b]0;y\x07" in table.stdout
    wrong = solar("query", "toy-1.0.0", 'SELECT "\x1b[31m" FROM rewards', cwd=home)
    assert wrong.returncode == 2
    assert not set("\x1b\x07\u202e") & set(table.stdout + wrong.stderr)


def test_query_speaks_table_json_csv_and_parquet(home: Path) -> None:
    sql = "SELECT split, count(*) AS n FROM episodes GROUP BY split ORDER BY split"
    rows = json.loads(solar("query", "toy-1.0.0", sql, "--format", "json", cwd=home).stdout)
    assert rows == [{"split": "test", "n": 2}, {"split": "train", "n": 4}, {"split": "validation", "n": 2}]
    assert solar("query", "toy-1.0.0", sql, "--format", "csv", cwd=home).stdout.splitlines()[1] == "test,2"
    assert "validation" in solar("query", "toy-1.0.0", sql, cwd=home).stdout
    solar("query", "toy-1.0.0", sql, "--format", "parquet", "--out", "n.parquet", cwd=home)
    assert pl.read_parquet(home / "n.parquet")["n"].to_list() == [2, 4, 2]
    nested = solar(
        "query", "toy-1.0.0", "SELECT candidate_boxes FROM steps LIMIT 1", "--format", "csv", cwd=home
    )
    assert nested.returncode == 0, nested.stderr


def test_validate_fails_with_exit_1_when_a_reward_was_edited(home: Path, tmp_path: Path) -> None:
    import shutil

    shutil.copytree(home / "toy-1.0.0", tmp_path / "edited")
    assert solar("validate", tmp_path / "edited").returncode == 0
    victim = next((tmp_path / "edited" / "data" / "rewards").glob("train-*.parquet"))
    edited = pl.read_parquet(victim).with_columns(pl.col("reward") + 0.25)
    edited.write_parquet(victim)
    run = solar("validate", tmp_path / "edited", "--json")
    assert run.returncode == 1
    assert "checks failed" in run.stderr
    assert not all(check["passed"] for check in json.loads(run.stdout))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("build",), "DATASET is missing"),
        (("build", "nowhere.yaml"), "no such file"),
        (("build", "phon"), "is shipped"),
        (("build", "toy.yaml", "--shaping.alignmet", "paper"), "did you mean 'alignment'?"),
        (("build", "toy.yaml", "--sampler.n", "many"), "command line: 'sampler.n'"),
        (("build", "toy.yaml", "--sampler.n"), "has no value"),
        (("build", "toy.yaml", "--sampler.n", "4", "stray"), "unexpected argument 'stray'"),
        (("build", "toy.yaml", "--prompt.format", "qwen"), "qwen"),
        (("build", "toy.yaml", "--sampler.endpoints", "x"), "it goes with sampler.type openai"),
        (("build", "toy.yaml", "--sampler", "qwen2_5"), "qwen2_5_vl_7b.yaml"),
        (("build", "toy.yaml", "--prompt.min_pixels", "9000", "--prompt.max_pixels", "8000"), "is above"),
        (("build", "toy.yaml", "--shaping.normalisation", "unit_mass"), "use normalisation: none"),
        (("stats", "toy-1.0.0", "first_failur"), "no statistic is named"),
        (("stats", "nowhere"), "nowhere"),
        (("query", "toy-1.0.0", "SELEC 1"), "syntax error"),
        (("query", "toy-1.0.0", "SELECT rewad FROM rewards"), "rewad"),
        (("query", "toy-1.0.0", "SELECT 1", "--format", "parquet"), "--out"),
        (("shape", "toy-1.0.0", "--sampler.n", "4"), "'shape' can't change 'sampler.n'"),
        (("train", "phone_cpu/nothing"), "nothing"),
        (("buld",), 'Did you mean "build"?'),
        (("build", "toy.yaml", "--walkers", "2"), "command line: unknown key 'walkers'"),
        (("build", "toy.yaml", "--out", "toy.yaml/sub"), "toy.yaml"),
        (("build", "./toy-1.0.0"), "holds no dataset.yaml (shape, score"),
        (("build", "/"), "/: the folder holds no dataset.yaml"),
        (("query", "", "SELECT 1"), "the first argument is empty"),
        (("inspect", ""), "the first argument is empty"),
        (
            ("query", "toy-1.0.0", "SELECT 1", "--format", "csv", "--out", "nodir/q.csv"),
            "No such file or directory",
        ),
        (
            ("query", "toy-1.0.0", "SELECT 1", "--format", "csv", "--out", "toy-1.0.0/README.md"),
            "never writes",
        ),
        (("query", "toy-1.0.0", "SELECT 1", "--rows", "-1"), "--rows"),
        (("stats", "toy-1.0.0", "groups", "--rows", "0"), "--rows"),
        (("shape", "toy-1.0.0", "--version", "1.0.0", "--out", "again"), "never overwritten"),
    ],
)
def test_wrong_input_is_exit_2_and_one_clear_line(home: Path, arguments: tuple[str, ...], words: str) -> None:
    run = solar(*arguments, cwd=home)
    assert run.returncode == 2, run.stderr
    assert words in run.stderr
    assert "Traceback" not in run.stderr
    assert run.stdout == ""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name: [", "is not valid YAML"),
        ("- a\n- b\n", "is not a mapping"),
        ("name: toy\n", "key 'source' is missing"),
        ("name: toy\nsource: {builder: nowhere}\n", "no builder is named 'nowhere'"),
        ("name: toy\nsource: {builder: 'os:path'}\n", "no subclass"),
        ("name: toy\nsource: {builder: 'nomodule:X'}\n", "can't be imported"),
        ("name: toy\nsource: {builder: android_control}\n", "needs source.path"),
        ("name: toy\nsource: {builder: android_control, path: nowhere}\n", "no such file or folder"),
        ("name: toy\nname: other\nsource: {builder: phone}\n", "key 'name' stands there twice"),
        ("name: toy\nversion: one\nsource: {builder: phone}\n", "'version'"),
    ],
)
def test_a_wrong_dataset_yaml_is_exit_2_before_any_work(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "dataset.yaml").write_text(text)
    run = solar("build", "dataset.yaml", "--out", "ds", cwd=tmp_path)
    assert run.returncode == 2, run.stderr
    assert words in run.stderr
    assert not (tmp_path / "ds").exists()


def test_every_verb_has_help_with_an_example() -> None:
    verbs = ("demo", "build", "shape", "score", "validate", "stats", "query", "report", "train")
    for verb in verbs:
        run = solar(verb, "--help")
        assert run.returncode == 0
        assert f"Example: solar-rl {verb}" in " ".join(run.stdout.split())


def test_fields_list_every_config_key() -> None:
    text = solar("build", "--fields").stdout
    for name in ("--shaping.alignment", "--sampler.error_rate", "--validity.click_sigma", "--source.path"):
        assert name in text


def test_a_relative_source_path_is_relative_to_the_current_directory(tmp_path: Path) -> None:
    episode = {"episode_id": 7, "goal": "go", "split": "test", "actions": [{"action_type": "wait"}] * 2}
    line = episode | {"step_instructions": ["a", "b"], "candidate_bboxes": [[], []]}
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "er" / "x.jsonl").write_text(json.dumps(line) + "\n")
    ids = set()
    for path in ("deep/er/x.jsonl", "deep/er", str(tmp_path / "deep" / "er" / "x.jsonl")):
        out = f"out{len(list(tmp_path.glob('out*')))}"
        run = solar(
            "build",
            "android_control_test_actions",
            "--source.path",
            path,
            "--out",
            out,
            "--json",
            cwd=tmp_path,
        )
        assert run.returncode == 0, run.stderr
        ids.add(json.loads(run.stdout)["build_id"])
    assert len(ids) == 1, "where a source lies is no part of what is built"


def test_another_sampler_can_be_chosen_on_the_command_line(home: Path) -> None:
    answers = home / "answers.jsonl"
    rows = solar("query", "toy-1.0.0", "SELECT episode_id, step_index, candidate_index, completion FROM candidates",
                 "--format", "json", cwd=home).stdout  # fmt: skip
    answers.write_text("".join(json.dumps(row) + "\n" for row in json.loads(rows)))
    yaml = home / "scripted.yaml"
    yaml.write_text(TOY + "sampler: {type: scripted, n: 8, error_rate: 0.5}\n")
    words = ("--sampler.type", "recorded", "--sampler.path", "answers.jsonl", "--out", "recorded", "--json")
    run = solar("build", "scripted.yaml", *words, cwd=home)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["counts"]["candidates"] == len(json.loads(rows))


def test_a_missing_shard_is_told_by_every_reader(home: Path, tmp_path: Path) -> None:
    import shutil

    shutil.copytree(home / "toy-1.0.0", tmp_path / "cut")
    next((tmp_path / "cut" / "data" / "rewards").glob("test-*")).unlink()
    for words in (("query", "cut", "SELECT 1"), ("stats", "cut"), ("shape", "cut")):
        run = solar(*words, cwd=tmp_path)
        assert run.returncode == 2, words
        assert "missing or has another size" in run.stderr
    assert solar("validate", "cut", cwd=tmp_path).returncode == 1


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("candidates", ("shape", "hurt", "--shaping.alignment", "paper", "--out", "new")),
        ("rewards", ("diff", "hurt", "toy-1.0.0")),
        ("rewards", ("stats", "hurt", "rewards")),
        ("steps", ("report", "hurt")),
        ("steps", ("export", "hurt", "--out", "exported")),
    ],
)
def test_bytes_that_changed_on_disk_are_told_by_file(home: Path, tmp_path: Path, table, words) -> None:
    import shutil

    for name in ("toy-1.0.0", "hurt"):
        shutil.copytree(home / "toy-1.0.0", tmp_path / name)
    for victim in (tmp_path / "hurt" / "data" / table).glob("*.parquet"):
        data = bytearray(victim.read_bytes())
        data[4 : len(data) // 2] = bytes(len(data) // 2 - 4)
        victim.write_bytes(data)
    run = solar(*words, cwd=tmp_path)
    assert run.returncode == 2, run.stdout
    assert run.stderr.startswith("solar-rl: hurt") and table in run.stderr and "validate" in run.stderr
    assert "Traceback" not in run.stderr


def test_the_current_folder_can_be_built_into(home: Path, tmp_path: Path) -> None:
    run = solar("build", home / "toy.yaml", "--out", ".", cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "manifest.json").is_file()
    again = solar("build", home / "toy.yaml", "--out", ".", cwd=tmp_path)
    assert "nothing changed" in again.stdout
    assert not list(tmp_path.glob(".*")), "its lock lies beside it"


def test_a_damaged_build_is_built_again(home: Path) -> None:
    assert solar("build", "toy.yaml", "--out", "hurt", cwd=home).returncode == 0
    (home / "hurt" / "views.sql").write_text("gone")
    run = solar("build", "toy.yaml", "--out", "hurt", cwd=home)
    assert "nothing changed" not in run.stdout
    assert solar("validate", "hurt", cwd=home).returncode == 0


def test_a_build_says_what_it_takes_the_place_of(home: Path) -> None:
    assert solar("build", "toy.yaml", "--out", "twice", cwd=home).returncode == 0
    run = solar("build", "toy.yaml", "--out", "twice", "--sampler.n", "2", cwd=home)
    assert run.returncode == 0
    assert "took the place of version 1.0.0, build " in run.stderr


def test_a_mistyped_folder_is_not_looked_up_on_the_hub(home: Path) -> None:
    (home / "runs").mkdir()
    run = solar("query", "runs/nope", "SELECT 1", cwd=home)
    assert run.returncode == 2
    assert "runs/nope: no such folder (hf://runs/nope would be" in run.stderr
    for words in (("report", "hf://owner/name"), ("shape", "hf://owner/name")):
        assert "a folder of this machine is needed" in solar(*words, cwd=home).stderr
