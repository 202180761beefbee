"""A small, complete dataset written by hand: the fixture of the tests of store, query, stats and validate.

Its rewards come from a plain-Python reading of docs/method.md (alignment ``segments``), apart from the
product's own shaping, so that both are held against the same laws.
"""

import io
import random
from pathlib import Path

import polars as pl
from PIL import Image, ImageDraw

from solar_rl.actions import Action, Box
from solar_rl.columns import candidates_frame, episodes_frame, polars_schema, steps_frame
from solar_rl.config import AdvantageConfig, ShapingConfig
from solar_rl.query import views_sql
from solar_rl.schema import SPLITS, TABLES, Candidate, Episode, Screenshot, Step
from solar_rl.store.card import Attribution, render_card
from solar_rl.store.fingerprint import schema_hashes
from solar_rl.store.manifest import (
    CheckEntry,
    Manifest,
    code_versions,
    describe_files,
    library_versions,
    make_build_id,
    write_manifest,
    write_text,
)
from solar_rl.store.parquet import TableWriter

N = 3
ACTIONS = (
    Action("click", x=0.5, y=0.25),
    Action("scroll", direction="down", x=0.5, y=0.8, x2=0.5, y2=0.2),
    Action("input_text", text="milk, eggs | bread"),
    Action("open_app", app_name="Notes"),
    Action("press", button="back"),
    Action("finished", status="complete"),
)
CONFIG = {
    "name": "small",
    "version": "1.0.0",
    "description": "A handmade dataset.",
    "license": "cc-by-4.0",
    "source": {"builder": "phone"},
    "prompt": {"format": "json", "level": "high", "observation": "image", "history": "expert"},
    "sampler": {"type": "scripted", "n": N, "temperature": 1.0},
    "validity": {"preset": "strict"},  # the scores are handmade: no rule stands behind them
    "shaping": ShapingConfig().model_dump(mode="json"),
    "advantage": AdvantageConfig().model_dump(mode="json"),
}


def screenshot(number: int) -> Screenshot:
    """Draw a small PNG; the number makes its bytes differ."""
    image = Image.new("RGB", (36, 80), (20 * number % 256, 90, 160))
    ImageDraw.Draw(image).rectangle((4, number % 60, 20, number % 60 + 8), fill="white")
    out = io.BytesIO()
    image.save(out, "PNG")
    return Screenshot(out.getvalue(), 36, 80)


def episode(number: int) -> Episode:
    """Make episode ``number``: 2 to 7 steps; every third is of validation or test."""
    length = 2 + number % 6
    steps = tuple(
        Step(
            index,
            ACTIONS[(number + index) % len(ACTIONS)] if index < length - 1 else ACTIONS[-1],
            1080,
            2400,
            instruction=f"step {index}" if number % 2 else None,
            # step 0 of every episode shows the same home screen, in all splits
            screenshot=screenshot(0 if index == 0 else 10 * number + index),
            target_box=Box(0.45, 0.2, 0.55, 0.3) if index == 0 else None,
            candidate_boxes=(Box(0.45, 0.2, 0.55, 0.3), Box(0, 0, 1, 1)) if index == 0 else (),
        )
        for index in range(length)
    )
    split = ("train", "train", "train", "validation", "train", "test")[number % 6]
    goal = f"buy milk {number % 7}"
    return Episode(
        f"e{number:03d}", "handmade", "android", goal, steps, split, ("shop", "notes")[number % 2], "mit"
    )


def score(number: int, step: int, candidate: int, rng: random.Random) -> float | None:
    """Draw a raw score: None for the one broken label, candidate 0 of every fourth episode always right."""
    if number == 2 and step == 1:
        return None
    if candidate == 0 and number % 4 == 0:
        return 1.0
    return rng.choice((1.0, 0.9, 0.7, 0.3, 0.0, 1.0))


