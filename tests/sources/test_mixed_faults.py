"""What is wrong or private in the sources of a mix: broken episodes are not drawn, known addresses may stay."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from numbered_source import Numbered
from test_mixing import block, mix

from solar_rl import pipeline
from solar_rl.config import DatasetConfig, PrivacyConfig
from solar_rl.errors import ConfigError
from solar_rl.privacy import allowing
from solar_rl.schema import Episode
from solar_rl.shipped import shipped_module
from solar_rl.validate import validate


class Goalless(Numbered):
    """Every second episode is one that the check behind every builder refuses."""

    def read(self, shard):
        for item in super().read(shard):
            even = isinstance(item, Episode) and int(item.episode_id) % 2 == 0
            yield replace(item, goal=" ") if even else item


def test_what_the_build_will_reject_is_not_drawn_and_told_as_broken(tmp_path):
    goalless = f"{__name__}:Goalless"
    both = mix(a=block(goalless, count=12, episodes=4), b=block(count=12, episodes=4))
    assert both.filtered()["a"] == {"good": 6, "not_drawn": 2, "drawn": 4}
    halves = mix(a=block(goalless, count=12, share=1), b=block(count=12, share=1))
    assert [found["drawn"] for found in halves.filtered().values()] == [6, 6]
    sources = {"a": block(goalless, count=12, episodes=4), "b": block(count=12, episodes=4)}
    config = DatasetConfig(name="m", sources=sources, sampler={"n": 2}, prompt={"observation": "text"})
    built = pipeline.build(config, tmp_path / "m")
    assert (built.counts["episodes"], built.rejects) == (8, {"empty_text": 6})


class Addressed(Numbered):
    """Its goals hold an address, as everybody knows of the published data."""

    known_private = {"email": "in its goals"}

    def read(self, shard):
        for item in super().read(shard):
            yield replace(item, goal=f"mail ann{item.episode_id}@shop.com")


class Unknown(Addressed):
    """Nobody knows what its goals hold."""

    known_private = {}


def private(folder, *sources, **more):
    blocks = {
        name: block(f"{__name__}:{kind.__name__}", count=2) for name, kind in zip("ab", sources, strict=False)
    }
    config = DatasetConfig(name="m", sources=blocks, sampler={"n": 2}, prompt={"observation": "text"}, **more)
    pipeline.build(config, folder)
    return {check.name: check for check in validate(folder)}["no_email_addresses"]


def test_a_mix_may_hold_what_its_sources_are_known_to_hold(tmp_path):
    known = private(tmp_path / "known", Addressed, Numbered)
    assert known.passed and known.count and known.detail.endswith("allowed: a: in its goals")
    alone = private(tmp_path / "alone", Addressed)
    assert alone.detail.endswith("allowed: in its goals")
    said = private(tmp_path / "said", Addressed, Numbered, privacy={"allow": {"email": "they are mine"}})
    assert said.detail.endswith("allowed: they are mine")
    assert not private(tmp_path / "unknown", Unknown, Numbered).passed


def test_a_builder_that_knows_of_another_kind_is_refused():
    with pytest.raises(ConfigError, match=r"known_private.*allow\.emails"):
        allowing(PrivacyConfig(), {"a": {"emails": "in goals"}})


def test_what_sources_are_known_to_hold_is_said_in_one_place():
    files = sorted((Path(__file__).parents[2] / "datasets").glob("*/dataset.yaml"))
    assert len(files) > 10
    assert [file.parent.name for file in files if "privacy:" in file.read_text()] == []
    for name in ("android_control", "android_control_jsonl", "ui_s1", "miniwob"):
        assert {"email", "phone"} <= shipped_module("builders", name).BUILDER.known_private.keys(), name
