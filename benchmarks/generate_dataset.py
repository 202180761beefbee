"""Generate a dataset of any size without a source, a screenshot worth looking at, or a policy.

The rows are random but lawful: labels and answers come from generate.py, and the product's own validity,
shaping and store do the rest. By default it is as large as the paper's data: 15,000 episodes, 94,000
steps, 8 answers each. Usage: python benchmarks/generate_dataset.py FOLDER [EPISODES]
"""

import hashlib
import struct
import sys
import time
import zlib
from pathlib import Path

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).parent))  # a benchmark run from anywhere

from generate import generate_labelled

from solar_rl import query, stats
from solar_rl.actions import POINT_ACTIONS
from solar_rl.columns import polars_schema
from solar_rl.config import (
    AdvantageConfig,
    DatasetConfig,
    ShapingConfig,
    SourceConfig,
    ValidityConfig,
)
from solar_rl.fingerprints import goal_words
from solar_rl.pipeline.checks import run_checks
from solar_rl.schema import SPLITS, TABLES
from solar_rl.shaping import shape
from solar_rl.store.card import render_card
from solar_rl.store.manifest import (
    Attribution,
    Manifest,
    code_versions,
    describe_files,
    library_versions,
    make_build_id,
    write_manifest,
    write_text,
)
from solar_rl.store.parquet import TableWriter
from solar_rl.validity import score

EPISODES, STEPS_AN_EPISODE = 15_000, 94 / 15
_SHARED_SCREENS = 50
_VOCABULARY, _COPIED = 3_000, 0.02
_GOALS = [
    "open the settings",
    "send a message",
    "set an alarm",
    "buy milk",
    "find a flight",
    "note this down",
]


def generate_frames(
    episodes: int = EPISODES, n: int = 8, seed: int = 0, shaping: ShapingConfig | None = None
) -> dict[str, pl.DataFrame]:
    """Draw every table as a frame sorted by key, all splits together."""
    rng = np.random.default_rng(seed)
    labelled = _whole_answers(generate_labelled(episodes, n, seed, steps=round(episodes * STEPS_AN_EPISODE)))
    scored = labelled.hstack(score(labelled, ValidityConfig()))
    shaped = shape(scored, shaping or ShapingConfig(), AdvantageConfig())
    steps = _steps(rng, labelled.filter(candidate_index=0))
    frames = {
        "episodes": _episodes(rng, labelled.filter(candidate_index=0, step_index=0)),
        "steps": steps,
        "images": _images(steps),
        "candidates": _candidates(rng, labelled),
        "rewards": shaped.rewards,
        "trajectories": shaped.trajectories,
    }
    return frames | {"preview": _preview(frames)}


def generate_dataset(
    folder: str | Path,
    episodes: int = EPISODES,
    n: int = 8,
    seed: int = 0,
    shaping: ShapingConfig | None = None,
) -> Path:
    """Write a generated dataset, complete with card and manifest, and return its folder."""
    frames = generate_frames(episodes, n, seed, shaping)
    write_tables(Path(folder), frames)
    return finish_dataset(Path(folder), seed, shaping)


def write_tables(folder: Path, frames: dict[str, pl.DataFrame]) -> None:
    """Write each table by split; a table without rows gets a train file."""
    split_of = frames["episodes"].select("episode_id", "split")
    shown = (
        frames["steps"]
        .join(split_of, on="episode_id")
        .select(pl.col("image_sha256").alias("sha256"), "split")
    )
    order = pl.col("split").replace_strict({name: i for i, name in enumerate(SPLITS)}, return_dtype=pl.Int8)
    first = shown.sort(order, maintain_order=True).unique("sha256", keep="first", maintain_order=True)
    for name, frame in frames.items():
        if name != "episodes":
            where = first if name == "images" else split_of
            frame = frame.join(where, on=where.columns[0], how="left", maintain_order="left")
        present = set(frame["split"].unique())
        for split in [s for s in SPLITS if s in present] or ["train"]:
            with TableWriter(folder, name, split) as writer:
                writer.write(frame.filter(pl.col("split") == split).select(TABLES[name].names))


