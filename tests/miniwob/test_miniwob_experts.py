"""Experts and pages without a browser: elements made by hand."""

from __future__ import annotations

from typing import Any

import pytest

from builders.miniwob.experts import EXPERTS, Lost, demonstrate
from builders.miniwob.page import Page, read_page

SIZE = (160, 210)
Rect = tuple[float, float, float, float]


class Hand:
    """Writes what the script returns, element by element."""

    def __init__(self, goal: str, page: tuple[float, float] | None = None) -> None:
        self.goal, self.page, self.count = goal, page, 0
        self.places: dict[str, Any] = {}

    def make(self, tag: str, rect: Rect, *children: dict, shown: bool = True, scroll=None, **more) -> dict:
        self.count += 1
        left, top, right, bottom = rect
        box = list(rect) if shown else None
        point = [(left + right) / 2, (top + bottom) / 2] if shown else None
        if tag != "t":
            self.places[str(self.count)] = {"box": box, "point": point, "scroll": scroll}
        place = {"left": left, "top": top, "width": right - left, "height": bottom - top}
        return {"tag": tag, "ref": self.count, "children": list(children), **place, **more}

    def read(self, *children: dict) -> Page:
        dom = self.make("BODY", (0, 0, 160, 210), *children)
        seen = {"goal": self.goal, "dom": dom, "places": self.places, "page": self.page}
        return read_page(seen, *SIZE)


def guess_page(value: str, feedback: str, focused: bool = True) -> Page:
    hand = Hand("Guess the number")
    return hand.read(
        hand.make("DIV", (0, 50, 160, 70), hand.make("DIV", (0, 50, 160, 70), text=feedback), id="feedback"),
        hand.make("INPUT_number", (60, 80, 90, 100), id="tt", value=value, focused=focused),
        hand.make("BUTTON", (60, 110, 120, 130), id="subbtn", text="Submit"),
    )


@pytest.mark.parametrize("secret", range(10))
def test_the_guesser_halves_with_no_memory_but_the_page(secret):
    value, feedback, submitted = "", "Waiting for your guess...", []
    for _ in range(40):
        action = demonstrate("guess-number", guess_page(value, feedback)).action
        if action.action_type == "press":
            value = value[:-1]
        elif action.action_type == "input_text":
            value += action.text
        else:
            submitted.append(int(value))
            if int(value) == secret:
                break
            side = "lower" if secret < int(value) else "higher"
            feedback = f"The number is {side} than {value}."
    assert submitted[-1] == secret and len(submitted) <= 4 and len(set(submitted)) == len(submitted)


def test_a_field_is_focused_before_it_is_typed_into():
    shown = demonstrate("guess-number", guess_page("", "", focused=False))
    assert (shown.action.action_type, shown.instruction) == ("click", "Click the field")
    assert shown.target_box.contains(shown.action.x, shown.action.y)
    assert shown.candidate_boxes[0] == shown.target_box and len(shown.candidate_boxes) == 2
    typed = demonstrate("guess-number", guess_page("", ""))
    assert (typed.action.text, typed.target_box, typed.candidate_boxes) == ("4", shown.target_box, ())


def scrolled(shown: bool, top: float, bottom: float) -> Page:
    hand = Hand('Click on the "Yes" button.')
    button = hand.make("BUTTON", (10, top, 50, bottom), text="Yes", shown=shown)
    return hand.read(hand.make("DIV", (0, 60, 160, 200), button, scroll=[50, 300]))


@pytest.mark.parametrize(("top", "direction"), [(400, "down"), (-90, "up")])
def test_what_is_scrolled_out_is_scrolled_to(top, direction):
    shown = demonstrate("click-button", scrolled(False, top, top + 20))
    assert (shown.action.action_type, shown.action.direction) == ("scroll", direction)
    assert shown.instruction == f"Scroll {direction} until you can click the button 'Yes'"
    assert shown.target_box.contains(shown.action.x, shown.action.y)


def test_what_is_covered_and_can_not_be_scrolled_to_is_lost():
    hand = Hand('Click on the "Yes" button.')
    page = hand.read(hand.make("BUTTON", (10, 60, 50, 80), text="Yes", shown=False))
    with pytest.raises(Lost, match="covers"):
        demonstrate("click-button", page)


def test_a_goal_in_other_words_or_a_missing_element_is_lost():
    for task, goal in (
        ("email-inbox", "Please star it"),
        ("click-button", 'Click "No"'),
        ("click-tab", "Go"),
    ):
        with pytest.raises(Lost):
            demonstrate(task, Hand(goal).read())
    assert all(expert.__doc__ for expert in EXPERTS.values())


def test_text_shows_what_can_be_seen_and_only_that():
    hand = Hand("Read")
    page = hand.read(
        hand.make(
            "DIV",
            (0, 60, 100, 100),
            hand.make("t", (0, 60, 50, 70), text="two"),
            hand.make("SPAN", (0, 70, 10, 80), classes="icon star"),
            hand.make("INPUT_checkbox", (20, 70, 30, 80), value=True, id="ch0"),
        ),
        hand.make("P", (0, 300, 50, 310), text="below", shown=False),
        hand.make("P", (0, 120, 80, 140), hand.make("t", (0, 120, 80, 130), text="broken"), hand.make("t", (0, 130, 80, 140), text="line")),
    )  # fmt: skip
    assert page.text().splitlines() == [
        '[1] t "two" box 0.000 0.286 0.312 0.333',
        "[2] span .icon.star box 0.000 0.333 0.062 0.381",
        "[3] input_checkbox checked box 0.125 0.333 0.188 0.381",
        '[8] p "broken line" box 0.000 0.571 0.500 0.667',
    ]
    assert page.words(page.all(tag="body")[0]) == "two below broken line"
