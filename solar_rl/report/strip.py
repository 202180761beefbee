"""Read one episode and lay it out as a strip: screens across, candidates down, a reward in each cell."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from solar_rl.report.screens import shown_size
from solar_rl.report.words import SPATIAL, action_words, decimal, plain

if TYPE_CHECKING:
    from solar_rl.query import Connection

MAX_STEPS, MAX_CANDIDATES = 48, 8
Row = Mapping[str, Any]
Images = Callable[[Collection[str], Collection[str]], dict[str, bytes]]
"""Reads encoded screenshots of some episodes (ids) by their hashes."""

_PREDICTED = """
SELECT r.* EXCLUDE (app), c.completion, c.parse_error, c.pred_x, c.pred_y, c.pred_x2, c.pred_y2,
       c.pred_direction, c.pred_text, c.pred_app_name, c.pred_keys, c.pred_button, c.pred_status
FROM rewards r JOIN candidates c USING (episode_id, step_index, candidate_index)
WHERE r.episode_id IN (SELECT unnest(?)) ORDER BY ALL
"""


class Mark(NamedTuple):
    """One thing drawn on a screen, in its CSS pixels: a point, or an arrow to (x2, y2)."""

    shape: str
    x: float
    y: float
    x2: float
    y2: float
    tone: str
    candidate: int | None
    hint: str


class Rect(NamedTuple):
    """One box drawn on a screen, in its CSS pixels."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Screen:
    """One column's head: the screen, what the expert did on it, where the candidates pointed."""

    step: int
    width: int
    height: int
    sha256: str | None
    size: str
    landscape: bool
    words: str
    instruction: str | None
    target: Rect | None
    boxes: tuple[Rect, ...]
    expert: Mark | None
    marks: tuple[Mark, ...]
    failing: int


class Cell(NamedTuple):
    """One candidate at one step: how it stands (CSS class), its reward, what it did, the evidence."""

    tone: str
    reward: str
    words: str
    hint: str
    first_failure: bool


@dataclass(frozen=True)
class Line:
    """One candidate trajectory: its cells and how its rewards add up."""

    candidate: int
    success: bool
    first_failure: int | None
    cells: tuple[Cell, ...]
    reward_sum: float
    target: float | None
    trajectory_reward: float | None
    aligned: bool


@dataclass(frozen=True)
class Strip:
    """One episode, ready to be drawn."""

    episode_id: str
    goal: str
    app: str | None
    platform: str
    screens: tuple[Screen, ...]
    lines: tuple[Line, ...]
    hidden_steps: int
    hidden_candidates: int


class Records(NamedTuple):
    """The rows of one episode, as the tables hold them."""

    episode: Row
    steps: list[Row]
    answers: list[Row]
    trajectories: list[Row]


def read_records(con: Connection, episode_ids: Sequence[str]) -> dict[str, Records]:
    """Read everything that the strips of these episodes need; unknown ids are left out."""
    where = "WHERE episode_id IN (SELECT unnest(?)) ORDER BY ALL"
    queries = (
        f"SELECT * FROM episodes {where}",
        f"SELECT * EXCLUDE (screen_text) FROM steps {where}",
        _PREDICTED,
        f"SELECT * FROM trajectories {where}",
    )
    tables = [con.sql(query, params=[list(episode_ids)]).pl().rows(named=True) for query in queries]
    grouped: dict[str, tuple[list[Row], ...]] = {row["episode_id"]: ([], [], [], []) for row in tables[0]}
    for place, rows in enumerate(tables):
        for row in rows:
            grouped[row["episode_id"]][place].append(row)
    return {key: Records(parts[0][0], *parts[1:]) for key, parts in grouped.items()}


def read_images(con: Connection, hashes: Collection[str]) -> dict[str, bytes]:
    """Read the encoded screenshots of these hashes, in the order of the hashes."""
    if not hashes:
        return {}
    query = (
        "SELECT sha256, image.bytes AS data FROM images WHERE sha256 IN (SELECT unnest(?)) ORDER BY sha256"
    )
    found = con.sql(query, params=[sorted(set(hashes))]).pl()
    return dict(found.iter_rows())