def finish_dataset(folder: Path, seed: int = 0, shaping: ShapingConfig | None = None) -> Path:
    """Write what stands beside the tables, the manifest last."""
    config = DatasetConfig(
        name="generated",
        seed=seed,
        source=SourceConfig(builder="phone"),
        shaping=shaping or ShapingConfig(),
        description="Random but lawful rows, for benchmarks.",
    )
    write_text(folder / "views.sql", query.views_sql())
    write_text(folder / "rejects.jsonl", "")
    tables = {entry.path: entry for entry in describe_files(folder)}
    manifest = Manifest(
        name=config.name,
        version=config.version,
        build_id=make_build_id(config.digest(), []),
        config=config.model_dump(mode="json"),
        attribution=Attribution("generated", "cc0-1.0"),
        code=code_versions(),
        libraries=library_versions(),
        seeds={"build": seed},
        files=tuple(tables.values()),
    )
    with query.connect(folder, unfinished=True) as con:
        manifest = manifest.model_copy(update={"checks": run_checks(con, folder, config, None)})
        card = render_card(manifest, stats.headline(con))
    write_text(folder / "README.md", card)
    write_manifest(folder, manifest.model_copy(update={"files": tuple(describe_files(folder, tables))}))
    return folder


def _whole_answers(labelled: pl.DataFrame) -> pl.DataFrame:
    """Turn answers that lack an argument into answers that did not parse, as a parser does."""
    kind = pl.col("pred_action_type")
    lacking = (
        kind.is_null()
        | (kind.is_in([*POINT_ACTIONS, "drag"]) & pl.any_horizontal(pl.col("pred_x", "pred_y").is_null()))
        | ((kind == "scroll") & pl.col("pred_direction").is_null())
        | ((kind == "input_text") & pl.col("pred_text").is_null())
    )
    return labelled.with_columns(
        pl.when(~lacking).then(pl.col("^pred_.*$")),
        parse_error=pl.when(lacking).then(pl.lit("no whole action in the answer")),
    )


def _episodes(rng: np.random.Generator, first_steps: pl.DataFrame) -> pl.DataFrame:
    count = first_steps.height
    goals = _goals(rng, count)
    frame = first_steps.select("episode_id", "app", "ref_len").with_columns(
        pl.Series("goal", goals),
        pl.Series("split", rng.choice(SPLITS, count, p=[0.9, 0.02, 0.08])),
        source=pl.lit("generated"),
        platform=pl.lit("android"),
        license=pl.lit("cc0-1.0"),
        goal_words=pl.Series([goal_words(goal) for goal in goals], dtype=pl.List(pl.Int32)),
        screen_hash=pl.Series(_screen_hashes(rng, count)),
    )
    return _typed("episodes", frame)


def _goals(rng: np.random.Generator, count: int) -> list[str]:
    """Draw goals of 5 to 25 words, common ones often; one in fifty repeats another with a word changed."""
    weights = 1 / np.arange(10, 10 + _VOCABULARY)
    drawn = rng.choice(_VOCABULARY, (count, 20), p=weights / weights.sum())
    lengths = rng.integers(2, 21, count)
    starts = rng.choice(_GOALS, count)
    goals = []
    for number, (start, words, length) in enumerate(zip(starts, drawn, lengths, strict=True)):
        own = [*start.split(), *(f"w{word}" for word in words[:length])]
        if number and rng.random() < _COPIED:
            own = goals[rng.integers(number)].split()
            own[-1] = f"w{words[0]}"
        goals.append(" ".join(own))
    return goals


def _screen_hashes(rng: np.random.Generator, count: int) -> list[str]:
    """Draw perceptual hashes; one in fifty is another's with a bit flipped."""
    bits = rng.integers(0, 2**63, count, dtype=np.uint64)
    copied = rng.random(count) < _COPIED
    flipped = np.uint64(1) << rng.integers(0, 63, count, dtype=np.uint64)
    bits[copied] = bits[rng.integers(0, count, copied.sum())] ^ flipped[copied]
    return [f"{value:016x}" for value in bits]


