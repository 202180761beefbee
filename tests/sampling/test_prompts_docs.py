"""docs/prompts.md tells the truth: its templates, its own template, its samplers and its signs."""

import re
from pathlib import Path

import pytest
from test_templates import request_of

from solar_rl.config import PromptConfig, read_sampler
from solar_rl.formats import FORMATS
from solar_rl.prompts import settled, tried
from solar_rl.prompts.catalogue import newest
from solar_rl.shipped import shipped_path
from solar_rl.stats.sampling import SIGNS

TEXT = (Path(__file__).parents[2] / "docs" / "prompts.md").read_text(encoding="utf-8")
FILES = sorted(shipped_path("recipes", "samplers").glob("*.yaml"))


def rows_of(heading):
    section = TEXT.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    rows = [re.split(r"(?<!\\)\|", line.strip("|")) for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows[2:]]


def test_the_newest_template_of_every_format_is_described():
    named = [name for row in rows_of("Templates") for name in re.findall(r"`(\w+/\d+)`", row[0])]
    assert sorted(named) == sorted(newest(name) for name in FORMATS)


def test_the_template_of_one_s_own_works():
    (text,) = re.findall(r"```jinja\n(.*?)```", TEXT, re.DOTALL)
    config = tried(settled(PromptConfig(format="json", template=text)))
    messages = request_of(config).messages
    assert [message["role"] for message in messages] == ["system", "user"]
    assert "2. " in messages[1]["content"][0]["text"]


def test_every_sampler_is_listed_as_it_is():
    rows = {row[0].strip("`"): row for row in rows_of("Samplers")}
    assert sorted(rows) == [file.stem for file in FILES]
    for file in FILES:
        told, data = rows[file.stem], read_sampler(file)
        prompt, sampler = data["prompt"], data["sampler"]
        assert told[1] == sampler["model"]
        assert told[2] == (
            "0 to 1000" if FORMATS[prompt["format"]].space.__name__ == "Thousand" else "resized pixels"
        )
        limits = [int(number.replace(",", "")) for number in re.findall(r"[\d,]+", told[3])]
        assert limits[-1] == prompt["max_pixels"]
        assert limits[:-1] == ([prompt["min_pixels"]] if "min_pixels" in prompt else [])
        assert int(told[4].split(",")[0]) == prompt["screenshots"]
        assert int(told[5]) == sampler["max_new_tokens"]


def test_the_signs_and_their_bounds_are_those_of_the_code():
    rows = rows_of("Is it worth training on?")
    assert [row[0] for row in rows] == [sign.what for sign in SIGNS.values()]
    for row, sign in zip(rows, SIGNS.values(), strict=True):
        told = "all" if sign.good == 1 else f"{'from' if sign.more else 'to'} {100 * sign.good:.0f} %"
        assert row[1] == told


@pytest.mark.parametrize("link", re.findall(r"`(docs/\w+\.md)`", TEXT))
def test_pages_that_are_named_exist(link):
    assert (Path(__file__).parents[2] / link).is_file()
