"""A dataset on the Hub reads like a folder: one commit, only the tables asked for, also offline."""

import json
import subprocess
import sys

import polars as pl
import pytest
from lawful_dataset import tables, write_small_dataset
from polars.testing import assert_frame_equal
from test_publish import REPO, next_version

import solar_rl
from solar_rl.errors import CheckFailed, InputError
from solar_rl.query import VIEWS, tables_in
from solar_rl.schema import TABLES
from solar_rl.stats import NAMES, compute
from solar_rl.store.hub import dataset_release, publish_release
from solar_rl.store.manifest import describe_files, read_manifest, write_manifest


@pytest.fixture
def published(hub, env, built):
    publish_release(dataset_release(built), REPO)
    hub.seen.clear()
    return REPO


def downloaded(hub) -> set[str]:
    """Name the files that were asked for since the log was cleared, and clear it."""
    paths = {
        line.split("/resolve/")[1].split("/", 1)[1] for line in hub.seen if line.startswith("GET /datasets")
    }
    hub.seen.clear()
    return paths


def tables_of(paths: set[str]) -> set[str]:
    return {path.split("/")[1] for path in paths if path.startswith("data/")}


def test_opening_downloads_the_manifest_and_the_card_alone(hub, published, built):
    data = solar_rl.open_dataset(REPO, revision="v1.0.0")
    assert downloaded(hub) == {"manifest.json", "README.md"}
    assert data.manifest == solar_rl.open_dataset(built).manifest
    assert (data.repo, data.commit) == (REPO, hub.repo(REPO).tags["v1.0.0"])
    assert f"{REPO}@{data.commit}" in repr(data)


def test_a_table_comes_when_it_is_read_and_once(hub, published, built):
    data = solar_rl.open_dataset(REPO, revision="v1.0.0")
    hub.seen.clear()
    for name in ("rewards", "episodes"):
        ours, theirs = (
            getattr(d, name).collect(engine="in-memory") for d in (solar_rl.open_dataset(built), data)
        )
        assert_frame_equal(ours, theirs)
        assert tables_of(downloaded(hub)) == {name}
    again = solar_rl.open_dataset(REPO, revision="v1.0.0")
    assert again.rewards.collect().height > 0
    assert downloaded(hub) == set()


def test_sql_brings_the_tables_that_it_names_through_views_too(hub, published, built):
    data = solar_rl.open_dataset(f"hf://{REPO}@v1.0.0")
    hub.seen.clear()
    assert data.sql("SHOW TABLES").height == len(TABLES) + len(VIEWS)
    assert data.sql("DESCRIBE images").height == len(TABLES["images"].names)
    assert downloaded(hub) == set()
    ours = solar_rl.open_dataset(built)
    for sql, wanted in (
        ("SELECT count(*) FROM trajectories", {"trajectories"}),
        ("FROM failures ORDER BY ALL", {"rewards", "candidates"}),
        ("SELECT goal, count(*) FROM Scored GROUP BY 1 ORDER BY 1", {"episodes", "steps"}),
        ("SELECT count(*) FROM images", {"images"}),
    ):
        assert_frame_equal(data.sql(sql), ours.sql(sql))
        assert tables_of(downloaded(hub)) == wanted
    with pytest.raises(InputError, match="table preview is read in a way that does not name it"):
        data.sql("SELECT * FROM query_table('prev' || 'iew')")
    assert data.sql("SELECT count(*) FROM preview").item() > 0


def test_every_view_names_its_tables():
    assert tables_in("FROM scored") == {"rewards", "episodes", "steps"}
    assert tables_in("FROM FAILURES") == {"trajectories", "rewards", "candidates"}
    assert tables_in("FROM grpo_groups") == {"rewards"}
    assert tables_in("SELECT 1") == set()


def test_a_repository_that_lacks_a_file_is_named(hub, published):
    repo = hub.repo(REPO)
    del repo.commits[repo.tags["v1.0.0"]].tree["data/rewards/test-00000-of-00001.parquet"]
    data = solar_rl.open_dataset(REPO)
    with pytest.raises(InputError, match=r"lacks data/rewards/test-00000"):
        data.sql("SELECT count(*) FROM rewards")
    with pytest.raises(InputError, match=r"lacks data/rewards/test-00000"):
        data.rewards.collect()


