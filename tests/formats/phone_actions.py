"""Strategies for canonical actions, and how two actions compare on a grid."""

from hypothesis import strategies as st

from solar_rl.actions import BUTTONS, DIRECTIONS, STATUSES, Action
from solar_rl.formats.base import Frame

unit = st.floats(0, 1, allow_nan=False)
texts = st.text(st.characters(codec="utf-8"), max_size=30)
frames = st.builds(Frame, st.integers(28, 4000), st.integers(28, 4000))

clicks = st.builds(Action, st.just("click"), x=unit, y=unit)
long_presses = st.builds(Action, st.just("long_press"), x=unit, y=unit)
pathless_scrolls = st.builds(Action, st.just("scroll"), direction=st.sampled_from(DIRECTIONS))
scrolls = st.one_of(
    pathless_scrolls,
    st.builds(Action, st.just("scroll"), direction=st.sampled_from(DIRECTIONS), x=unit, y=unit),
    st.builds(
        Action, st.just("scroll"), direction=st.sampled_from(DIRECTIONS), x=unit, y=unit, x2=unit, y2=unit
    ),
)
typed = st.builds(Action, st.just("input_text"), text=texts)
launches = st.builds(Action, st.just("open_app"), app_name=texts)
buttons = st.builds(Action, st.just("press"), button=st.sampled_from(BUTTONS))
waits = st.just(Action("wait"))
endings = st.builds(Action, st.just("finished"), status=st.sampled_from(STATUSES))
answers = st.builds(Action, st.just("finished"), status=st.just("complete"), text=texts.filter(bool))
phone_actions = st.one_of(clicks, long_presses, scrolls, typed, launches, buttons, waits, endings, answers)
drags = st.builds(Action, st.just("drag"), x=unit, y=unit, x2=unit, y2=unit)
desktop_actions = st.one_of(
    drags,
    st.builds(Action, st.sampled_from(("double_click", "right_click", "hover")), x=unit, y=unit),
    st.builds(Action, st.just("press"), keys=st.lists(texts, min_size=1, max_size=3).map(tuple)),
)

WORDS = ("action_type", "text", "app_name", "keys", "button", "status", "direction")


def assert_same(read: Action, written: Action, grid: Frame) -> None:
    """Hold that an action survived writing and reading, up to half a unit of the grid."""
    for name in WORDS:
        assert getattr(read, name) == getattr(written, name), name
    for name, size in (("x", grid.width), ("y", grid.height), ("x2", grid.width), ("y2", grid.height)):
        before, after = getattr(written, name), getattr(read, name)
        if before is not None and written.action_type != "scroll":
            assert abs(before - after) <= 0.5 / size + 1e-12, name