def shape(scores: list[float | None]) -> tuple[list[dict], dict]:
    """Shape one trajectory by hand: alignment segments, weights 0.3, 0.3, 0.4."""
    n, success = len(scores), all(s is None or s >= 0.5 for s in scores)
    segments, current = [], []
    for index, value in enumerate(scores):
        current.append(index)
        if value is not None and value < 0.5:
            segments.append(current)
            current = []
    segments += [current] if current else []
    rows, target, first_return, first_mean = [], 0.0, None, None
    for number, members in enumerate(segments):
        scored = [scores[i] for i in members if scores[i] is not None]
        valid = [s for s in scored if s >= 0.5]
        broken = bool(scored) and scores[members[-1]] is not None and scores[members[-1]] < 0.5
        mean = sum(scored) / len(scored) if scored else None
        reached = len(members) - broken
        r_g = None if mean is None else 0.3 * mean + 0.3 * min(1, reached / n) + 0.4 * success
        if number == 0:
            first_return, first_mean = r_g, mean
        gap = r_g - sum(valid) / len(valid) if valid else None
        target += len(valid) * r_g if valid else 0.0
        for i in members:
            s = scores[i]
            if s is None:
                rows.append({"position": "prefix", "segment_index": number})
                continue
            ok = s >= 0.5
            base = s if ok else s - 1
            target += 0.0 if ok else base
            share = gap if ok else 0.0
            rows.append(
                {
                    "position": "prefix" if ok else "breakdown",
                    "segment_index": number,
                    "base_reward": base,
                    "gap_share": share,
                    "reward": base + share,
                }
            )
    failure = next((i for i, s in enumerate(scores) if s is not None and s < 0.5), None)
    trajectory = {
        "ref_len": n,
        "first_failure_step": failure,
        "valid_prefix_len": n if failure is None else failure,
        "success": success,
        "mean_raw_score": first_mean,
        "trajectory_reward": first_return,
        "target_reward": target,
        "reward_sum": sum(row.get("reward", 0.0) for row in rows),
        "alignment": "aligned" if any(s is not None and s >= 0.5 for s in scores) else "no_prefix",
    }
    return rows, trajectory


def tables(episodes: int = 18, seed: int = 0) -> dict[str, pl.DataFrame]:
    """Make every table but ``images`` and ``preview`` as frames, all splits together."""
    rng = random.Random(seed)
    records = [episode(i) for i in range(episodes)]
    candidates, rewards, trajectories = [], [], []
    for number, record in enumerate(records):
        for k in range(N):
            scores = [score(number, t, k, rng) for t in range(record.ref_len)]
            rows, trajectory = shape(scores)
            for step, s, row in zip(record.steps, scores, rows, strict=True):
                key = {"episode_id": record.episode_id, "step_index": step.step_index, "candidate_index": k}
                unparsed = s == 0.0 and rng.random() < 0.5
                candidates.append(
                    Candidate(
                        **key,
                        completion="??" if unparsed else f'{{"action": "{step.action.action_type}"}} {s}',
                        sampler_id="handmade",
                        seed=64 * number + k,
                        action=None if unparsed else step.action,
                        parse_error="no JSON" if unparsed else None,
                        token_ids=(1, 2, 3),
                        sampling_logprobs=(-0.5, -0.25, -0.125),
                    )
                )
                bad = s is not None and s < 0.5
                rewards.append(
                    key
                    | row
                    | {
                        "app": record.app,
                        "action_type": step.action.action_type,
                        "pred_action_type": None if unparsed else step.action.action_type,
                        "raw_score": s,
                        "valid": None if s is None else s >= 0.5,
                        "unscored_reason": "label off-screen" if s is None else None,
                        "rule": None if s is None else step.action.action_type,
                        "failure_reason": "unparsable" if unparsed else "too far" if bad else None,
                    }
                )
            failed = trajectory["first_failure_step"]
            at = None if failed is None else rewards[len(rewards) - record.ref_len + failed]
            trajectories.append(
                {"episode_id": record.episode_id, "candidate_index": k}
                | trajectory
                | {
                    "failure_action_type": at and at["action_type"],
                    "failure_app": at and at["app"],
                    "failure_reason": at and at["failure_reason"],
                }
            )
    reward = pl.DataFrame(rewards, schema=polars_schema("rewards")).sort(TABLES["rewards"].key)
    mean = pl.col("reward").mean().over("episode_id", "step_index")
    spread = pl.col("reward").max().over("episode_id", "step_index") - pl.col("reward").min().over(
        "episode_id", "step_index"
    )
    in_play = pl.col("reward").is_not_null()
    reward = reward.with_columns(
        advantage=pl.when(in_play & (spread > 1e-12)).then(pl.col("reward") - mean).when(in_play).then(0.0)
    )
    return {
        "episodes": episodes_frame(records),
        "steps": steps_frame(records),
        "images": images_frame(records),
        "candidates": candidates_frame(candidates),
        "rewards": reward.select(TABLES["rewards"].names),
        "trajectories": pl.DataFrame(trajectories, schema=polars_schema("trajectories")),
    }


