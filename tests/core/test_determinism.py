"""The same bits whatever the number of threads, and from eight shards as from one."""

import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

from generate import generate_labelled, generate_scored  # noqa: E402

from solar_rl.config import AdvantageConfig, ShapingConfig, ValidityConfig  # noqa: E402
from solar_rl.shaping import shape  # noqa: E402
from solar_rl.validity import score  # noqa: E402

DIGEST = """
import hashlib, io
from generate import generate_scored
from solar_rl.advantage import credit
from solar_rl.config import AdvantageConfig, ShapingConfig
from solar_rl.shaping import shape
frames = [scored := generate_scored(300, 8, 7)]
for alignment in ("paper", "prefix_mean", "segments"):
    frames += (shaped := shape(scored, ShapingConfig(alignment=alignment), AdvantageConfig(scale="std")))
key = ["episode_id", "candidate_index"]
facts = shaped.trajectories.select(*key, "ref_len", "success", "trajectory_reward", "first_failure_step")
joined = shaped.rewards.join(facts, on=key, how="left", maintain_order="left")
frames += [credit(joined, name, "std") for name in ("solar", "step_local", "sparse_rtraj", "ui_s1")]
digest = hashlib.sha256()
for frame in frames:
    frame.write_ipc(buffer := io.BytesIO())
    digest.update(buffer.getvalue())
print(digest.hexdigest())
"""


def test_threads_make_no_difference():
    digests = set()
    for threads in ("1", "2", "8"):
        path = os.pathsep.join([str(ROOT), str(ROOT / "benchmarks")])
        env = os.environ | {"POLARS_MAX_THREADS": threads, "PYTHONPATH": path}
        run = subprocess.run(
            [sys.executable, "-c", DIGEST], env=env, capture_output=True, text=True, check=True
        )
        digests.add(run.stdout)
    assert len(digests) == 1


def in_shards(frame, n):
    """Cut a table into n shards of whole episodes."""
    shard = pl.col("episode_id").rle_id() * n // frame["episode_id"].n_unique()
    return frame.with_columns(shard=shard).partition_by("shard", maintain_order=True, include_key=False)


def test_eight_shards_score_as_one():
    labelled = generate_labelled(120, 8, 3)
    shards = [score(part, ValidityConfig()) for part in in_shards(labelled, 8)]
    assert len(shards) == 8
    assert pl.concat(shards).equals(score(labelled, ValidityConfig()))


@pytest.mark.parametrize("alignment", ["off", "paper", "prefix_mean", "segments"])
def test_eight_shards_shape_as_one(alignment):
    scored = generate_scored(120, 8, 3)
    config, plain = ShapingConfig(alignment=alignment), AdvantageConfig()
    shards = [shape(part, config, plain) for part in in_shards(scored, 8)]
    assert pl.concat([s.rewards for s in shards]).equals(shape(scored, config, plain).rewards)
    assert pl.concat([s.trajectories for s in shards]).equals(shape(scored, config, plain).trajectories)


def test_the_generator_repeats_and_reaches_the_size_asked_for():
    one = generate_labelled(50, 3, 1, steps=400)
    assert one.equals(generate_labelled(50, 3, 1, steps=400)) and one.height == 1200
    assert one.sort("episode_id", "step_index", "candidate_index").equals(one)
