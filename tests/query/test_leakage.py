"""Look-alikes across splits: what the search finds is what comparing every two episodes finds."""

import io
import random
from itertools import product

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lawful_dataset import preview_frame, screenshot, tables, write_small_dataset
from PIL import Image, ImageDraw

from solar_rl import query, stats
from solar_rl.actions import Action
from solar_rl.columns import episodes_frame
from solar_rl.fingerprints import difference_hash, goal_words, screen_hash
from solar_rl.schema import SPLITS, Episode, Screenshot, Step
from solar_rl.stats.leakage import ALIKE_BITS, ALIKE_GOALS, BARE_BITS, FEW_EPISODES

PAIRS = "Pairs across splits that are most alike (at most 50)"
REASONS = "Held-out episodes that an earlier split resembles"
WORDS = [
    "open",
    "mail",
    "search",
    "shoes",
    "red",
    "blue",
    "size",
    "shop",
    "cart",
    "pay",
    "alarm",
    "seven",
    "monday",
    "note",
    "milk",
]


def asked(folder, frames):
    frames |= {"preview": preview_frame(frames)}
    with query.connect(write_small_dataset(folder, frames)) as con:
        return stats.compute(con, "leakage")


def planted(seed: int, count: int = 60) -> dict[str, pl.DataFrame]:
    """Return a small dataset with random goals, hashes and shared screenshots, many of them nearly equal."""
    rng = random.Random(seed)
    frames = tables(count)
    goals, hashes = [], []
    for number in range(count):
        goal = (
            rng.choice(goals).split()
            if goals and rng.random() < 0.5
            else rng.sample(WORDS, rng.randint(1, 9))
        )
        goal[rng.randrange(len(goal))] = rng.choice(WORDS)
        goals.append(" ".join(goal))
        bits = int(rng.choice(hashes), 16) if hashes and rng.random() < 0.5 else rng.getrandbits(64)
        for _ in range(rng.randint(0, 4)):
            bits ^= 1 << rng.randrange(64)
        hashes.append(f"{rng.choice([bits, 0, 7]) if number % 9 == 0 else bits:016x}")
    hashes = [None if rng.random() < 0.1 else each for each in hashes]
    frames["episodes"] = frames["episodes"].with_columns(
        pl.Series("goal", goals),
        pl.Series("split", rng.choices(SPLITS, [6, 2, 2], k=count)),
        pl.Series("goal_words", [goal_words(goal) for goal in goals], dtype=pl.List(pl.Int32)),
        pl.Series("screen_hash", hashes, dtype=pl.String),
    )
    return frames


def resembled(frames: dict[str, pl.DataFrame]) -> dict[str, set[str]]:
    """Compare every held-out episode with every earlier one, in plain Python: reason to episodes."""
    rows = {row["episode_id"]: row for row in frames["episodes"].iter_rows(named=True)}
    shows: dict[str, set[str]] = {}
    for episode, sha in frames["steps"].select("episode_id", "image_sha256").iter_rows():
        shows.setdefault(sha, set()).add(episode)
    telling = [episodes for episodes in shows.values() if len(episodes) <= FEW_EPISODES]
    found: dict[str, set[str]] = {"goal": set(), "screen": set(), "screenshot": set()}
    for a, b in product(rows.values(), rows.values()):
        if SPLITS.index(a["split"]) >= SPLITS.index(b["split"]):
            continue
        one, two = set(a["goal"].split()), set(b["goal"].split())
        if len(one & two) / len(one | two) >= ALIKE_GOALS:
            found["goal"].add(b["episode_id"])
        bits = [int(row["screen_hash"] or "0", 16) for row in (a, b)]
        if min(map(int.bit_count, bits)) >= BARE_BITS and (bits[0] ^ bits[1]).bit_count() <= ALIKE_BITS:
            found["screen"].add(b["episode_id"])
        if any({a["episode_id"], b["episode_id"]} <= episodes for episodes in telling):
            found["screenshot"].add(b["episode_id"])
    return found


@pytest.mark.parametrize("seed", range(12))
def test_no_look_alike_is_missed_or_invented(tmp_path, seed):
    frames = planted(seed)
    answer, wanted = asked(tmp_path / "data", frames), resembled(frames)
    counted = answer[REASONS].group_by("why").agg(pl.col("episodes").sum())
    counts = dict(counted.iter_rows())
    assert counts["goal alike"] == len(wanted["goal"]) > 0
    assert counts["middle screen alike"] == len(wanted["screen"]) > 0
    assert counts[f"a screenshot that at most {FEW_EPISODES} show"] == len(wanted["screenshot"])
    assert counts["any of these"] == len(set.union(*wanted.values()))


