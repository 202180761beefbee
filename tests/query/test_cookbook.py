"""Every query of docs/queries.md runs, and its answer's columns are the ones printed below it."""

import re
from pathlib import Path

import pytest
from lawful_dataset import tables, write_small_dataset

import solar_rl

PAGE = (Path(__file__).parents[2] / "docs" / "queries.md").read_text(encoding="utf-8")
ANSWERED = re.findall(r"```sql\n(.*?)```\n\n<!-- answer -->\n(.*?)\n", PAGE, re.DOTALL)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return solar_rl.open_dataset(write_small_dataset(tmp_path_factory.mktemp("small"), tables(30)))


def test_every_query_of_the_page_is_answered():
    assert len(ANSWERED) == PAGE.count("```sql") > 10


@pytest.mark.parametrize(("sql", "header"), ANSWERED)
def test_a_query_runs_and_gives_the_printed_columns(data, sql, header):
    assert f"| {' | '.join(data.sql(sql).columns)} |" == header
