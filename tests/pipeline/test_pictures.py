"""Screenshots of preview, report and picture: from the units while a build has them, else from the table; the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from solar_rl import query
from solar_rl.config import DatasetConfig
from solar_rl.pipeline import build
from solar_rl.pipeline.preview import write_preview
from solar_rl.report import write_report
from solar_rl.report.card_picture import PICTURE, write_picture


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = {"builder": "phone", "options": {"episodes": 12, "seed": 3}}
    config = DatasetConfig(
        name="pictures", source=source, sampler={"type": "scripted", "n": 2}, shard_episodes=2
    )
    out: Path = tmp_path_factory.mktemp("pictures") / "out"
    build(config, out)
    return out


def test_the_table_gives_the_same_bytes_as_the_units_did(built: Path) -> None:
    names = ["report.html", PICTURE, *(f"data/preview/{p.name}" for p in (built / "data/preview").iterdir())]
    before = {name: (built / name).read_bytes() for name in names}
    assert b"data:image/webp" in before["report.html"]
    write_preview(built, 200)
    write_report(built)
    with query.connect(built) as con:
        assert write_picture(built, con) == PICTURE
    assert {name: (built / name).read_bytes() for name in names} == before
