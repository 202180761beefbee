"""Which held-out episodes resemble one of an earlier split, and why: train comes before validation and test.

Goals are alike when they share at least 80 % of their different words (Jaccard), whatever the order, case and
punctuation. Screens are alike when the perceptual hashes of the two middle screens differ in at most 3 of 64 bits;
a screen with fewer than 8 bits set is too bare to tell. A screenshot that at most 4 episodes show points to the
episodes that show it; one that many show, such as a home screen, points to nobody.

Pairs are found without comparing every two episodes, and none is missed: a goal that is that much alike has one of
the other's few rarest words, and hashes that differ in 3 bits are equal in one of their four quarters. Of several
earlier episodes with the same words, or the same screen, the first stands for all. Source: prefix filtering (Bayardo et
al. 2007) and the pigeonhole principle; the thresholds are ours.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from solar_rl.query import cursor_for
from solar_rl.schema import SPLITS
from solar_rl.stats.question import answer

if TYPE_CHECKING:
    import polars as pl

    from solar_rl.query import Connection

ALIKE_GOALS = 0.8
"""Share of common words from which goals are alike."""
ALIKE_BITS = 3
"""Bits by which the hashes of alike screens differ at most."""
BARE_BITS = 8
"""A hash with fewer bits set is of a screen too bare to tell."""
FEW_EPISODES = 4
"""A screenshot that more episodes show points to nobody."""
SHOWN_ROWS = 50
"""Rows of the tables that list examples."""

# Alike goals differ in at most this share of both lengths: |A xor B| <= (1 - s) / (1 + s) * (|A| + |B|). A word's place
# in a mask of 64 bits shows most pairs to differ in more, before any list is compared.
_DIFFERENCE = round((1 - ALIKE_GOALS) / (1 + ALIKE_GOALS), 9) + 1e-9

_ALIKE = f"""
WITH known AS MATERIALIZED (
  SELECT episode_id, list_position({list(SPLITS)}, split)::TINYINT AS rank, goal_words AS words,
    ('0x' || screen_hash)::UBIGINT AS screen
  FROM episodes
), goals AS MATERIALIZED (
  SELECT row_number() OVER () AS id, *, len(words)::INT AS n,
    list_bit_or(list_transform(words, lambda w: 1::UBIGINT << (w & 63)::UBIGINT)) AS mask
  FROM (SELECT rank, words, min(episode_id) AS first, list(episode_id) AS ids FROM known GROUP BY rank, words)
  WHERE len(words) > 0
), spelled AS MATERIALIZED (
  SELECT id, rank, n, mask, unnest(words) AS word FROM goals
), counts AS (
  SELECT word, count(*) AS times FROM spelled GROUP BY word
), ranked AS (
  SELECT *, row_number() OVER (PARTITION BY id ORDER BY times, word) AS place
  FROM spelled JOIN counts USING (word) WHERE rank > 1
), alike_goals AS (
  SELECT DISTINCT a.id AS earlier, b.id AS held
  FROM spelled AS a JOIN (FROM ranked WHERE place <= n - ceil({ALIKE_GOALS} * n) + 1) AS b
    ON a.word = b.word AND a.rank < b.rank AND bit_count(xor(a.mask, b.mask)) <= {_DIFFERENCE} * (a.n + b.n)
), screens AS MATERIALIZED (
  SELECT row_number() OVER () AS id, * FROM (
    SELECT rank, screen, min(episode_id) AS first, list(episode_id) AS ids
    FROM known WHERE bit_count(screen) >= {BARE_BITS} GROUP BY rank, screen
  )
), quarters AS MATERIALIZED (
  SELECT id, rank, screen, place + 4 * ((screen >> (16 * place)) & 65535) AS quarter
  FROM screens, unnest([0::UBIGINT, 1, 2, 3]) AS q(place)
), alike_screens AS (
  SELECT DISTINCT a.id AS earlier, b.id AS held FROM quarters AS a JOIN (FROM quarters WHERE rank > 1) AS b
    ON a.quarter = b.quarter AND a.rank < b.rank AND bit_count(xor(a.screen, b.screen)) <= {ALIKE_BITS}
)
SELECT a.first AS earlier, unnest(b.ids) AS held
FROM alike_goals JOIN goals AS a ON a.id = earlier JOIN goals AS b ON b.id = held
UNION
SELECT a.first, unnest(b.ids)
FROM alike_screens JOIN screens AS a ON a.id = earlier JOIN screens AS b ON b.id = held
"""
_SHOWING = """
SELECT image_sha256 AS screenshot, list(episode_id) AS episode_id
FROM steps WHERE image_sha256 IS NOT NULL GROUP BY image_sha256 HAVING count(*) > 1
"""
_EPISODES = "SELECT episode_id, split, goal, goal_words, screen_hash FROM episodes"
_REASONS = ("goal", "screen", "screenshot")
_SCREEN = "middle screen alike"


class Leakage:
    """What occurs in more than one split, to the letter or nearly."""

    def ask(self, con: Connection) -> dict[str, pl.DataFrame]:
        """Answer with counts, the held-out episodes by reason, the worst pairs, and what they share."""
        import polars as pl

        with ThreadPoolExecutor(1) as thread:  # one query seldom keeps two cores busy
            alike = thread.submit(answer, cursor_for(con, _ALIKE), _ALIKE)
            known = answer(con, _EPISODES)
            (different, goals), showing = _goals(known), _showing(answer(con, _SHOWING), known)
            counted = con.sql("SELECT count(*) FROM images").fetchall()[0][0]
            screenshots, both = _screenshots(showing), _both_show(showing)
            pairs = _evidence(pl.concat([alike.result(), both.unique()]).unique(), known, both)
        return {
            "What occurs in more than one split": _summary(different, goals, screenshots, counted),
            "Held-out episodes that an earlier split resembles": _by_reason(pairs, known),
            f"Pairs across splits that are most alike (at most {SHOWN_ROWS})": _worst(pairs),
            **_goal_tables(goals),
            "Screenshots in more than one split": screenshots.filter(pl.col("splits").list.len() > 1)
            .sort("episodes", "steps", "screenshot", descending=[True, True, False])
            .head(SHOWN_ROWS)
            .with_columns(pl.col("splits").list.join(", ")),
        }


def _goals(known: pl.DataFrame) -> tuple[int, pl.DataFrame]:
    """Return how many goals there are, and those of several episodes; case and outer blanks don't count."""
    import polars as pl

    words = known["goal"].str.strip_chars(" ").str.to_lowercase()
    again = known.with_columns(words=words).filter(words.is_duplicated())
    goals = again.group_by("words").agg(
        pl.col("goal").min(),
        pl.len().cast(pl.Int64).alias("episodes"),
        pl.col("split").min().alias("low"),
        pl.col("split").max().alias("high"),
        pl.col("split").unique().sort().alias("splits"),
        pl.col("episode_id").min().alias("example"),
    )
    return known.height - again.height + goals.height, goals


