"""SQL over a dataset answers questions and opens no other door."""

import shutil
import subprocess
import sys

import polars as pl
import pytest
from lawful_dataset import tables, write_small_dataset

from solar_rl import query
from solar_rl.errors import InputError
from solar_rl.schema import TABLES


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_small_dataset(tmp_path_factory.mktemp("small"))


@pytest.fixture(scope="module")
def frames():
    return tables()


def test_every_table_has_its_rows_and_columns(folder, frames):
    for name, table in TABLES.items():
        found = query.run(folder, f"SELECT * FROM {name} ORDER BY ALL LIMIT 0")
        assert found.columns == list(table.names)
    for name, frame in frames.items():
        assert query.run(folder, f"SELECT count(*) FROM {name}").item() == frame.height


def test_scored_puts_goal_split_and_screenshot_beside_each_reward(folder, frames):
    found = query.run(folder, "FROM scored ORDER BY episode_id, step_index, candidate_index")
    assert found.height == frames["rewards"].height
    assert set(found.columns) == {
        *TABLES["rewards"].names,
        *("goal", "source", "platform", "split", "ref_len", "instruction", "image_sha256"),
    }
    steps = frames["steps"].select("episode_id", "step_index", "image_sha256", "instruction")
    wanted = frames["rewards"].join(steps, on=["episode_id", "step_index"], maintain_order="left")
    assert found["image_sha256"].equals(wanted["image_sha256"])
    assert found["instruction"].equals(wanted["instruction"])


def test_failures_show_the_answer_that_broke_each_failed_trajectory(folder, frames):
    found = query.run(folder, "FROM failures ORDER BY episode_id, candidate_index")
    failed = frames["trajectories"].filter(~pl.col("success"))
    assert found["episode_id"].to_list() == failed["episode_id"].to_list()
    assert (found["raw_score"] < 0.5).all()
    assert found["completion"].null_count() == 0


def test_groups_name_the_reason_why_they_teach_nothing(tmp_path):
    frames = tables(6)
    key = pl.col("episode_id") == "e000", pl.col("step_index")
    reward = (
        pl.when(key[0] & (key[1] == 0))
        .then(None)
        .when(key[0] & (key[1] == 1) & (pl.col("candidate_index") > 0))
        .then(None)
        .when((pl.col("episode_id") == "e001") & (key[1] == 0))
        .then(pl.lit(0.1) + 0.2 - pl.lit(1e-16) * pl.col("candidate_index"))
        .otherwise(pl.col("reward"))
    )
    frames["rewards"] = frames["rewards"].with_columns(reward=reward)
    folder = write_small_dataset(tmp_path, frames)
    groups = query.run(folder, "FROM grpo_groups ORDER BY episode_id, step_index")
    assert groups.columns == ["episode_id", "step_index", "n", "mean_reward", "spread", "dropped_reason"]
    assert groups["dropped_reason"].to_list()[:3] == ["nothing in play", "one candidate", "no spread"]
    assert groups["n"].to_list()[:3] == [0, 1, 3]
    kept = groups.filter(pl.col("dropped_reason").is_null())
    assert (kept["spread"] > 1e-12).all()


@pytest.mark.parametrize(
    "sql",
    [
        "WITH x AS (FROM steps) SELECT count(*) FROM x",
        "FROM episodes LIMIT 1",
        "VALUES (1)",
        "DESCRIBE rewards",
        "SHOW TABLES",
        "SUMMARIZE trajectories",
        "EXPLAIN SELECT 1",
        "EXPLAIN ANALYZE SELECT count(*) FROM steps",
        "PIVOT (SELECT split, platform FROM episodes) ON split USING count(*)",
        "SELECT 1; ",
        "-- a comment\nSELECT 1",
    ],
)
def test_reading_statements_work(folder, sql):
    assert query.run(folder, sql).height > 0