def images_of(
    con: Connection, records: Iterable[Records], strips: Iterable[Strip], read: Images | None
) -> dict[str, bytes]:
    """Read the screenshots that strips show, in the order of their hashes.

    Args:
        con: From ``query.connect``.
        records: The strips' episodes.
        strips: What is shown.
        read: Reads screenshots of some episodes (default: from table ``images``, of which it reads nearly all, since
            that is sorted by hash).
    """
    hashes = {screen.sha256 for strip in strips for screen in strip.screens if screen.sha256}
    if read is None:
        return read_images(con, hashes)
    return dict(sorted(read([each.episode["episode_id"] for each in records], hashes).items()))


def make_strip(records: Records, candidates: Sequence[int] | None = None) -> Strip:
    """Lay out one episode.

    Args:
        records: The rows of the episode.
        candidates: Which candidates to show (default: the first eight, and always the longest failure).
    """
    chosen = list(_default_candidates(records.trajectories) if candidates is None else candidates)
    answers = {(row["step_index"], row["candidate_index"]): row for row in records.answers}
    steps = records.steps[:MAX_STEPS]
    screens = [
        _screen(step, [answers.get((step["step_index"], k)) for k in chosen], records) for step in steps
    ]
    by_index = {row["candidate_index"]: row for row in records.trajectories}
    lines = [_line(by_index[k], [answers.get((s["step_index"], k)) for s in steps]) for k in chosen]
    episode = records.episode
    return Strip(
        episode_id=episode["episode_id"],
        goal=episode["goal"],
        app=episode["app"],
        platform=episode["platform"],
        screens=tuple(screens),
        lines=tuple(lines),
        hidden_steps=len(records.steps) - len(steps),
        hidden_candidates=len(records.trajectories) - len(chosen),
    )


def telling_candidates(trajectories: Sequence[Row], count: int) -> list[int]:
    """Choose candidates that differ: a success, the longest failure, the earliest one, then by index."""
    won = [row for row in trajectories if row["success"]]
    lost = sorted((r for r in trajectories if not r["success"]), key=lambda r: -r["valid_prefix_len"])
    wanted = [*won[:1], *lost[:1], *lost[-1:], *trajectories]
    return list(dict.fromkeys(row["candidate_index"] for row in wanted))[:count]


def _default_candidates(trajectories: Sequence[Row]) -> list[int]:
    telling = telling_candidates(trajectories, 2)
    rest = [row["candidate_index"] for row in trajectories]
    return sorted(list(dict.fromkeys([*telling, *rest]))[:MAX_CANDIDATES])


def _screen(step: Row, answers: Sequence[Row | None], records: Records) -> Screen:
    width, height = shown_size(step["screen_width"], step["screen_height"])
    boxes = [_rect(box, width, height) for box in step["candidate_boxes"] or ()]
    known = [answer for answer in answers if answer is not None]
    marks = [mark for answer in known if (mark := _mark(answer, width, height)) is not None]
    words = action_words(step)
    return Screen(
        step=step["step_index"],
        width=width,
        height=height,
        sha256=step["image_sha256"],
        size=f"{step['screen_width']} × {step['screen_height']}",
        landscape=width > height,
        words=words,
        instruction=step["instruction"],
        target=_rect(step["target_box"], width, height) if step["target_box"] else None,
        boxes=tuple(boxes),
        expert=_drawn(step, "", width, height, ("expert", None, f"expert: {words}")),
        marks=tuple(marks),
        failing=sum(t["first_failure_step"] == step["step_index"] for t in records.trajectories),
    )


def _rect(box: Sequence[float], width: int, height: int) -> Rect:
    x1, y1, x2, y2 = box
    return Rect(x1 * width, y1 * height, (x2 - x1) * width, (y2 - y1) * height)


def _mark(answer: Row, width: int, height: int) -> Mark | None:
    tone = {True: "valid", False: "invalid", None: "unscored"}[answer["valid"]]
    candidate = answer["candidate_index"]
    hint = (
        f"candidate {candidate}: {action_words(answer, 'pred_')}, {tone}, s = {decimal(answer['raw_score'])}"
    )
    return _drawn(answer, "pred_", width, height, (tone, candidate, hint))