def test_one_commit_is_read_whatever_happens_on_main(hub, published, built, tmp_path):
    data = solar_rl.open_dataset(REPO)
    before = data.sql("SELECT count(*) FROM episodes").item()
    larger = write_small_dataset(tmp_path / "larger", tables(9))
    files = {p.relative_to(larger).as_posix(): p.read_bytes() for p in larger.rglob("*") if p.is_file()}
    hub.commit(REPO, files)
    assert data.sql("SELECT count(*) FROM trajectories").item() == before * 3
    assert solar_rl.open_dataset(REPO).sql("SELECT count(*) FROM episodes").item() == 9
    assert (
        solar_rl.open_dataset(REPO, revision="v1.0.0").sql("SELECT count(*) FROM episodes").item() == before
    )


def test_a_full_commit_is_never_looked_up(hub, published):
    commit = hub.repo(REPO).tags["v1.0.0"]
    solar_rl.open_dataset(REPO, revision=commit).rewards.collect()
    hub.seen.clear()
    solar_rl.open_dataset(f"hf://datasets/{REPO}@{commit}").rewards.collect()
    assert hub.seen == []


def test_path_has_every_file_and_nothing_that_no_release_lists(hub, published, built):
    hub.commit(REPO, {"LICENSE": b"x"})
    data = solar_rl.open_dataset(REPO)
    found = {p.relative_to(data.path).as_posix() for p in data.path.rglob("*") if p.is_file()}
    assert found == {p.relative_to(built).as_posix() for p in built.rglob("*") if p.is_file()}


def test_a_cut_download_is_taken_up_again(hub, published, no_waiting):
    hub.plant(r"GET /datasets/.*/resolve/.*/data/rewards", cut="before")
    hub.plant(r"GET /datasets/.*/resolve/.*/data/rewards", status=503, skip=1)
    assert solar_rl.open_dataset(REPO).rewards.collect().height > 0


# --- offline -------------------------------------------------------------------------------------------


def test_a_warm_cache_serves_without_a_network(hub, published, no_waiting, caplog):
    warm = solar_rl.open_dataset(REPO, revision="v1.0.0").rewards.collect()
    hub.plant(".*", times=10_000, cut="before")
    data = solar_rl.open_dataset(REPO, revision="v1.0.0")
    assert "Could not reach the Hub" in caplog.text  # said, not silent
    assert_frame_equal(data.rewards.collect(), warm)
    with pytest.raises(CheckFailed, match="can't be reached"):
        data.steps.collect()
    with pytest.raises(CheckFailed, match="can't be reached"):
        solar_rl.open_dataset("owner/other")


def test_an_offline_machine_with_a_warm_cache(hub, published, solar):
    sql = "SELECT count(*) AS n FROM rewards"
    name = f"hf://{REPO}@v1.0.0"
    warm = solar("query", name, sql, "--format", "csv").stdout
    hub.seen.clear()
    assert solar("query", name, sql, "--format", "csv", HF_HUB_OFFLINE="1").stdout == warm
    cold = solar("query", name, "FROM steps", HF_HUB_OFFLINE="1", code=2).stderr
    assert "HF_HUB_OFFLINE is set" in cold
    assert "Traceback" not in cold
    assert hub.seen == []


# --- names ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "revision", "words"),
    [
        ("owner/nothing", None, "no such repository"),
        (REPO, "v9", r"no revision 'v9'.*there is: v1\.0\.0, main"),
        (REPO, "0" * 40, "no such revision"),
        (f"hf://{REPO}@nope", None, "no revision 'nope'"),
        ("hf://owner", None, "owner/name"),
        ("hf://a/b/c/d", None, "owner/name"),
        ("hf://datasets/owner/small@", None, "owner/name"),
        ("owner/plain", None, r"no manifest\.json"),
    ],
)
def test_wrong_names_are_one_clear_line(hub, published, name, revision, words):
    hub.create("owner/plain")
    with pytest.raises(InputError, match=words) as caught:
        solar_rl.open_dataset(name, revision=revision)
    assert "\n" not in str(caught.value)


def test_a_private_dataset_needs_a_token(hub, published, monkeypatch):
    hub.repo(REPO).private = True
    assert solar_rl.open_dataset(REPO).episodes.collect().height > 0
    monkeypatch.setenv("HF_TOKEN", "")
    with pytest.raises(InputError, match="needs a token, or there is no such"):
        solar_rl.open_dataset("owner/other")
    monkeypatch.setenv("HF_TOKEN", "hf_WrongWrongWrongWrongWrongWrongWrong")
    with pytest.raises(InputError, match="doesn't accept this token"):
        solar_rl.open_dataset("owner/other")


# --- verbs and libraries -------------------------------------------------------------------------------


