"""Generate a dataset of any size without a source, a screenshot worth looking at, or a policy.

The rows are random but lawful: labels and answers are drawn, and the product's own validity and shaping
do the rest. By default it is as large as the paper's data: 15,000 episodes, about 94,000 steps, 8 answers
each. Usage: python benchmarks/generate_dataset.py FOLDER [EPISODES]
"""

import hashlib
import struct
import sys
import time
import zlib
from pathlib import Path

import numpy as np
import polars as pl

from solar_rl import query, stats
from solar_rl.columns import label_columns, polars_schema
from solar_rl.config import AdvantageConfig, DatasetConfig, ShapingConfig, SourceConfig, ValidityConfig
from solar_rl.schema import SPLITS, TABLES
from solar_rl.shaping import shape
from solar_rl.store.card import Attribution, render_card
from solar_rl.store.manifest import (
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

APPS = np.array([f"app {i:03d}" for i in range(120)])
# shares of the action types among the steps before the last; roughly those of phone demonstrations
TYPES = {"click": 0.62, "scroll": 0.13, "input_text": 0.07, "open_app": 0.07, "wait": 0.07, "press": 0.04}
ERROR_RATES = {
    "click": 0.28, "scroll": 0.25, "input_text": 0.35, "open_app": 0.15,
    "wait": 0.5, "press": 0.2, "finished": 0.1,
}  # fmt: skip
WORDS = np.array(
    [
        "add",
        "open",
        "the",
        "new",
        "note",
        "alarm",
        "for",
        "milk",
        "eggs",
        "seven",
        "friday",
        "call",
        "settings",
        "bright",
        "dark",
    ]
)
DIRECTIONS = np.array(["up", "down", "left", "right"])
BUTTONS = np.array(["back", "home"])
SCREEN = [0.0, 0.0, 1.0, 1.0]


def generate_frames(
    episodes: int = 15_000, n: int = 8, seed: int = 0, shaping: ShapingConfig | None = None
) -> dict[str, pl.DataFrame]:
    """Draw every table as a frame sorted by key, all splits together."""
    rng = np.random.default_rng(seed)
    records = _episodes(rng, episodes)
    steps = _steps(rng, records)
    candidates = _candidates(rng, steps, n)
    labelled = label_columns(candidates, steps, records)
    scored = labelled.hstack(score(labelled, ValidityConfig()))
    shaped = shape(scored, shaping or ShapingConfig(), AdvantageConfig())
    frames = {
        "episodes": records,
        "steps": steps,
        "images": _images(steps),
        "candidates": candidates,
        "rewards": shaped.rewards,
        "trajectories": shaped.trajectories,
    }
    return frames | {"preview": _preview(frames)}


def generate_dataset(
    folder: str | Path,
    episodes: int = 15_000,
    n: int = 8,
    seed: int = 0,
    shaping: ShapingConfig | None = None,
) -> Path:
    """Write a generated dataset, complete with card and manifest, and return its folder."""
    folder = Path(folder)
    frames = generate_frames(episodes, n, seed, shaping)
    write_tables(folder, frames)
    config = DatasetConfig(
        name="generated",
        seed=seed,
        source=SourceConfig(builder="phone"),
        shaping=shaping or ShapingConfig(),
        description="Random but lawful rows, for benchmarks.",
    )
    write_text(folder / "views.sql", query.views_sql())
    write_text(folder / "rejects.jsonl", "")
    manifest = Manifest(
        name=config.name,
        version=config.version,
        build_id=make_build_id(config.digest(), []),
        config=config.model_dump(mode="json"),
        code=code_versions(),
        libraries=library_versions(),
        seeds={"build": seed},
        counts={name: frame.height for name, frame in frames.items()},
        files=tuple(describe_files(folder)),
    )
    with query.connect(folder, unfinished=True) as con:
        card = render_card(manifest, stats.headline(con), {}, Attribution("generated", "cc0-1.0"))
    known = {entry.path: entry for entry in manifest.files}
    write_text(folder / "README.md", card)
    write_manifest(folder, manifest.model_copy(update={"files": tuple(describe_files(folder, known))}))
    return folder


def write_tables(folder: Path, frames: dict[str, pl.DataFrame]) -> None:
    """Write each table by split; a table without rows gets a train file."""
    split_of = frames["episodes"].select("episode_id", "split")
    shown = (
        frames["steps"]
        .join(split_of, on="episode_id")
        .select(pl.col("image_sha256").alias("sha256"), "split")
    )
    order = pl.col("split").replace_strict({name: i for i, name in enumerate(SPLITS)}, return_dtype=pl.Int8)
    first = shown.sort(order).unique("sha256", keep="first", maintain_order=True)
    for name, frame in frames.items():
        if name != "episodes":
            where = first if name == "images" else split_of
            frame = frame.join(where, on=where.columns[0], how="left", maintain_order="left")
        present = set(frame["split"].unique())
        for split in [s for s in SPLITS if s in present] or ["train"]:
            with TableWriter(folder, name, split) as writer:
                writer.write(frame.filter(pl.col("split") == split).select(TABLES[name].names))


def _episodes(rng: np.random.Generator, count: int) -> pl.DataFrame:
    frame = pl.DataFrame(
        {
            "episode_id": [f"episode-{i:06d}" for i in range(count)],
            "source": "generated",
            "platform": "android",
            "goal": [" ".join(words) for words in rng.choice(WORDS, (count, 7))],
            "app": rng.choice(APPS, count),
            "ref_len": 1 + rng.negative_binomial(4, 4 / (4 + 5.27), count),
            "split": rng.choice(SPLITS, count, p=[0.9, 0.02, 0.08]),
            "license": "cc0-1.0",
        }
    )
    return _typed("episodes", frame)


def _steps(rng: np.random.Generator, records: pl.DataFrame) -> pl.DataFrame:
    lengths = records["ref_len"].to_numpy()
    total, ends = int(lengths.sum()), np.cumsum(lengths)
    kind = rng.choice(list(TYPES), total, p=list(TYPES.values())).astype("<U10")
    kind[ends - 1] = "finished"
    x, y = rng.random(total), rng.random(total)
    half = 0.01 + 0.06 * rng.random(total)
    boxes = np.stack([x - half, y - half / 2, x + half, y + half / 2], axis=1).clip(0, 1).tolist()
    click = kind == "click"
    point = click | (kind == "scroll")
    frame = pl.DataFrame(
        {
            "episode_id": np.repeat(records["episode_id"].to_numpy(), lengths),
            "step_index": np.arange(total) - np.repeat(ends - lengths, lengths),
            "instruction": _phrases(rng, total),
            "image_sha256": _shown(rng, total),
            "action_type": kind,
            "x": _only(point, x),
            "y": _only(point, y),
            "direction": _only(kind == "scroll", rng.choice(DIRECTIONS, total, p=[0.2, 0.6, 0.1, 0.1])),
            "text": _only(kind == "input_text", _phrases(rng, total)),
            "app_name": _only(kind == "open_app", rng.choice(APPS, total)),
            "button": _only(kind == "press", rng.choice(BUTTONS, total)),
            "status": _only(kind == "finished", np.full(total, "complete")),
            "target_box": [box if is_click else None for box, is_click in zip(boxes, click, strict=True)],
            "candidate_boxes": [
                [box, SCREEN] if is_click else [] for box, is_click in zip(boxes, click, strict=True)
            ],
            "app": np.repeat(records["app"].to_numpy(), lengths),
        }
    )
    constant = {"screen_width": 1080, "screen_height": 2400, "screen_size": "assumed"}
    return _typed("steps", frame.with_columns(**{name: pl.lit(value) for name, value in constant.items()}))


def _candidates(rng: np.random.Generator, steps: pl.DataFrame, n: int) -> pl.DataFrame:
    """Answer each step n times: the label with a little noise, or a mistake that fits its action type."""
    asked = steps[np.repeat(np.arange(steps.height), n)]
    total = asked.height
    kind = asked["action_type"].to_numpy().astype("<U10")
    rate = asked["action_type"].replace_strict(ERROR_RATES, return_dtype=pl.Float64).to_numpy()
    wrong = rng.random(total) < rate
    other_type = wrong & (rng.random(total) < 0.3)
    unparsed = wrong & ~other_type & (rng.random(total) < 0.05)
    answered = np.where(other_type, rng.choice(list(TYPES), total), kind)
    point, text = np.isin(answered, ["click", "scroll"]), answered == "input_text"
    spread = np.where(wrong, 0.2, 0.008)
    place = {
        name: np.clip(asked[name].fill_null(0.5).to_numpy() + spread * rng.standard_normal(total), 0, 1)
        for name in ("x", "y")
    }
    swap = wrong | other_type
    words = np.where(swap, _phrases(rng, total), asked["text"].fill_null("").to_numpy().astype(str))
    said = {
        "pred_action_type": answered,
        "pred_x": _only(point, place["x"]),
        "pred_y": _only(point, place["y"]),
        "pred_direction": _only(answered == "scroll", _mistake(rng, asked["direction"], swap, DIRECTIONS)),
        "pred_text": _only(text, words),
        "pred_app_name": _only(answered == "open_app", _mistake(rng, asked["app_name"], swap, APPS)),
        "pred_button": _only(answered == "press", _mistake(rng, asked["button"], swap, BUTTONS)),
        "pred_status": _only(answered == "finished", np.where(swap, "infeasible", "complete")),
    }
    frame = asked.select("episode_id", "step_index").with_columns(
        pl.Series("candidate_index", np.tile(np.arange(n), steps.height)),
        pl.Series("parse_error", _only(unparsed, np.full(total, "no JSON object in the answer"))),
        *(pl.when(~pl.Series(unparsed)).then(pl.Series(values)).alias(name) for name, values in said.items()),
    )
    frame = frame.with_columns(
        completion=pl.when(pl.col("parse_error").is_null())
        .then(pl.struct(pl.col("^pred_.*$")).struct.json_encode().str.replace_all(r'"pred_(\w+)":null,?', ""))
        .otherwise(pl.lit("I would tap the button.")),
        sampler_id=pl.lit("generated"),
        seed=64 * pl.int_range(pl.len(), dtype=pl.Int64) // n + pl.col("candidate_index"),
        **_tokens(rng, total),
    )
    return _typed("candidates", frame)


def _tokens(rng: np.random.Generator, rows: int) -> dict[str, pl.Series]:
    """Draw 20 token ids and log-probs for each row."""
    ids = rng.integers(0, 150_000, (rows, 20), dtype=np.int32)
    logprobs = -rng.exponential(0.3, (rows, 20)).astype(np.float32)
    return {
        "token_ids": pl.Series(ids).cast(pl.List(pl.Int32)),
        "sampling_logprobs": pl.Series(logprobs).cast(pl.List(pl.Float32)),
    }


def _shown(rng: np.random.Generator, steps: int) -> list[str]:
    """Draw the hash of the screenshot of each step: mostly its own, sometimes one of 50 shared."""
    shared = rng.random(steps) < 0.03
    number = np.where(shared, rng.integers(0, 50, steps), 50 + np.arange(steps))
    return [hashlib.sha256(_png(int(i))).hexdigest() for i in number]


def _images(steps: pl.DataFrame) -> pl.DataFrame:
    wanted = set(steps["image_sha256"])
    made = ((hashlib.sha256(data).hexdigest(), data) for data in map(_png, range(50 + steps.height)))
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
    """Give a frame the table's columns, types and order; columns that it lacks are null."""
    schema = polars_schema(table)
    columns = [
        (pl.col(name) if name in frame.columns else pl.lit(None).alias(name)).cast(kind)
        for name, kind in schema.items()
    ]
    return frame.select(columns).sort(TABLES[table].key, maintain_order=True)


def _only(mask: np.ndarray, values: np.ndarray) -> pl.Series:
    """Keep the values where the mask is true; null elsewhere."""
    return pl.select(pl.when(pl.Series(mask)).then(pl.Series(values))).to_series()


def _mistake(rng: np.random.Generator, label: pl.Series, wrong: np.ndarray, choices: np.ndarray) -> pl.Series:
    """Repeat the label, or draw anything where the answer is wrong or there is no label."""
    drawn = pl.Series(rng.choice(choices, len(wrong)))
    return pl.select(pl.when(pl.Series(wrong) | label.is_null()).then(drawn).otherwise(label)).to_series()


def _phrases(rng: np.random.Generator, count: int) -> np.ndarray:
    two = rng.choice(WORDS, (count, 2))
    return np.char.add(np.char.add(two[:, 0], " "), two[:, 1])


if __name__ == "__main__":
    started = time.perf_counter()
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 15_000
    print(generate_dataset(sys.argv[1], episodes=count), f"{time.perf_counter() - started:.1f} s")
