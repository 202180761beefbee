"""The report says what is odd about the labels."""

import re

import polars as pl

from solar_rl.report import write_report
from solar_rl.report.data_charts import labels


class Answered:
    """Statistics known beforehand."""

    def __init__(self, tables: dict[str, dict[str, list[dict]]]) -> None:
        self.tables = tables

    def compute(self, name: str) -> dict[str, pl.DataFrame]:
        return {title: pl.DataFrame(rows) for title, rows in self.tables[name].items()}


def test_the_page_names_oddities_and_direction_confusion(dataset):
    page = write_report(dataset).read_text(encoding="utf-8")
    section = re.search(r'<section[^>]*id="labels".*?</section>', page, re.DOTALL)
    assert section, "the section has an anchor"
    for title in ("Oddities of the labels", "Scroll directions", "Scroll instructions"):
        assert title in section[0]
    assert "steps without instruction" in section[0]


def test_the_chart_leaves_out_what_a_tree_s_root_makes_of_every_click():
    row = {"cases": 3, "of": 3, "share": 1.0, "example": "e, step 0"}
    kinds = (
        "clicks, box from 10%",
        "clicks, box from 75%",
        "clicks, smallest box from 25%",
        "clicks without a box",
    )
    answers = Answered(
        {
            "oddities": {"What to know about these labels": [{"what": what} | row for what in kinds]},
            "directions": {
                "Scrolls: predicted direction against the label's": [],
                "Scrolls: the instruction's words against the label": [],
            },
        }
    )
    chart, *_ = labels(answers).charts
    assert [bar.label for bar in chart.bars] == ["clicks, smallest box from 25%", "clicks without a box"]
    assert chart.note == "2 of 2 kinds occur."
