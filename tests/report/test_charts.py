"""Charts: what is drawn adds up, axes are readable, and empty data is said in words."""

from __future__ import annotations

from itertools import pairwise

import hand_made
import pytest
from hand_made import build

from solar_rl.report import write_report
from solar_rl.report.charts import BOTTOM, LEFT, RIGHT, TOP, Columns, Part, Stack, nice_step
from solar_rl.report.words import decimal


def columns(values: list[tuple[float, ...]], labels: list[str] | None = None, **more) -> Columns:
    stacks = tuple(
        Stack(label, tuple(Part(value, "accent") for value in parts))
        for label, parts in zip(labels or map(str, range(len(values))), values, strict=False)
    )
    return Columns("title", "note", "x", "y", stacks, **more)


@pytest.mark.parametrize("highest", [0.003, 0.07, 0.5, 1, 3, 7, 12, 99, 100, 480, 751_992, 3.2e9])
def test_the_axis_has_few_round_steps_and_holds_the_highest_column(highest):
    chart = columns([(highest,)])
    assert 3 <= len(chart.y_ticks) <= 8
    assert chart.top >= highest
    assert chart.top - highest <= nice_step(highest) * (1 + 1e-9)
    assert chart.y_ticks[0].at == BOTTOM and chart.y_ticks[-1].at == pytest.approx(TOP)


def test_pieces_stack_without_gaps_and_stay_in_the_frame():
    chart = columns([(3, 2), (0, 4), (5, 0)])
    assert [rect.x for rect in chart.rects] == sorted(rect.x for rect in chart.rects)
    assert all(rect.x >= LEFT and rect.x + rect.width <= RIGHT for rect in chart.rects)
    low, high = chart.rects[:2]
    assert high.y + high.height == pytest.approx(low.y)
    assert len(chart.rects) == 4, "empty pieces are not drawn"
    total = sum(rect.height for rect in chart.rects) / (BOTTOM - TOP) * chart.top
    assert total == pytest.approx(14)


@pytest.mark.parametrize("count", [1, 2, 9, 10, 40, 300])
def test_labels_do_not_collide_and_both_ends_are_named(count):
    ticks = columns([(1,)] * count).x_ticks
    assert ticks[0].text == "0" and ticks[-1].text == str(count - 1)
    for left, right in pairwise(ticks):
        assert right.at - left.at >= 3.4 * (len(left.text) + len(right.text))


def test_nothing_to_draw_is_no_error():
    chart = columns([])
    assert chart.rects == [] and chart.x_ticks == []


def test_a_dataset_without_failures_says_so(tmp_path):
    page = write_report(build(tmp_path, ("contact",))).read_text(encoding="utf-8")
    assert page.count("No trajectory fails.") >= 4
    assert "Every scored answer is valid." in page
    assert "4 of 4 candidates get through all 5 steps" in page


def test_a_dataset_whose_labels_cannot_be_judged_says_so(tmp_path):
    page = write_report(build(tmp_path, ("bare", "contact"), judged=False)).read_text(encoding="utf-8")
    assert "No answer could be scored." in page
    assert "No trajectory was scored, so there is no episode to show." in page
    assert "nan" not in page.lower().replace("unanalysed", "")


def test_a_sum_and_its_target_are_written_alike():
    assert decimal(2.675 - 4e-16, sign=True) == decimal(2.675 + 4e-16, sign=True)
    assert decimal(-1e-12, sign=True) == "0.00" and decimal(None) == "–"


def test_an_episode_of_more_steps_than_a_share_of_one_percent_allows_is_charted(tmp_path, monkeypatch):
    monkeypatch.setitem(hand_made.EPISODES, "long", ("android", 1080, 2400, "Maps", False, "c" * 119 + "f"))
    monkeypatch.setitem(hand_made.FAILURES, "long", {0: (), 1: (60,), 2: (60,), 3: ()})
    page = write_report(build(tmp_path, ("long",))).read_text(encoding="utf-8")
    assert "Lowest at step 60 (50\u202f% of 4)." in page
