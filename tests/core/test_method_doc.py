"""docs/method.md tells the truth: its hazard table, and the defaults it names."""

import re
from pathlib import Path

import pytest
from strategies import paths_frame

from solar_rl.advantage import CREDITS
from solar_rl.config import AdvantageConfig, ShapingConfig, ValidityConfig
from solar_rl.shaping import shape

TEXT = (Path(__file__).parents[2] / "docs" / "method.md").read_text(encoding="utf-8")
SECTIONS = {"validity": ValidityConfig, "shaping": ShapingConfig, "advantage": AdvantageConfig}


def table_rows(text):
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("|")
    ]


def scores_of(name):
    found = re.fullmatch(r"fails at step (\d+), s = ([\d.]+)", name)
    scores = [1.0] * 10
    if found:
        scores[int(found[1])] = float(found[2])
    return scores


def test_the_hazard_table_is_recomputed():
    hazard = TEXT.split("### The hazard", 1)[1].split("\n## ", 1)[0]
    rows = table_rows(hazard)[2:]
    assert len(rows) == 4
    for name, *printed in rows:
        frame = paths_frame([scores_of(name)])
        kept = {}
        for alignment, normalisation in [
            ("paper", "none"),
            ("paper", "unit_mass"),
            ("prefix_mean", "none"),
            ("segments", "none"),
        ]:
            config = ShapingConfig(alignment=alignment, normalisation=normalisation)
            rewards, trajectories = shape(frame, config, AdvantageConfig())
            kept[alignment, normalisation] = rewards["reward"].drop_nulls().to_list()
        paper, unit, mean, segments = kept.values()
        got = [trajectories["trajectory_reward"][0], paper[0], paper[-1], unit[0], mean[0], segments[0]]
        assert [float(cell) for cell in printed] == pytest.approx(got, abs=5e-4)


def test_every_field_is_documented_with_its_default():
    documented = {row[0].strip("`"): row[1] for row in table_rows(TEXT) if re.match(r"`\w+\.\w+`", row[0])}
    fields = {
        f"{section}.{name}": field.default
        for section, model in SECTIONS.items()
        for name, field in model.model_fields.items()
    }
    assert documented == {name: "null" if value is None else str(value) for name, value in fields.items()}


def test_every_credit_is_documented():
    assert {row[0].strip("`") for row in table_rows(TEXT.split("## 5. Credit", 1)[1])} >= set(CREDITS)