@pytest.mark.parametrize(
    "sql",
    [
        "COPY episodes TO '{out}'",
        "COPY episodes TO '{data}'",
        "EXPLAIN ANALYZE COPY episodes TO '{data}'",
        "EXPLAIN /* */ ANALYZE COPY episodes TO '{data}'",
        "EXPORT DATABASE '{out}'",
        "ATTACH '{out}'",
        "ATTACH '{data}'",
        "CREATE TABLE t AS SELECT 1",
        "CREATE OR REPLACE VIEW episodes AS SELECT 1",
        "DROP VIEW episodes",
        "INSERT INTO episodes SELECT * FROM episodes",
        "UPDATE episodes SET goal = ''",
        "DELETE FROM episodes",
        "INSTALL httpfs",
        "LOAD json",
        "SET threads = 1",
        "SET enable_external_access = true",
        "RESET lock_configuration",
        "PRAGMA threads = 1",
        "CALL pragma_version()",
        "CREATE SECRET (TYPE s3)",
        "PREPARE p AS SELECT 1",
        "SELECT 1; SELECT 2",
        "SELECT 1; COPY episodes TO '{data}'",
        "",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM read_blob('{data}/../../../manifest.json')",
        "SELECT * FROM glob('/etc/*')",
        "SELECT * FROM sniff_csv('/etc/passwd')",
        "FROM '/etc/passwd'",
        "FROM read_parquet('/**/*.parquet')",
        "FROM read_json('{data}/../../../manifest.json')",
        "FROM read_csv('https://example.org/x.csv')",
        "SELECT * FROM folder",
    ],
)
def test_no_statement_writes_or_reads_anything_else(folder, tmp_path, sql):
    data = folder / "data/episodes/train-00000-of-00001.parquet"
    before = data.read_bytes()
    with pytest.raises(InputError, match="SQL"):
        query.run(folder, sql.format(out=tmp_path / "out", data=data))
    assert data.read_bytes() == before
    assert list(tmp_path.iterdir()) == []


def test_the_connection_itself_is_locked(folder, tmp_path):
    import duckdb

    con = query.connect(folder, threads=1, memory_limit="500MB")
    for sql in (
        "SET threads = 2",
        "SET allowed_paths = ['/etc/passwd']",
        f"COPY episodes TO '{tmp_path / 'x.csv'}'",
        "FROM read_text('/etc/passwd')",
    ):
        with pytest.raises(duckdb.Error):
            con.sql(sql)
    assert con.sql("SELECT current_setting('threads'), current_setting('memory_limit')").fetchall() == [
        (1, "476.8 MiB")
    ]


def test_views_that_need_no_screenshot_read_no_screenshot(folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "copy")
    for path in (copy / "data/images").iterdir():
        data = bytearray(path.read_bytes())
        data[4 : len(data) // 2] = bytes(len(data) // 2 - 4)  # screenshots gone, footer whole
        path.write_bytes(data)
    with query.connect(copy) as con:
        for view in query.VIEWS:
            assert query.select(con, f"SELECT * FROM {view}").height > 0
        with pytest.raises(InputError):
            query.select(con, "SELECT image FROM images")


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT gaol FROM episodes", "goal"),
        ("SELECT gaol FROM episodes", "episodes: episode_id, source, platform, goal"),
        ("SELECT t.rewrd FROM trajectories t", "trajectories: episode_id"),
        ("FROM episode", "tables and views: episodes, steps"),
        ("SELEC 1", "syntax error"),
        ("SELECT count(* FROM steps", "syntax error"),
        ("SELECT 'x'::INTEGER", "Could not convert"),
        ("DROP TABLE x", "DROP is no reading statement"),
        ("-- a note\n /* one more */ install httpfs", "INSTALL is no reading statement"),
    ],
)
def test_a_wrong_query_is_one_line_that_says_what_exists(folder, sql, words):
    with pytest.raises(InputError) as caught:
        query.run(folder, sql)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_that_is_no_dataset(tmp_path, folder):
    with pytest.raises(InputError, match="no such dataset folder"):
        query.run(tmp_path / "nowhere", "SELECT 1")
    with pytest.raises(InputError, match=r"no manifest\.json"):
        query.run(tmp_path, "SELECT 1")
    with pytest.raises(InputError, match="'episodes' has no files"):
        query.connect(tmp_path, unfinished=True)


def test_views_sql_runs_in_plain_duckdb_from_the_dataset_folder(folder):
    code = (
        "import duckdb; con = duckdb.connect(); con.execute(open('views.sql').read());"
        "print([con.sql(f'SELECT count(*) FROM {v}').fetchall()[0][0] for v in "
        "('scored', 'failures', 'grpo_groups', 'images')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True
    )
    counts = [query.run(folder, f"SELECT count(*) FROM {v}").item() for v in (*query.VIEWS, "images")]
    assert done.stdout.strip() == str(counts)
    assert (folder / "views.sql").read_text() == query.views_sql()


def test_importing_query_loads_no_duckdb():
    code = "import sys, solar_rl.query, solar_rl.stats, solar_rl.validate; print('duckdb' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