def _steps(rng: np.random.Generator, labels: pl.DataFrame) -> pl.DataFrame:
    frame = labels.with_columns(
        pl.Series("image_sha256", _shown(rng, labels.height)),
        instruction=pl.format("{} now", "action_type"),
        screen_width=1080,
        screen_height=2400,
        screen_size=pl.lit("assumed"),
    )
    return _typed("steps", frame)


def _candidates(rng: np.random.Generator, labelled: pl.DataFrame) -> pl.DataFrame:
    """Give every answer a text, 20 tokens with their log-probs, and a seed."""
    said = [
        pl.col(name).cast(pl.String).fill_null("")
        for name in ("pred_action_type", "pred_x", "pred_y", "pred_text")
    ]
    shape_ = (labelled.height, 20)
    frame = labelled.with_columns(
        pl.Series("token_ids", rng.integers(0, 150_000, shape_, dtype=np.int32)).cast(pl.List(pl.Int32)),
        pl.Series("sampling_logprobs", -rng.exponential(0.3, shape_).astype(np.float32)).cast(
            pl.List(pl.Float32)
        ),
        completion=pl.concat_str([pl.lit("I will do this: "), *said], separator=" "),
        sampler_id=pl.lit("generated"),
        seed=pl.int_range(pl.len(), dtype=pl.Int64),
    )
    return _typed("candidates", frame)


def _shown(rng: np.random.Generator, steps: int) -> list[str]:
    """Draw the hash of the screenshot of each step: mostly its own, sometimes one of a few shared."""
    shared = rng.random(steps) < 0.03
    number = np.where(shared, rng.integers(0, _SHARED_SCREENS, steps), _SHARED_SCREENS + np.arange(steps))
    return [hashlib.sha256(_png(int(i))).hexdigest() for i in number]


def _images(steps: pl.DataFrame) -> pl.DataFrame:
    wanted = set(steps["image_sha256"])
    made = (
        (hashlib.sha256(data).hexdigest(), data) for data in map(_png, range(_SHARED_SCREENS + steps.height))
    )
    rows = sorted((sha, {"bytes": data, "path": None}, 1, 1) for sha, data in made if sha in wanted)
    return pl.DataFrame(rows, schema=polars_schema("images"), orient="row")


def _png(number: int) -> bytes:
    """Make a valid PNG of one black pixel that carries a number, so that no two are equal."""
    parts = (
        (b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)),
        (b"tEXt", b"number\0%d" % number),
        (b"IDAT", zlib.compress(b"\0\0", 1)),
        (b"IEND", b""),
    )
    chunks = (
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in parts
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def _preview(frames: dict[str, pl.DataFrame]) -> pl.DataFrame:
    step, path = ["episode_id", "step_index"], ["episode_id", "candidate_index"]
    rows = frames["rewards"].head(200)
    rows = rows.join(frames["episodes"].select("episode_id", "goal"), on="episode_id")
    rows = rows.join(frames["steps"].select(*step, "instruction", "image_sha256"), on=step)
    rows = rows.join(frames["images"].select("sha256", "image"), left_on="image_sha256", right_on="sha256")
    rows = rows.join(frames["trajectories"].select(*path, "trajectory_reward", "success"), on=path)
    candidate = pl.coalesce("pred_action_type", pl.lit("unparsable"))
    return _typed("preview", rows.with_columns(expert="action_type", candidate=candidate))


def _typed(table: str, frame: pl.DataFrame) -> pl.DataFrame:
    """Give a frame the table's columns, types and order; those that it lacks are null, or empty if they must be."""
    schema = polars_schema(table)
    empty = {c.name: [] if c.dtype.startswith("list") else 0 for c in TABLES[table].columns if not c.nullable}
    columns = [
        (pl.col(name) if name in frame.columns else pl.lit(empty.get(name)).alias(name)).cast(kind)
        for name, kind in schema.items()
    ]
    return frame.select(columns).sort(TABLES[table].key, maintain_order=True)


if __name__ == "__main__":
    started = time.perf_counter()
    count = int(sys.argv[2]) if len(sys.argv) > 2 else EPISODES
    print(generate_dataset(sys.argv[1], episodes=count), f"{time.perf_counter() - started:.1f} s")