def _drawn(row: Row, prefix: str, width: int, height: int, named: tuple[str, int | None, str]) -> Mark | None:
    """Place an action on the screen; None for one that has no place there."""
    candidate = named[1]
    kind = row[f"{prefix}action_type"]
    if kind not in SPATIAL:
        return None
    x, y = row[f"{prefix}x"], row[f"{prefix}y"]
    x, y = _place(row, prefix, width, candidate)
    x2, y2 = x, y
    if kind == "scroll":  # the arrow shows where the content goes, whatever the finger did
        dx, dy = {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}[row[f"{prefix}direction"]]
        across, along = 28 * dx / width, 28 * dy / height
        x, y, x2, y2 = x - across, y - along, x + across, y + along
    elif kind == "drag":
        x2, y2 = row[f"{prefix}x2"], row[f"{prefix}y2"]
    shape = "arrow" if kind in ("scroll", "drag") else "point"
    return Mark(shape, x * width, y * height, x2 * width, y2 * height, *named)


def _place(row: Row, prefix: str, width: int, candidate: int | None) -> tuple[float, float]:
    """Return where an action is drawn: its point; for a scroll the middle of its path.

    A scroll without a point is drawn in the middle of the screen, the candidates' beside the expert's.
    """
    x, y, x2, y2 = (row[f"{prefix}{name}"] for name in ("x", "y", "x2", "y2"))
    if x is None or y is None:
        aside = 0 if candidate is None else 9 * (candidate // 2 + 1) * (-1) ** candidate
        return 0.5 + aside / width, 0.5
    if row[f"{prefix}action_type"] == "scroll" and x2 is not None and y2 is not None:
        return (x + x2) / 2, (y + y2) / 2
    return x, y


def _line(trajectory: Row, answers: Sequence[Row | None]) -> Line:
    return Line(
        candidate=trajectory["candidate_index"],
        success=trajectory["success"],
        first_failure=trajectory["first_failure_step"],
        cells=tuple(_cell(answer, trajectory["first_failure_step"]) for answer in answers),
        reward_sum=trajectory["reward_sum"],
        target=trajectory["target_reward"],
        trajectory_reward=trajectory["trajectory_reward"],
        aligned=trajectory["alignment"] == "aligned",
    )


def _cell(answer: Row | None, first_failure: int | None) -> Cell:
    if answer is None:
        return Cell("absent", "", "not sampled", "no candidate at this step", False)
    words = action_words(answer, "pred_")
    return Cell(
        tone=_tone(answer),
        reward=decimal(answer["reward"], sign=True),
        words=words,
        hint=_hint(answer, words),
        first_failure=answer["step_index"] == first_failure,
    )


def _tone(answer: Row) -> str:
    if answer["valid"] is None:
        return "unscored"
    if answer["position"] == "prefix" and answer["segment_index"]:
        return "later"
    return str(answer["position"] or "absent")


def _hint(answer: Row, words: str) -> str:
    """Gather what a reader wants on hover: the action, its score and evidence, how the reward is made."""
    lines = [f"candidate {answer['candidate_index']}, step {answer['step_index']}: {words}"]
    if answer["parse_error"]:
        lines.append(f"did not parse: {answer['parse_error']}")
    if answer["valid"] is None:
        lines.append(f"unscored: {plain(answer['unscored_reason'])}")
    else:
        lines.append(f"raw score s = {decimal(answer['raw_score'], 3)} (rule {plain(answer['rule'])})")
    if answer["failure_reason"]:
        lines.append(f"why not valid: {plain(answer['failure_reason'])}")
    if answer["distance"] is not None:
        lines.append(f"distance {decimal(answer['distance'], 3)}")
    if answer["reward"] is not None:
        base, gap = (decimal(answer[name], 3, sign=True) for name in ("base_reward", "gap_share"))
        reward = decimal(answer["reward"], 3, sign=True)
        lines.append(f"reward {reward} = base {base} and gap share {gap}")
    if answer["advantage"] is not None:
        lines.append(f"advantage {decimal(answer['advantage'], 3, sign=True)}")
    return "\n".join(lines)