def images_frame(records: list[Episode]) -> pl.DataFrame:
    """Keep every distinct screenshot once, with the first split that shows it."""
    found = {}
    for record in sorted(records, key=lambda r: SPLITS.index(r.split)):
        for step in record.steps:
            shot = step.screenshot
            found.setdefault(
                shot.sha256, (shot.sha256, {"bytes": shot.data, "path": None}, 36, 80, record.split)
            )
    schema = polars_schema("images") | {"split": pl.String}
    return pl.DataFrame(list(found.values()), schema=schema, orient="row").sort("sha256")


def preview_frame(frames: dict[str, pl.DataFrame]) -> pl.DataFrame:
    """Make the preview's rows from the other tables."""
    rows = (
        frames["rewards"]
        .join(frames["episodes"].select("episode_id", "goal"), on="episode_id")
        .join(
            frames["steps"].select("episode_id", "step_index", "instruction", "image_sha256"),
            on=["episode_id", "step_index"],
        )
        .join(frames["images"].select("sha256", "image"), left_on="image_sha256", right_on="sha256")
        .join(
            frames["trajectories"].select("episode_id", "candidate_index", "trajectory_reward", "success"),
            on=["episode_id", "candidate_index"],
        )
        .with_columns(expert=pl.col("action_type"), candidate=pl.col("pred_action_type").fill_null("??"))
    )
    return rows.select(TABLES["preview"].names).sort(TABLES["preview"].key)


def write_tables(folder: Path, frames: dict[str, pl.DataFrame]) -> None:
    """Write each table by split, train first; a table without rows still gets a train file."""
    split_of = frames["episodes"].select("episode_id", "split")
    for name in TABLES:
        frame = frames[name]
        by_split = (
            frame.with_columns(frame["split"])
            if "split" in frame.columns
            else frame.join(split_of, on="episode_id", how="left")
        )
        by_split = by_split.sort(TABLES[name].key)
        splits = [s for s in SPLITS if (by_split["split"] == s).any()] or ["train"]
        for split in splits:
            with TableWriter(folder, name, split) as writer:
                writer.write(by_split.filter(pl.col("split") == split).select(TABLES[name].names))


def write_small_dataset(folder: Path, frames: dict[str, pl.DataFrame] | None = None) -> Path:
    """Write a whole dataset folder as a build does, the manifest last."""
    frames = frames or tables()
    frames = {**frames, "preview": frames.get("preview", preview_frame(frames))}
    write_tables(folder, frames)
    write_text(folder / "views.sql", views_sql())
    write_text(folder / "rejects.jsonl", "")
    manifest = Manifest(
        name="small",
        version="1.0.0",
        build_id=make_build_id("digest", []),
        config=CONFIG,
        code=code_versions(),
        libraries=library_versions(),
        seeds={"build": 0},
        counts={name: frame.height for name, frame in frames.items()},
        schemas=schema_hashes(),
        checks=(CheckEntry(name="keys", passed=True),),
        files=tuple(describe_files(folder)),
    )
    source = Attribution("handmade", "mit", "https://example.org", "@misc{handmade}")
    write_text(folder / "README.md", render_card(manifest, {"episodes": 18, "validity": 0.71234}, {}, source))
    write_manifest(folder, manifest.model_copy(update={"files": tuple(describe_files(folder))}))
    return folder
