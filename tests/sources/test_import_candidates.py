"""`solar-rl import-candidates`: a new version with answers from elsewhere, or one line that says what doesn't fit."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
import pytest

from solar_rl import pipeline
from solar_rl.cli import main
from solar_rl.config import DatasetConfig, ScriptedSampler, SourceConfig
from solar_rl.importing import read_answers
from solar_rl.importing.answers import KEY
from solar_rl.schema import TABLES
from solar_rl.store.manifest import read_manifest
from solar_rl.validate import validate

TOY = SourceConfig(builder="toy_source:ToyBuilder", options={"episodes": 8, "broken": []})
SEVEN = [
    "episode_id",
    "step_index",
    "candidate_index",
    "completion",
    "token_ids",
    "sampling_logprobs",
    "seed",
]
Rows = list[dict[str, Any]]


class Run(NamedTuple):
    code: int
    out: str
    err: str


def solar(*arguments: object) -> Run:
    out, err, code = io.StringIO(), io.StringIO(), 0
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as stop:
            code = int(stop.code or 0)
    return Run(code, out.getvalue(), err.getvalue())


def table(folder: Path, name: str) -> pl.DataFrame:
    files = sorted((folder / "data" / name).glob("*.parquet"))
    return pl.concat([pl.read_parquet(path) for path in files]).sort(TABLES[name].key)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset of eight episodes in three splits, three candidates a step."""
    folder = tmp_path_factory.mktemp("base") / "toy-1.0.0"
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(Path(__file__).parents[1] / "pipeline")
        config = DatasetConfig(name="toy", source=TOY, sampler=ScriptedSampler(n=3), preview_rows=20)
        pipeline.build(config, folder)
    return folder


@pytest.fixture
def rows(base: Path) -> Rows:
    """The answers of that dataset, as somebody else would write them down."""
    return table(base, "candidates").select(SEVEN).to_dicts()


@pytest.fixture
def bring(base: Path, tmp_path: Path) -> Callable[..., Run]:
    """Write rows to a file and import it."""

    def _bring(rows: Rows, *arguments: object, out: str = "new") -> Run:
        file = tmp_path / "other_model.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return solar("import-candidates", file, "--into", base, "--out", tmp_path / out, *arguments)

    return _bring


# --- what comes of it --------------------------------------------------------------------------------


def test_a_datasets_own_candidates_come_back_the_same(base: Path, tmp_path: Path) -> None:
    table(base, "candidates").sample(fraction=1, shuffle=True, seed=1).write_parquet(tmp_path / "c.parquet")
    run = solar("import-candidates", tmp_path / "c.parquet", "--into", base, "--out", tmp_path / "new")
    assert run.code == 0, run.err
    for name in TABLES:
        if name != "preview":
            assert table(base, name).equals(table(tmp_path / "new", name)), name
    assert not [check for check in validate(tmp_path / "new") if not check.passed]


def test_tokens_seeds_and_reasons_are_kept(rows: Rows, bring: Callable[..., Run], tmp_path: Path) -> None:
    for number, row in enumerate(rows):
        row |= {
            "seed": number,
            "finish_reason": ("stop", "length", None)[number % 3],
            "history_dropped": number % 2,
        }
    assert bring(rows).code == 0
    found = table(tmp_path / "new", "candidates").select(*SEVEN, "finish_reason", "history_dropped")
    assert found.sort(KEY).to_dicts() == sorted(rows, key=lambda row: tuple(row[name] for name in KEY))


def test_a_missing_seed_is_what_a_sampler_would_have_drawn_with(
    base: Path, rows: Rows, bring: Callable[..., Run], tmp_path: Path
) -> None:
    assert bring([{name: row[name] for name in SEVEN[:4]} for row in rows]).code == 0
    new = table(tmp_path / "new", "candidates")
    assert new["seed"].equals(table(base, "candidates")["seed"])
    assert new["token_ids"].null_count() == new["sampling_logprobs"].null_count() == new.height
    assert new["sampler_id"].unique().to_list() == ["recorded/other_model"]


def test_who_answered_is_the_rows_own_or_given(rows: Rows, bring: Callable[..., Run], tmp_path: Path) -> None:
    half = [row | ({"sampler_id": "m"} if row["candidate_index"] else {}) for row in rows]
    bring(half, out="a")
    assert table(tmp_path / "a", "candidates")["sampler_id"].unique().sort().to_list() == [
        "m",
        "recorded/other_model",
    ]
    bring(half, "--sampler-id", "mine/7b", out="b")
    assert table(tmp_path / "b", "candidates")["sampler_id"].unique().to_list() == ["mine/7b"]


def test_n_is_the_files_and_the_config_says_where_answers_come_from(
    rows: Rows, bring: Callable[..., Run], tmp_path: Path
) -> None:
    run = bring([row for row in rows if row["candidate_index"] < 2], "--sampler.temperature", 0.7, "--json")
    assert run.code == 0, run.err
    assert json.loads(run.out)["counts"]["candidates"] == 2 * table(tmp_path / "new", "steps").height
    config = read_manifest(tmp_path / "new").config
    sampler = {name: config["sampler"][name] for name in ("type", "path", "n", "temperature")}
    assert sampler == {"type": "recorded", "path": "other_model.jsonl", "n": 2, "temperature": 0.7}


