"""The verb sample: what it draws a build finds, and a built dataset is sampled anew as a new version."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest
from test_cli import TOY, Run, solar

from solar_rl import open_dataset, pipeline
from solar_rl.builder import load_builder
from solar_rl.commands_sampling import going
from solar_rl.config import SourceConfig, load_dataset_config
from solar_rl.pipeline.expected import Expected
from solar_rl.pipeline.phases import Standing
from solar_rl.shipped import shipped_path

FILES = sorted(shipped_path("recipes", "samplers").glob("*.yaml"))
PHONE = ("phone", "--source.options.episodes", "6", "--sampler.n", "4")


def ok(run: Run) -> Run:
    assert run.returncode == 0, run.stderr
    return run


def table(folder: Path, name: str) -> pl.DataFrame:
    return pl.concat([pl.read_parquet(path) for path in sorted(folder.glob(f"data/{name}/*.parquet"))])


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sample")
    ok(solar("build", *PHONE, "--out", "phone-1.0.0", cwd=folder))
    return folder


def test_what_was_sampled_a_build_finds_and_makes_the_same_bytes(home: Path, tmp_path: Path) -> None:
    told = json.loads(ok(solar("sample", *PHONE, "--out", "p", "--json", cwd=tmp_path)).stdout)
    straight = table(home / "phone-1.0.0", "candidates")
    assert told["candidates"] == told["drawn"] == straight.height
    assert told["contexts"] == straight.select("episode_id", "step_index").n_unique()
    assert told["unparsed"] == straight["pred_action_type"].null_count()
    assert not list((tmp_path / "p").glob("data"))
    units = sorted((tmp_path / "p" / ".build").rglob("*.parquet"))
    stamps = [file.stat().st_mtime_ns for file in units]

    again = ok(solar("sample", *PHONE, "--out", "p", cwd=tmp_path))
    assert f"{straight.height:,} candidates" in again.stdout
    assert "drew" not in again.stderr
    assert [file.stat().st_mtime_ns for file in units] == stamps

    ok(solar("build", *PHONE, "--out", "p", cwd=tmp_path))
    assert table(tmp_path / "p", "candidates").equals(straight)
    manifests = [
        json.loads((each / "manifest.json").read_text()) for each in (home / "phone-1.0.0", tmp_path / "p")
    ]
    assert manifests[0]["build_id"] == manifests[1]["build_id"]
    there = ok(solar("sample", *PHONE, "--out", "p", cwd=tmp_path))
    assert "nothing to sample" in there.stdout


def test_a_dry_run_says_how_much_and_writes_nothing(home: Path, tmp_path: Path) -> None:
    told = json.loads(ok(solar("sample", *PHONE, "--out", "p", "--dry-run", "--json", cwd=tmp_path)).stdout)
    steps = table(home / "phone-1.0.0", "steps").height
    assert (told["steps"], told["candidates to draw"]) == (steps, 4 * steps)
    assert told["prompt tokens, estimated"] > 100 * steps
    assert list(tmp_path.iterdir()) == []
    ok(solar("sample", *PHONE, "--out", "p", cwd=tmp_path))
    left = json.loads(ok(solar("sample", *PHONE, "--out", "p", "--dry-run", "--json", cwd=tmp_path)).stdout)
    assert (left["episodes in finished units"], left["candidates to draw"]) == (6, 0)
    few = json.loads(
        ok(solar("sample", *PHONE, "--limit", "2", "--out", "q", "--dry-run", "--json", cwd=tmp_path)).stdout
    )
    assert few["episodes to sample"] == 2


@pytest.mark.parametrize(
    "changed",
    [("--sampler.adaptive", "true"), ("--prompt.history", "candidate"), ("--prompt.format", "ui_tars_abs")],
)
def test_a_built_dataset_is_sampled_anew_as_a_lawful_version(
    home: Path, tmp_path: Path, changed: tuple[str, str]
) -> None:
    source = ("--source.options.episodes", "6")
    ok(solar("sample", home / "phone-1.0.0", *changed, *source, "--out", tmp_path / "new", cwd=tmp_path))
    new = open_dataset(str(tmp_path / "new"))
    assert new.manifest.version == "1.1.0"
    assert new.manifest.config["prompt"]["template"].startswith(new.manifest.config["prompt"]["format"])
    for name in ("episodes", "steps"):
        assert table(tmp_path / "new", name).equals(table(home / "phone-1.0.0", name))
    run = solar("validate", tmp_path / "new", cwd=tmp_path)
    assert run.returncode == 0, run.stdout
    shaped = ("--shaping.alignment", "prefix_mean", "--out", tmp_path / "shaped")
    ok(solar("shape", tmp_path / "new", *shaped, cwd=tmp_path))
    run = solar("validate", tmp_path / "shaped", cwd=tmp_path)
    assert run.returncode == 0, run.stdout
    ok(solar("report", tmp_path / "shaped", cwd=tmp_path))
    page = (tmp_path / "shaped" / "report.html").read_text(encoding="utf-8")
    assert "Is it worth training on?" in page


def test_adaptive_groups_have_one_or_n_members_in_tables_views_and_statistics(
    home: Path, tmp_path: Path
) -> None:
    out = tmp_path / "a"
    ok(solar("build", *PHONE, "--sampler.adaptive", "true", "--out", out, cwd=tmp_path))
    whole = table(home / "phone-1.0.0", "candidates")
    some = table(out, "candidates")
    sizes = some.group_by("episode_id", "step_index").len("n")
    assert set(sizes["n"]) == {1, 4}
    key = ["episode_id", "step_index", "candidate_index"]
    same = whole.join(some, on=key, how="semi", maintain_order="left")
    assert some.drop("sampler_id").equals(same.drop("sampler_id"))  # its id tells n and adaptive too
    first = table(home / "phone-1.0.0", "rewards").filter(candidate_index=0)
    easy = first.filter(pl.col("valid").fill_null(True)).height
    assert (sizes["n"] == 1).sum() == easy
    view = open_dataset(str(out)).sql(
        "SELECT n, count(*) AS groups, count(dropped_reason) AS dropped FROM grpo_groups GROUP BY n ORDER BY n"
    )
    assert view["groups"].sum() == sizes.height
    tables = json.loads(ok(solar("stats", out, "sampling", "--json", cwd=tmp_path)).stdout)["sampling"]
    told = {row["candidates"]: row for row in tables["Contexts and samples"]}
    assert {n: row["contexts"] for n, row in told.items()} == dict(sizes.group_by("n").len().iter_rows())
    assert sum(row["samples"] for row in told.values()) == some.height


def test_no_finished_version_is_sampled_over(home: Path, tmp_path: Path) -> None:
    def anew(temperature: str, *more: str) -> Run:
        words = ("--sampler.error_rate", temperature, "--version", "2.0.0", "--out", "new", *more)
        return solar("sample", home / "phone-1.0.0", *words, cwd=tmp_path)

    ok(anew("0.2"))
    before = {path: path.read_bytes() for path in (tmp_path / "new").rglob("*") if path.is_file()}
    for more in ((), ("--dry-run",)):
        other = anew("0.4", *more)
        assert other.returncode == 2, other.stdout
        assert "holds phone 2.0.0, and a finished version is never overwritten" in other.stderr
    assert {path: path.read_bytes() for path in before} == before
    assert "nothing to do" in ok(anew("0.2")).stdout


def test_what_cannot_be_sampled_anew_is_one_line(home: Path, tmp_path: Path) -> None:
    for words, told in (
        ((), "sampled as it was"),
        (("--name", "other"), "can't change 'name'"),
        (("--sampler.adaptive", "true", "--version", "1.0.0"), "never overwritten"),
        (("--sampler", "no_such"), "there is: "),
        (("--prompt.template", "no/such"), "no template is named"),
    ):
        run = solar("sample", home / "phone-1.0.0", *words, cwd=tmp_path)
        assert run.returncode == 2, words
        assert told in run.stderr
        assert run.stderr.strip().count("\n") == 0


def test_slurm_is_told_to_be_a_build_s(tmp_path: Path) -> None:
    (tmp_path / "toy.yaml").write_text(TOY)
    run = solar("sample", "toy.yaml", "--executor.type", "slurm", cwd=tmp_path)
    assert (run.returncode, "solar-rl build --executor slurm" in run.stderr) == (2, True)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_sampler_s_file_goes_over_any_dataset(file: Path) -> None:
    dataset = shipped_path("datasets", "android_control", "dataset.yaml")
    config = load_dataset_config(dataset, {"prompt.level": "low", "sampler.n": "4"}, sampler=file)
    told = file.read_text(encoding="utf-8")
    assert "Not run here." in told
    assert (config.prompt.level, config.sampler.n, config.sampler.temperature) == ("low", 4, 1.0)
    assert config.prompt.template == f"{config.prompt.format}/2"
    assert config.source.builder == "android_control"
    assert config.sampler.type == "vllm"
    answer = config.sampler.max_prompt_tokens + config.sampler.max_new_tokens
    assert answer % 1024 == 0


@pytest.mark.parametrize("kind", ["openai", "transformers"])
def test_a_sampler_s_file_keeps_what_another_kind_of_sampler_knows(kind: str) -> None:
    dataset = shipped_path("datasets", "phone", "dataset.yaml")
    file = shipped_path("recipes", "samplers", "qwen3_vl_8b.yaml")
    before = load_dataset_config(dataset, sampler=file).sampler
    after = load_dataset_config(dataset, {"sampler.type": kind}, sampler=file).sampler
    assert (after.type, after.model, after.max_new_tokens) == (kind, before.model, before.max_new_tokens)
    assert after.max_new_tokens == 512


def test_a_sampler_s_file_with_other_blocks_is_refused(tmp_path: Path) -> None:
    (tmp_path / "odd.yaml").write_text("validity: {preset: lenient}\n")
    run = solar("sample", *PHONE, "--sampler", "odd.yaml", "--dry-run", cwd=tmp_path)
    assert run.returncode == 2
    assert "expected blocks prompt and sampler" in run.stderr


def test_progress_tells_rates_errors_and_what_is_known() -> None:
    standing = Standing(episodes=3, asked=100, hits=25, contexts=12, candidates=96, tokens=960, unparsed=24)
    assert going(standing, 2.0) == "48.0 candidates/s, 480 tokens/s, 25.0% known, 25.0% unparsable"
    assert going(Standing(), 2.0) == ""
    standing = Standing(episodes=70, drawn=20, candidates=80)
    assert going(standing, 60.0, 100).endswith(", about 0:01:30 left"), "50 were there before this run"
    assert "left" not in going(standing, 60.0)


def test_how_many_episodes_there_will_be_is_told_once_a_shard_was_read(tmp_path: Path) -> None:
    config = load_dataset_config(
        shipped_path("datasets", "phone", "dataset.yaml"),
        {"source.options.episodes": "17", "source.options.buckets": "{short: 1.0}"},
    )
    seen: list[Standing] = []
    pipeline.sample(config, tmp_path / "p", progress=seen.append)
    assert (seen[0].expected, seen[-1].drawn) == (0, 17)
    limited: list[Standing] = []
    few = config.model_copy(update={"source": config.source.model_copy(update={"limit": 5})})
    pipeline.sample(few, tmp_path / "few", progress=limited.append)
    assert {standing.expected for standing in limited} == {5}


def test_a_limit_draws_no_more_than_it_says_however_many_shards_there_are(tmp_path: Path) -> None:
    many = ("phone", "--source.options.episodes", "60", "--sampler.n", "2", "--out", "p", "--json")
    told = json.loads(ok(solar("sample", *many, "--limit", "3", cwd=tmp_path)).stdout)
    assert (told["episodes"], told["drawn"]) == (3, told["candidates"])
    more = json.loads(ok(solar("sample", *many, "--limit", "5", cwd=tmp_path)).stdout)
    assert more["episodes"] == 5


def test_shards_that_were_read_stand_for_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("solar_rl.pipeline.expected.time.monotonic", lambda: now)
    held: dict[int, int] = {}

    class Units:
        finished_parts = held.get

        def parts(self, shard: int) -> list[SimpleNamespace]:
            return [SimpleNamespace(episodes=range(held[shard]))]

    expected, limited = Expected(Units(), 10, None), Expected(Units(), 10, 30)
    assert Expected(Units(), 10, None, lambda shard: 7).episodes() == 70
    assert (expected.episodes(), limited.episodes()) == (0, 30)
    held |= {3: 4, 7: 8}
    assert (expected.episodes(), limited.episodes()) == (0, 30), "it looks once a second at most"
    now = 1.0
    assert (expected.episodes(), limited.episodes()) == (60, 30)
    held |= {number: 2 for number in range(10) if number not in held}
    now = 2.0
    assert (expected.episodes(), limited.episodes()) == (28, 28)


@pytest.mark.parametrize("lines", [1, 40, 90_000])
def test_one_file_of_lines_tells_about_how_many_it_holds(tmp_path: Path, lines: int) -> None:
    """The time left is told from the first episode on, and not only when the only shard is read."""
    file = tmp_path / "lines.jsonl"
    file.write_bytes(
        b"\n".join(b'{"steps": [], "note": "%s"}' % (b"x" * (50 + n % 30)) for n in range(lines))
    )
    builder = load_builder(SourceConfig(builder="jsonl", path=str(file)))
    about = sum(builder.about(shard) or 0 for shard in builder.shards())
    assert about == pytest.approx(lines, rel=0.02)
    (tmp_path / "packed.jsonl.gz").write_bytes(gzip.compress(file.read_bytes()))
    packed = load_builder(SourceConfig(builder="jsonl", path=str(tmp_path / "packed.jsonl.gz")))
    assert packed.about(packed.shards()[0]) is None


def test_workers_are_counted_together(tmp_path: Path) -> None:
    (tmp_path / "toy.yaml").write_text(TOY)
    config = load_dataset_config(tmp_path / "toy.yaml", {"executor.workers": "2"})
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(Path(__file__).parents[1] / "pipeline")
        seen: list[Standing] = []
        done = pipeline.sample(config, tmp_path / "toy", progress=seen.append)
    assert done.candidates == done.drawn == seen[-1].candidates > 0


def test_a_template_of_one_s_own_lies_in_the_manifest_and_another_text_is_sampled_again(
    tmp_path: Path,
) -> None:
    (tmp_path / "toy.yaml").write_text(TOY)
    mine = tmp_path / "mine.jinja"
    mine.write_text(
        '{% call say("user") %}\n{{ goal }}{% for each in screens %}{{ each }}{% endfor %}\n{% endcall %}\n'
    )
    words = ("toy.yaml", "--prompt.template", "mine.jinja", "--out", "toy")
    ok(solar("build", *words, cwd=tmp_path))
    manifest = open_dataset(str(tmp_path / "toy")).manifest
    assert manifest.config["prompt"]["template"] == mine.read_text()
    assert str(tmp_path) not in (tmp_path / "toy" / "manifest.json").read_text()
    assert "nothing changed" in ok(solar("build", *words, cwd=tmp_path)).stdout
    mine.write_text(mine.read_text().replace("{{ goal }}", "Do this: {{ goal }}"))
    plan = json.loads(ok(solar("build", *words, "--dry-run", "--json", cwd=tmp_path)).stdout)
    assert plan["sample"].startswith("run: config prompt.template")
    mine.write_text("{{ goal\n")
    run = solar("build", *words, cwd=tmp_path)
    assert (run.returncode, "the template is wrong: line" in run.stderr) == (2, True)
