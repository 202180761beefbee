"""episode_strip: one episode as a picture, the same bytes every time."""

from __future__ import annotations

import pytest
from PIL import Image

from solar_rl.errors import InputError
from solar_rl.report import episode_strip


@pytest.mark.parametrize("name", ["alarm", "bare", "slides"])
def test_a_png_is_drawn_twice_with_the_same_bytes(dataset, tmp_path, name):
    first = episode_strip(dataset, name, 3, tmp_path / "a.png").read_bytes()
    second = episode_strip(dataset, name, 3, tmp_path / "b.png").read_bytes()
    assert first == second
    with Image.open(tmp_path / "a.png") as image:
        assert image.width > 500
        assert len(image.convert("RGB").getcolors(1 << 20)) > 50


def test_an_svg_holds_the_rewards_and_the_sums_as_text(dataset, tmp_path):
    path = episode_strip(dataset, "alarm", 3, tmp_path / "a.svg")
    text = path.read_text()
    assert "Do the &lt;alarm&gt; task &amp; finish it" in text
    assert "Σ +6.94" in text and "= target +6.94" in text
    assert text.count(">t*<") == 2
    assert "<dc:date>" not in text
    assert text == episode_strip(dataset, "alarm", 3, tmp_path / "b.svg").read_text()


def test_rows_are_a_success_the_longest_and_the_earliest_failure(dataset, tmp_path):
    text = episode_strip(dataset, "alarm", 3, tmp_path / "a.svg").read_text()
    assert [f"candidate {k}" in text for k in range(4)] == [True, True, True, False]


def test_rows_can_be_named(dataset, tmp_path):
    text = episode_strip(dataset, "alarm", [3, 0], tmp_path / "a.svg").read_text()
    assert text.index("candidate 3") < text.index("candidate 0")
    assert "candidate 1" not in text


def test_wrong_names_are_the_users_fault(dataset, tmp_path):
    with pytest.raises(InputError, match="no episode is named 'nobody'"):
        episode_strip(dataset, "nobody", 3, tmp_path / "a.png")
    with pytest.raises(InputError, match=r"no such candidates: \[9\]"):
        episode_strip(dataset, "alarm", [9], tmp_path / "a.png")
    with pytest.raises(InputError, match=r"can't draw a '\.gif' picture"):
        episode_strip(dataset, "alarm", 3, tmp_path / "a.gif")
