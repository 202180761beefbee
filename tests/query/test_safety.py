"""A query may come from a stranger: it reads the dataset's tables, within limits, and nothing else."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from lawful_dataset import tables, write_small_dataset

from solar_rl import query
from solar_rl.errors import InputError
from solar_rl.query.limits import memory_bytes


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_small_dataset(tmp_path_factory.mktemp("small") / "small", tables(6))


@pytest.fixture
def con(folder):
    with query.connect(folder, memory_limit="300MB") as opened:
        yield opened


# --- nothing but the tables ----------------------------------------------------------------------------

DOORS = [
    # files
    "COPY (SELECT 1) TO '{out}/x'",
    "COPY rewards TO '{out}/x' (FORMAT parquet)",
    "EXPORT DATABASE '{out}/x'",
    "FROM read_csv('/etc/passwd', sep = ':')",
    "FROM read_csv_auto('/etc/passwd')",
    "FROM read_text('/etc/passwd')",
    "FROM read_blob('/etc/passwd')",
    "FROM read_json('/etc/passwd')",
    "FROM read_ndjson_objects('/etc/passwd')",
    "FROM read_duckdb('{other}')",
    "FROM '/etc/passwd'",
    'FROM "/etc/passwd"',
    "FROM read_parquet('{other}')",
    "FROM '{other}'",
    "FROM parquet_metadata('{other}')",
    "FROM parquet_kv_metadata('{other}')",
    "FROM glob('/*')",
    "FROM glob('{here}/**')",
    "FROM read_parquet('{here}/data/*/../../../*.parquet')",
    "FROM read_text('{here}/manifest.json')",
    "FROM read_text('file:///etc/passwd')",
    "SELECT * FROM query('FROM read_text(''/etc/passwd'')')",
    "SELECT * FROM query_table('/etc/passwd')",
    "FROM json_execute_serialized_sql(json_serialize_sql('FROM read_text(''/etc/passwd'')'))",
    # network
    "FROM read_csv('https://example.org/x.csv')",
    "FROM read_parquet('s3://bucket/x.parquet')",
    "FROM 'hf://datasets/other/repo/data/rewards/train-00000-of-00001.parquet'",
    "FROM read_parquet('hf://datasets/other/repo@main/**/*.parquet')",
    # databases, extensions, settings, secrets
    "ATTACH '{out}/x.db'",
    "ATTACH ':memory:' AS other",
    "INSTALL httpfs",
    "LOAD httpfs",
    "FORCE INSTALL json",
    "SET memory_limit = '100GB'",
    "SET GLOBAL threads = 64",
    "RESET memory_limit",
    "SET VARIABLE x = 1",
    "PRAGMA database_size",
    "PRAGMA enable_profiling",
    "PRAGMA memory_limit = '100GB'",
    "CALL enable_logging()",
    "FROM enable_logging(storage = 'file', storage_path = '{out}/log')",
    "FROM enable_profiling(save_location = '{out}/profile')",
    "CREATE SECRET s (TYPE s3, KEY_ID 'x', SECRET 'y')",
    "FROM duckdb_secrets()",
    "FROM which_secret('s3://x', 's3')",
    "SELECT getenv('HF_TOKEN')",
    "SELECT getenv('HOME')",
    "FROM add_grammar_extension('x')",
    "FROM create_external_resource('a', 'b')",
    # writing
    "CREATE TABLE t (a INT)",
    "CREATE TEMP TABLE t AS FROM rewards",
    "CREATE OR REPLACE VIEW rewards AS SELECT 1",
    "CREATE MACRO f(x) AS x",
    "CREATE FUNCTION f(x) AS x",
    "DROP VIEW rewards",
    "ALTER VIEW rewards RENAME TO r",
    "INSERT INTO rewards VALUES (1)",
    "UPDATE rewards SET reward = 1",
    "DELETE FROM rewards",
    "TRUNCATE rewards",
    "WITH x AS (SELECT 1) INSERT INTO rewards FROM x",
    "CHECKPOINT",
    "VACUUM",
    "BEGIN",
    "PREPARE p AS SELECT 1",
    "EXECUTE p",
    "DEALLOCATE p",
    "USE memory",
    "EXPLAIN ANALYZE COPY rewards TO '{out}/x'",
    "SELECT 1; DROP VIEW rewards",
    "COMMENT ON VIEW rewards IS 'x'",
    # Python's own variables
    "FROM folder",
    "FROM frames",
    "FROM python_map_function(1)",
    "FROM pandas_scan(1)",
    "FROM arrow_scan(1, 2, 3)",
]


@pytest.mark.parametrize("door", DOORS)
def test_every_door_is_shut(folder, con, tmp_path, door):
    other = write_small_dataset(tmp_path / "other", tables(3)) / "data/rewards/train-00000-of-00001.parquet"
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    out = tmp_path / "out"
    out.mkdir()
    frames = tables(3)["rewards"]  # noqa: F841  # a query must not see it
    for ask in (query.select, lambda con, sql: list(query.stream(con, sql))):
        with pytest.raises(InputError, match="SQL") as caught:
            ask(con, door.format(out=out, other=other, here=folder))
        assert "root:" not in str(caught.value)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    assert list(out.iterdir()) == []


def test_a_link_that_leads_out_of_the_dataset_is_refused(tmp_path):
    inside = write_small_dataset(tmp_path / "inside", tables(3))
    outside = write_small_dataset(tmp_path / "outside", tables(3))
    file = "data/rewards/train-00000-of-00001.parquet"
    (inside / file).unlink()
    (inside / file).symlink_to(outside / file)
    with pytest.raises(InputError, match="a link that leads out of the dataset"):
        query.connect(inside)


def test_a_dataset_below_a_linked_folder_and_links_inside_it_work(tmp_path):
    real = write_small_dataset(tmp_path / "real", tables(3))
    file = real / "data/rewards/train-00000-of-00001.parquet"
    file.rename(real / "data/kept.parquet")
    file.symlink_to(real / "data/kept.parquet")
    (tmp_path / "link").symlink_to(real)
    assert query.run(tmp_path / "link", "SELECT count(*) FROM rewards").item() > 0


# --- time and memory -----------------------------------------------------------------------------------

HUGE = {
    "cross join": "SELECT count(*) FROM range(10_000_000) a, range(10_000_000) b WHERE a.range * b.range % 7 = 3",
    "recursion": "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT max(n) FROM t",
    "fan-out": "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t, range(9)) SELECT max(n) FROM t",
    "sleep": "SELECT sleep_ms(100_000)",
    "sort": "SELECT a.range x FROM range(1_000_000) a, range(1_000) b ORDER BY hash(x + b.range) LIMIT 1e9 OFFSET 9e8",
    "list": "SELECT list(range) FROM range(3_000_000_000)",
    "string": "SELECT string_agg(repeat('x', 1000), '') FROM range(100_000_000)",
}


@pytest.mark.parametrize("name", HUGE)
def test_huge_questions_are_stopped_by_time_or_memory(con, name):
    with pytest.raises(InputError, match=r"stopped after 0\.5 seconds|more memory than it may have"):
        query.select(con, HUGE[name], timeout=0.5)
    assert query.select(con, "SELECT 1 AS x").item() == 1  # and the connection lives on


def test_a_question_within_its_time_is_not_disturbed(con):
    assert query.select(con, "SELECT count(*) FROM range(1000)", timeout=60).item() == 1000
    assert query.select(con, "SELECT 1", timeout=0.001 * 60_000).item() == 1


def test_rows_that_nobody_takes_are_never_made(con):
    frames = query.stream(con, "SELECT * FROM range(1_000_000_000_000)", timeout=60)
    assert next(frames)["range"].to_list()[:3] == [0, 1, 2]
    frames.close()


def test_a_stream_stops_at_its_time(con):
    started = time.monotonic()
    with pytest.raises(InputError, match="stopped after 1 seconds"):
        for _ in query.stream(con, "SELECT * FROM range(1_000_000_000_000)", timeout=1):
            pass
    assert time.monotonic() - started < 30


def test_a_stream_without_rows_has_its_columns(con):
    (frame,) = query.stream(con, "SELECT episode_id, reward FROM rewards LIMIT 0")
    assert (frame.columns, frame.height) == (["episode_id", "reward"], 0)


@pytest.mark.parametrize("text", ["", "4", "GB", "-1GB", "0GB", "4 apples", "1e3GB"])
def test_an_amount_of_memory_that_is_none(text):
    with pytest.raises(InputError, match="no amount of memory"):
        memory_bytes(text)


# --- the command line ----------------------------------------------------------------------------------


def ask(folder: Path, sql: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "solar_rl.cli", "query", str(folder), sql, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def one_line(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    (line,) = done.stderr.strip().splitlines()
    return line


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux limits a process's data")
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT range(3_000_000_000)",
        "SELECT length(repeat('x', 4_000_000_000))",
        "SELECT repeat('x', 50_000_000) FROM range(100)",
    ],
)
def test_one_huge_value_is_stopped_too(folder, sql):
    """DuckDB's own limit doesn't count it."""
    assert "more memory" in one_line(
        ask(folder, sql, "--memory", "200MB", "--format", "csv", "--out", os.devnull)
    )


def test_a_call_that_cannot_be_interrupted_ends_the_process(folder, monkeypatch):
    sql = "SELECT length(regexp_replace(repeat('a', 300_000_000), 'a', 'b', 'g'))"
    started = time.monotonic()
    assert "stopped after 1 seconds" in one_line(ask(folder, sql, "--timeout", "1"))
    assert time.monotonic() - started < 60


def test_an_endless_answer_is_cut_at_the_rows_shown_and_at_the_time(folder, tmp_path):
    endless = "SELECT range AS n FROM range(1_000_000_000)"
    shown = ask(folder, endless, "--rows", "3")
    assert shown.returncode == 0
    assert shown.stdout.split() == ["n", "───", "0", "1", "2"] or shown.stdout.split()[-1] == "2"
    assert "the first 3 rows shown, there are more" in shown.stderr
    out = tmp_path / "rows.json"
    assert "stopped after 1" in one_line(
        ask(folder, endless, "--format", "json", "--out", str(out), "--timeout", "1")
    )
    assert list(tmp_path.iterdir()) == []  # nothing half written


def test_json_is_one_array_however_many_frames_it_takes(folder):
    import json

    done = ask(folder, "SELECT range AS n, [range] AS l, 'a\nb' AS t FROM range(25_000)", "--format", "json")
    rows = json.loads(done.stdout)
    assert (len(rows), rows[-1]) == (25_000, {"n": 24_999, "l": [24_999], "t": "a\nb"})
    assert ask(folder, "SELECT 1 LIMIT 0", "--format", "json").stdout == "[]\n"


def test_a_table_is_never_written_to_a_file(folder, tmp_path):
    assert "--format csv" in one_line(ask(folder, "SELECT 1", "--out", str(tmp_path / "x")))