def test_answers_are_read_in_their_own_format(
    base: Path, rows: Rows, bring: Callable[..., Run], tmp_path: Path
) -> None:
    waits = [{name: row[name] for name in KEY} | {"completion": "Thought: x\nAction: wait()"} for row in rows]
    wrong = bring(waits)
    assert (wrong.code, "--format ui_tars" in wrong.err) == (2, True)
    assert bring(waits, "--format", "ui_tars").code == 0
    assert table(tmp_path / "new", "candidates")["pred_action_type"].unique().to_list() == ["wait"]
    assert read_manifest(tmp_path / "new").config["prompt"]["format"] == "ui_tars"


def test_a_format_that_reads_few_is_told(rows: Rows, bring: Callable[..., Run]) -> None:
    mumbled = [row | ({"completion": "?"} if number else {}) for number, row in enumerate(rows)]
    run = bring(mumbled)
    assert run.code == 0
    assert "of the answers can be read" in run.err


def test_other_rules_can_judge_in_the_same_go(rows: Rows, bring: Callable[..., Run], tmp_path: Path) -> None:
    assert bring(rows, "--validity.preset", "lenient", "--shaping.alignment", "paper").code == 0
    config = read_manifest(tmp_path / "new").config
    assert (config["validity"]["preset"], config["shaping"]["alignment"]) == ("lenient", "paper")


def test_groups_of_one_and_n_are_adaptive(rows: Rows, bring: Callable[..., Run], tmp_path: Path) -> None:
    some = [row for row in rows if row["candidate_index"] == 0 or row["step_index"] != 1]
    run = bring(some)
    assert (run.code, "--sampler.adaptive true" in run.err) == (2, True)
    assert bring(some, "--sampler.adaptive", "true").code == 0
    assert table(tmp_path / "new", "candidates").height == len(some)


def test_a_json_list_as_query_writes_it_is_read(base: Path, rows: Rows, tmp_path: Path) -> None:
    sql = "SELECT episode_id, step_index, candidate_index, completion FROM candidates"
    assert solar("query", base, sql, "--format", "json", "--out", tmp_path / "ans.json").code == 0
    assert "import-candidates" in solar("inspect", tmp_path / "ans.json").out
    run = solar("import-candidates", tmp_path / "ans.json", "--into", base, "--out", tmp_path / "new")
    assert run.code == 0, run.err
    assert table(tmp_path / "new", "candidates")["completion"].equals(table(base, "candidates")["completion"])
    (tmp_path / "ans.json").write_text(json.dumps([rows[0], rows[1] | {"step_index": "x"}]))
    wrong = solar("import-candidates", tmp_path / "ans.json", "--into", base)
    assert (wrong.code, "ans.json, item 2: 'step_index'" in wrong.err) == (2, True)


# --- nothing is lost ---------------------------------------------------------------------------------


def test_nothing_is_overwritten_and_versions_lie_beside_each_other(
    base: Path, rows: Rows, tmp_path: Path
) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    before = {path: path.read_bytes() for path in base.rglob("*") if path.is_file()}
    first, second = (solar("import-candidates", file, "--into", base, "--json") for _ in range(2))
    assert [json.loads(run.out)["version"] for run in (first, second)] == ["1.0.1", "1.0.2"]
    assert {path: path.read_bytes() for path in before} == before
    assert sorted(path.name for path in base.parent.iterdir()) == ["toy-1.0.0", "toy-1.0.1", "toy-1.0.2"]
    images = sorted((base / "data" / "images").iterdir())[0]
    assert images.samefile(base.parent / "toy-1.0.1" / "data" / "images" / images.name)
    assert solar("import-candidates", file, "--into", base, "--out", base).code == 2
    assert solar("import-candidates", file, "--into", base, "--version", "1.0.0").code == 2


def test_an_import_takes_no_finished_datasets_place(
    base: Path, rows: Rows, bring: Callable[..., Run], tmp_path: Path
) -> None:
    assert bring(rows, out="other").code == 0
    before = {path: path.read_bytes() for path in (tmp_path / "other").rglob("*") if path.is_file()}
    fewer = [row for row in rows if row["candidate_index"] < 2]
    for more in ((), ("--dry-run",)):
        run = bring(fewer, *more, out="other")
        assert (run.code, "holds toy 1.0.1, and a finished version is never overwritten" in run.err) == (
            2,
            True,
        )
    assert {path: path.read_bytes() for path in before} == before
    assert "nothing to do" in bring(rows, out="other").out
    assert "nothing: this version is there" in bring(rows, "--dry-run", out="other").out


def test_a_dry_run_checks_and_writes_nothing(rows: Rows, bring: Callable[..., Run], tmp_path: Path) -> None:
    run = bring(rows, "--dry-run", "--json")
    told = json.loads(run.out)
    assert (told["answers"], told["n"], told["with token ids"]) == (len(rows), 3, len(rows))
    assert not (tmp_path / "new").exists()
    assert bring(rows[1:], "--dry-run").code == 2


