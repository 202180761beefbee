"""Neutral rows for the tests: one by hand, and many at random that sit where rules turn."""

from __future__ import annotations

import polars as pl
from hypothesis import strategies as st

from solar_rl.protocols import NEUTRAL
from solar_rl.protocols.neutral import ACTIONS

SCREEN = {"screen_w": 1080.0, "screen_h": 2400.0}
ARGUMENTS = {
    "click": "xy",
    "long_press": "xy",
    "scroll": "d",
    "input_text": "t",
    "open_app": "t",
    "status": "s",
}
TEXTS = (
    "",
    " ",
    "cat",
    "Cat videos",
    "cat's toys",
    'say "hi"',
    "10:30 am",
    "[cat]",
    "no input text",
    "a\nb",
    "\xa0Word Office",
    "Audio\xadmack",
    "Schwarzwälder",
    "猫の動画",
    "input",
    "funny cat videos today",
    "<|im_end|>",
)
WORDS = ("up", "down", "left", "right", "UP", "Left", "downwards", "")


def row(expert=None, pred=None, *, boxes=(), single=None, foreign=False, whole=True, **screen):
    """Make one neutral row; an action is (type, x, y), (type, text), (type, direction) or (type, status)."""
    made = {
        **(SCREEN | screen),
        "boxes": [list(map(float, box)) for box in boxes],
        "single_box": list(map(float, single)) if single else None,
        "pred_foreign": foreign,
        "pred_whole": whole,
    }
    for who, action in (("expert", expert), ("pred", pred)):
        kind, *values = action or (None,)
        values += [None] * (2 - len(values))
        needs = ARGUMENTS.get(kind, "")
        made |= {
            f"{who}_type": kind,
            f"{who}_x": float(values[0]) if needs == "xy" and values[0] is not None else None,
            f"{who}_y": float(values[1]) if needs == "xy" and values[1] is not None else None,
            f"{who}_direction": values[0] if needs == "d" else None,
            f"{who}_text": values[0] if needs == "t" else None,
            f"{who}_status": values[0] if needs == "s" else None,
        }
    return made


def frame(*rows):
    """Make a neutral frame."""
    return pl.DataFrame(list(rows), schema=NEUTRAL, orient="row")


def _action(draw, kind, width, height, near=None, *, label):
    needs = ARGUMENTS.get(kind, "")
    if needs == "xy":
        if near is not None and draw(st.booleans()):
            reach = st.sampled_from([0, 1, 42, 44, 85, 97, 140, 152, 201, 335, 368, -43, -96, -140, -151])
            return (kind, near[0] + draw(reach), near[1] + draw(reach))
        if label:
            return (kind, draw(st.integers(0, int(width))), draw(st.integers(0, int(height))))
        beyond = st.one_of(st.none(), st.integers(-300, int(width) + 300), st.sampled_from([-100, 0, 0.5]))
        return (kind, draw(beyond), draw(beyond))
    if needs == "d":
        return (kind, draw(st.sampled_from(WORDS[:4] if label else (*WORDS, None))))
    if needs == "t":
        return (kind, draw(st.sampled_from(TEXTS if label else (*TEXTS, None))))
    if needs == "s":
        return (kind, draw(st.sampled_from(("complete", "infeasible"))))
    return (kind,)


@st.composite
def rows(draw):
    """Draw one neutral row, the answer often of the label's type and near it."""
    width, height = draw(st.sampled_from([(1080, 2400), (1440, 3120), (600, 400)]))
    expert = _action(draw, draw(st.sampled_from(ACTIONS)), width, height, label=True)
    point = expert[1:] if ARGUMENTS.get(expert[0]) == "xy" else None
    kinds = st.one_of(st.just(expert[0]), st.just(expert[0]), st.sampled_from((*ACTIONS, None)))
    kind = draw(kinds)
    pred = None if kind is None else _action(draw, kind, width, height, point, label=False)
    boxes = []
    if point or expert[0] == "open_app":
        x, y = point or (300, 500)
        for _ in range(draw(st.integers(0, 7))):
            left, up, right, down = (draw(st.integers(-30, 400)) for _ in range(4))
            boxes.append((x - left, y - up, x + right, y + down))
    single = draw(st.sampled_from([None, *boxes])) if point else None
    foreign, whole = draw(st.booleans()) and draw(st.booleans()), draw(st.booleans())
    return row(
        expert,
        pred,
        boxes=boxes,
        single=single,
        foreign=foreign,
        whole=whole,
        screen_w=width,
        screen_h=height,
    )