def _showing(repeated: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    """Return at how many of its steps an episode shows each screenshot that occurs again."""
    import polars as pl

    shown = (
        repeated.explode("episode_id").group_by("screenshot", "episode_id").agg(steps=pl.len().cast(pl.Int64))
    )
    return shown.join(known.select("episode_id", "split"), on="episode_id")


def _screenshots(showing: pl.DataFrame) -> pl.DataFrame:
    """Return the screenshots that occur at several steps: splits, episodes and steps of each."""
    import polars as pl

    return showing.group_by("screenshot").agg(
        pl.col("split").unique().sort().alias("splits"),
        pl.len().cast(pl.Int64).alias("episodes"),
        pl.col("steps").sum(),
    )


def _summary(different: int, goals: pl.DataFrame, screenshots: pl.DataFrame, counted: int) -> pl.DataFrame:
    import polars as pl

    shared = goals.filter(pl.col("low") != pl.col("high"))
    shown = screenshots.filter(pl.col("splits").list.len() > 1)
    rows = [
        ("goal", different, shared.height, shared["goal"].min()),
        ("screenshot", counted, shown.height, shown["screenshot"].min()),
    ]
    columns = {"what": pl.String, "different": pl.Int64, "in_several": pl.Int64, "example": pl.String}
    return pl.DataFrame(rows, columns, orient="row")


def _goal_tables(goals: pl.DataFrame) -> dict[str, pl.DataFrame]:
    import polars as pl

    by_size = goals.sort("episodes", "goal", descending=[True, False])
    shared = by_size.filter(pl.col("low") != pl.col("high")).head(SHOWN_ROWS)
    return {
        "Goals in more than one split": shared.select("goal", pl.col("splits").list.join(", "), "episodes"),
        "Goals that occur again": by_size.head(SHOWN_ROWS).select(
            "goal", "episodes", pl.col("splits").list.len().cast(pl.Int64), "example"
        ),
    }


def _rank(column: str) -> pl.Expr:
    import polars as pl

    return pl.col(column).replace_strict({name: i for i, name in enumerate(SPLITS)}, return_dtype=pl.Int8)


def _few(showing: pl.DataFrame) -> pl.DataFrame:
    import polars as pl

    return showing.filter(pl.len().over("screenshot") <= FEW_EPISODES).with_columns(rank=_rank("split"))


def _both_show(showing: pl.DataFrame) -> pl.DataFrame:
    """Return pairs of an earlier and a held-out episode, one row for each telling screenshot that both show."""
    import polars as pl

    few = _few(showing).select("screenshot", "episode_id", "rank")
    both = few.join(few, on="screenshot", suffix="_held").filter(pl.col("rank") < pl.col("rank_held"))
    return both.select(earlier="episode_id", held="episode_id_held")


def _evidence(pairs: pl.DataFrame, known: pl.DataFrame, both: pl.DataFrame) -> pl.DataFrame:
    """Put beside each pair how alike its goals and screens are, and drop those that are not."""
    import polars as pl

    shared = both.group_by("earlier", "held").len("shared_screenshots")
    found = pairs.join(known, left_on="held", right_on="episode_id")
    found = found.join(known, left_on="earlier", right_on="episode_id", suffix="_earlier")
    found = found.join(shared, on=["earlier", "held"], how="left")
    common = pl.col("goal_words").list.set_intersection("goal_words_earlier").list.len()
    lengths = pl.col("goal_words").list.len() + pl.col("goal_words_earlier").list.len()
    bits = [
        pl.col(name).str.to_integer(base=16, dtype=pl.UInt64)
        for name in ("screen_hash", "screen_hash_earlier")
    ]
    telling = pl.all_horizontal(each.bitwise_count_ones() >= BARE_BITS for each in bits)
    found = found.with_columns(
        goal_similarity=common / (lengths - common),
        screen_bits_off=pl.when(telling).then((bits[0] ^ bits[1]).bitwise_count_ones()).cast(pl.Int64),
        shared_screenshots=pl.col("shared_screenshots").fill_null(0).cast(pl.Int64),
    ).with_columns(
        (pl.col("goal_similarity") >= ALIKE_GOALS - 1e-12).fill_null(False).alias("by_goal"),
        (pl.col("screen_bits_off") <= ALIKE_BITS).fill_null(False).alias("by_screen"),
        (pl.col("shared_screenshots") > 0).alias("by_screenshot"),
    )
    return found.filter(pl.any_horizontal(f"by_{reason}" for reason in _REASONS))


def _by_reason(pairs: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    """Count the held-out episodes of each split that resemble an earlier one, by reason.

    ``of`` are those that can be told: all of the split, but for screens only those whose middle screen was hashed.
    """
    import polars as pl

    reasons = {
        "goal alike": pl.col("by_goal"),
        _SCREEN: pl.col("by_screen"),
        f"a screenshot that at most {FEW_EPISODES} show": pl.col("by_screenshot"),
        "goal alike, and a screen": pl.col("by_goal") & (pl.col("by_screen") | pl.col("by_screenshot")),
        "any of these": pl.lit(True),
    }
    tables = []
    for split in (name for name in SPLITS[1:] if (known["split"] == name).any()):
        of_split, whole = pairs.filter(pl.col("split") == split), known.filter(pl.col("split") == split)
        counts = [of_split.filter(condition)["held"].n_unique() for condition in reasons.values()]
        table = pl.DataFrame(
            {"why": list(reasons), "episodes": counts}, {"why": pl.String, "episodes": pl.Int64}
        )
        hashed = pl.when(pl.col("why") == _SCREEN).then(whole["screen_hash"].count()).otherwise(whole.height)
        tables.append(
            table.with_columns(of=hashed.cast(pl.Int64)).select(
                pl.lit(split).alias("split"),
                "why",
                "episodes",
                "of",
                share=pl.when(pl.col("of") > 0).then(pl.col("episodes") / pl.col("of")),
            )
        )
    columns = {
        "split": pl.String,
        "why": pl.String,
        "episodes": pl.Int64,
        "of": pl.Int64,
        "share": pl.Float64,
    }
    return pl.concat(tables) if tables else pl.DataFrame(schema=columns)


def _worst(pairs: pl.DataFrame) -> pl.DataFrame:
    import polars as pl

    pairs = pairs.with_columns(reasons=pl.sum_horizontal(f"by_{reason}" for reason in _REASONS))
    order = ["reasons", "goal_similarity", "shared_screenshots", "screen_bits_off", "held", "earlier"]
    ranked = pairs.sort(order, descending=[True, True, True, False, False, False], nulls_last=True)
    return ranked.head(SHOWN_ROWS).select(
        episode="held",
        split="split",
        resembles="earlier",
        its_split="split_earlier",
        goal_similarity="goal_similarity",
        screen_bits_off="screen_bits_off",
        shared_screenshots="shared_screenshots",
        goal="goal",
        its_goal="goal_earlier",
    )


LEAKAGE = (Leakage(),)