# --- what doesn't fit --------------------------------------------------------------------------------


def without(rows: Rows, **values: Any) -> Rows:
    return [row for row in rows if any(row[name] != value for name, value in values.items())]


FAULTS: dict[str, tuple[Callable[[Rows], Rows], str]] = {
    "no rows": (lambda rows: [], "holds no answer"),
    "a step is missing": (
        lambda rows: without(rows, episode_id="e001", step_index=1),
        "steps have no answer, the first: episode e001, step 1",
    ),
    "an answer is missing": (
        lambda rows: without(rows, episode_id="e001", step_index=1, candidate_index=2),
        "1 steps have another number of answers than 3: episode e001, step 1 has 2",
    ),
    "a gap": (
        lambda rows: [row | {"candidate_index": 2 * row["candidate_index"]} for row in rows],
        "episode e000, step 0 has 3 answers, but one is candidate 4; they are numbered from 0",
    ),
    "twice": (lambda rows: [*rows, rows[4]], "stands there 2 times"),
    "another episode": (
        lambda rows: [*rows, rows[0] | {"episode_id": "e9"}],
        "1 answers to other steps, the first to episode e9, step 0: the dataset has no such episode",
    ),
    "another step": (
        lambda rows: [*rows, rows[0] | {"step_index": 9}],
        "the first to episode e000, step 9: the episode has 2 steps",
    ),
    "a typo": (
        lambda rows: [rows[0] | {"sampler": "m"}],
        "line 1: unknown key 'sampler' (did you mean 'sampler_id'?)",
    ),
    "no completion": (
        lambda rows: [dict.fromkeys(KEY, 0) | {"episode_id": "e"}],
        "line 1: key 'completion' is missing",
    ),
    "a text for a number": (lambda rows: [rows[0], rows[1] | {"step_index": "1"}], "line 2: 'step_index': "),
    "a negative number": (lambda rows: [rows[0] | {"step_index": -1}], "line 1: 'step_index': "),
    "too many candidates": (lambda rows: [rows[0] | {"candidate_index": 64}], "'candidate_index': "),
    "NaN": (lambda rows: [rows[0] | {"sampling_logprobs": [float("nan")]}], "line 1: is no JSON"),
    "other lengths": (lambda rows: [rows[0] | {"token_ids": [1]}], "1 token_ids but "),
    "no log-prob": (
        lambda rows: [rows[0], rows[1] | {"token_ids": [1], "sampling_logprobs": [5.0]}],
        "line 2: 'sampling_logprobs.0': Input should be less than or equal to 0.0009",
    ),
    "no tokens": (
        lambda rows: [rows[0] | {"token_ids": None, "sampling_logprobs": [-0.5]}],
        "line 1: has sampling_logprobs without the token_ids",
    ),
    "a wrong reason": (lambda rows: [rows[0] | {"finish_reason": "eos"}], "'finish_reason': "),
    "a list": (lambda rows: [[1]], "line 1: 'the row': "),  # type: ignore[list-item]
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_does_not_fit_is_one_line_before_any_work(
    fault: str, rows: Rows, bring: Callable[..., Run], tmp_path: Path
) -> None:
    change, words = FAULTS[fault]
    run = bring(change(rows))
    assert (run.code, run.out) == (2, ""), run.err
    assert words in run.err
    assert run.err.count("\n") == 1
    assert not (tmp_path / "new").exists()


def test_a_parquet_file_with_a_strange_column_is_refused(base: Path, rows: Rows, tmp_path: Path) -> None:
    pl.DataFrame(rows).rename({"completion": "completions"}).write_parquet(tmp_path / "a.parquet")
    run = solar("import-candidates", tmp_path / "a.parquet", "--into", base)
    assert (run.code, "did you mean 'completion'?" in run.err) == (2, True)
    (tmp_path / "b.parquet").write_bytes((tmp_path / "a.parquet").read_bytes()[:-9])
    assert (
        "can't be read as parquet" in solar("import-candidates", tmp_path / "b.parquet", "--into", base).err
    )


def test_wrong_words_on_the_command_line(
    base: Path, rows: Rows, bring: Callable[..., Run], tmp_path: Path
) -> None:
    assert "did you mean" in bring(rows, "--format", "ui_tar").err
    assert "can't change 'source.limit'" in bring(rows, "--source.limit", "3").err
    assert bring(rows, "--prompt.levl", "low").code == 2
    assert solar("import-candidates", tmp_path / "no.jsonl", "--into", base).code == 2
    assert solar("import-candidates", tmp_path / "other_model.jsonl", "--into", tmp_path / "no").code == 2


def test_whole_numbers_are_ids_and_blank_lines_are_nothing(tmp_path: Path) -> None:
    row = {"episode_id": 7, "step_index": 0, "candidate_index": 0, "completion": ""}
    (tmp_path / "a.jsonl").write_bytes(b"\xef\xbb\xbf" + json.dumps(row).encode() + b"\r\n\r\n")
    assert read_answers(tmp_path / "a.jsonl")["episode_id"].to_list() == ["7"]