def test_the_verbs_work_on_the_hub(hub, published, solar, built):
    name = f"hf://datasets/{REPO}@v1.0.0"
    local = solar("stats", built, "first_failure", "--json").stdout
    hub.seen.clear()
    assert solar("stats", name, "first_failure", "--json").stdout == local
    assert "images" not in tables_of(downloaded(hub))
    assert "checks passed" in solar("validate", name).stdout


@pytest.mark.parametrize("statistic", NAMES)
def test_every_statistic_says_of_the_hub_what_it_says_of_the_folder(hub, published, built, statistic):
    """Each on a connection of its own: what one brought must not hide that another can't bring its tables."""
    with solar_rl.open_dataset(built).connect() as here, solar_rl.open_dataset(REPO).connect() as there:
        local, remote = compute(here, statistic), compute(there, statistic)
    assert list(local) == list(remote)
    for title, table in local.items():
        assert_frame_equal(remote[title], table)


def test_to_hf_takes_one_table(hub, published, monkeypatch, tmp_path):
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", str(tmp_path / "cache"))
    data = solar_rl.open_dataset(REPO, revision="v1.0.0")
    hub.seen.clear()
    assert data.to_hf("rewards")["train"].num_rows == data.manifest.table_rows("rewards")["train"]
    assert tables_of(downloaded(hub)) == {"rewards"}


def python(code: str, env: dict[str, str]) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_load_dataset_and_streaming_read_one_table_of_one_version(hub, published, env, built, tmp_path):
    """Hugging Face's own ways in. A stream is read to its end: leaving one early hangs the interpreter."""
    rows = solar_rl.open_dataset(built).manifest.table_rows("rewards")
    publish_release(dataset_release(next_version(built, tmp_path / "newer")), REPO)
    hub.seen.clear()
    code = f"""
from datasets import load_dataset
loaded = load_dataset("{REPO}", "rewards", revision="v1.0.0")
print({{split: len(rows) for split, rows in loaded.items()}})
stream = load_dataset("{REPO}", "trajectories", revision="v1.0.0", split="train", streaming=True)
print(sum(1 for _ in stream))
preview = load_dataset("{REPO}", revision="v1.0.0")
print(preview["train"][0]["image"].size)
"""
    printed = python(code, env).splitlines()
    trajectories = solar_rl.open_dataset(built).manifest.table_rows("trajectories")
    assert printed == [str(rows), str(trajectories["train"]), "(36, 80)"]
    assert tables_of(downloaded(hub)) == {"rewards", "trajectories", "preview"}


def test_plain_duckdb_reads_through_a_filesystem(hub, published, env, built):
    """For those without solar-rl: plain DuckDB over the Hub's files."""
    code = f"""
import duckdb
from huggingface_hub import HfFileSystem
con = duckdb.connect()
con.register_filesystem(HfFileSystem())
print(con.sql("SELECT count(*) FROM 'hf://datasets/{REPO}@v1.0.0/data/rewards/*.parquet'").fetchall()[0][0])
"""
    count = sum(solar_rl.open_dataset(built).manifest.table_rows("rewards").values())
    assert python(code, env) == str(count)


def test_polars_frames_are_lazy(hub, published):
    assert isinstance(solar_rl.open_dataset(REPO).rewards, pl.LazyFrame)


# --- comparing -----------------------------------------------------------------------------------------


def test_two_releases_are_compared_without_their_screenshots(hub, published, built, tmp_path, solar):
    other = next_version(built, tmp_path / "next")
    rewards = other / "data" / "rewards" / "train-00000-of-00001.parquet"
    pl.read_parquet(rewards).with_columns(reward=pl.col("reward") * 2).write_parquet(rewards)
    write_manifest(other, read_manifest(other).model_copy(update={"files": tuple(describe_files(other))}))
    publish_release(dataset_release(other), REPO)
    hub.seen.clear()
    page = tmp_path / "diff.html"
    told = solar("diff", f"hf://{REPO}@v1.0.0", f"hf://{REPO}@v1.1.0", "--html", page, "--json").stdout
    assert tables_of(downloaded(hub)) == {"episodes", "steps", "candidates", "rewards", "trajectories"}
    assert json.loads(told) == json.loads(solar("diff", built, other, "--json").stdout)
    assert "rewards" in json.loads(told)["changed"]
    assert page.read_text().startswith("<!DOCTYPE html>")


def test_a_release_is_the_same_as_the_folder_that_was_published(published, built, solar):
    told = solar("diff", f"hf://{REPO}@v1.0.0", built, "--json", "--exit-code").stdout
    assert json.loads(told)["same"]