def test_the_worst_pairs_come_first_with_their_evidence(tmp_path):
    frames = tables(12)
    numbers = pl.int_range(pl.len())
    goals = [f"a goal of its own number {'x' * n}" for n in range(12)]
    goals[0], goals[5], goals[7] = (
        "Buy red shoes in the shop",
        "in the SHOP: buy red shoes!",
        "buy red shoes in the zoo",
    )
    hashes = ["5555aaaa5555aaaa" if n in (0, 5) else f"{3**n << n:016x}" for n in range(12)]
    frames["episodes"] = frames["episodes"].with_columns(
        pl.Series("goal", goals),
        pl.Series("goal_words", [goal_words(goal) for goal in goals], dtype=pl.List(pl.Int32)),
        pl.Series("screen_hash", hashes),
        split=pl.when(numbers.is_in([5, 7])).then(pl.lit("test")).otherwise(pl.lit("train")),
    )
    shared = frames["steps"].filter(episode_id="e000")["image_sha256"].to_list()[-1]
    third = (pl.col("episode_id") == "e007") & (pl.col("step_index") == 1)
    frames["steps"] = frames["steps"].with_columns(
        image_sha256=pl.when(third).then(pl.lit(shared)).otherwise("image_sha256")
    )
    answer = asked(tmp_path / "data", frames)
    first, second = answer[PAIRS].head(2).to_dicts()
    assert (first["episode"], first["resembles"], first["goal_similarity"], first["screen_bits_off"]) == (
        "e005",
        "e000",
        1,
        0,
    )
    assert (second["episode"], second["resembles"], second["shared_screenshots"]) == ("e007", "e000", 1)
    assert second["goal_similarity"] == pytest.approx(5 / 7)
    assert (first["goal"], first["its_goal"]) == (goals[5], goals[0])
    assert answer["Screenshots in more than one split"]["steps"].max() > 1


@pytest.mark.parametrize("hashed", [0, 2])
def test_screens_are_compared_of_those_episodes_alone_that_have_a_hash(tmp_path, hashed):
    frames = tables(6)
    hashes = ["5555aaaa5555aaaa"] * hashed + [None] * (6 - hashed)
    frames["episodes"] = frames["episodes"].with_columns(
        pl.Series("screen_hash", hashes, dtype=pl.String),
        pl.Series("split", ["train", "test", "test", "test", "train", "train"]),
    )
    rows = {row["why"]: row for row in asked(tmp_path / "data", frames)[REASONS].iter_rows(named=True)}
    assert rows["goal alike"]["of"] == rows["any of these"]["of"] == 3
    screens = rows["middle screen alike"]
    expected = (1, 1, 1.0) if hashed else (0, 0, None)
    assert (screens["episodes"], screens["of"], screens["share"]) == expected


def test_one_split_alone_leaks_nowhere(tmp_path):
    frames = tables(6)
    frames["episodes"] = frames["episodes"].with_columns(split=pl.lit("train"))
    answer = asked(tmp_path / "data", frames)
    assert answer[REASONS].is_empty() and answer[PAIRS].is_empty()
    assert answer["What occurs in more than one split"]["in_several"].sum() == 0


@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=9))
def test_words_count_once_whatever_their_order_case_and_punctuation(words):
    goal = " ".join(words)
    assert goal_words(goal) == goal_words(f"{', '.join(reversed(words)).upper()}!")
    assert len(goal_words(goal)) == len(set(words)) and goal_words(goal) == sorted(goal_words(goal))


def drawn(size=(270, 600), *, at=0, mode="RGB", kind="PNG"):
    image = Image.new("RGB", (270, 600), "white")
    pen = ImageDraw.Draw(image)
    for row in range(8):
        left = 20 + 25 * (row * 5 % 8)
        pen.rectangle((left, 75 * row + 10 + at, left + 50, 75 * row + 60 + at), fill=(30 * row, 90, 160))
    data = io.BytesIO()
    image.resize(size).convert(mode).save(data, kind)
    return data.getvalue()


def bits_off(one: bytes, two: bytes) -> int:
    return (int(difference_hash(one), 16) ^ int(difference_hash(two), 16)).bit_count()


@pytest.mark.parametrize(
    "other", [drawn((540, 1200)), drawn((135, 300)), drawn(kind="JPEG"), drawn(mode="RGBA"), drawn(at=2)]
)
def test_the_hash_of_a_screen_hardly_changes_with_size_format_and_a_few_pixels(other):
    assert bits_off(drawn(), other) <= ALIKE_BITS


def test_other_screens_have_other_hashes_and_a_blank_one_has_none():
    assert bits_off(drawn(), drawn(at=-60)) > 3 * ALIKE_BITS
    blank = io.BytesIO()
    Image.new("P", (90, 160)).save(blank, "PNG")
    assert difference_hash(blank.getvalue()) == "0" * 16


@settings(max_examples=20)
@given(st.integers(0, 6))
def test_the_middle_screen_is_hashed(count):
    shots = [screenshot(number) for number in range(count)]
    steps = tuple(Step(i, Action("wait"), 36, 80, screenshot=shot) for i, shot in enumerate(shots))
    episode = Episode("e", "s", "android", "wait", (*steps, Step(count, Action("wait"), 36, 80)))
    expected = difference_hash(shots[(count - 1) // 2].data) if count else None
    assert screen_hash(episode) == expected
    assert episodes_frame([episode])["screen_hash"].to_list() == [None]
    assert episodes_frame([episode], screens=True)["screen_hash"].to_list() == [expected]


def test_a_screen_that_cannot_be_decoded_has_no_hash():
    step = Step(0, Action("wait"), 9, 9, screenshot=Screenshot(b"\x89PNG\r\n\x1a\n", 9, 9))
    assert screen_hash(Episode("e", "s", "android", "wait", (step,))) is None
