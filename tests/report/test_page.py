"""report.html: everything in one file, the same bytes every time, and it opens in a browser."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

from solar_rl.errors import InputError
from solar_rl.report import write_report
from solar_rl.store.manifest import read_manifest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = """
    --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking
    --disable-component-update --disable-sync --hide-scrollbars --enable-logging=stderr
""".split()  # noqa: SIM905 - a command line reads best as one
PROBE = """<script>addEventListener("load", () => {
  const images = [...document.images];
  document.body.dataset.images = images.length;
  document.body.dataset.loaded = images.filter(i => i.complete && i.naturalWidth > 0).length;
  document.body.dataset.overflow = document.documentElement.scrollWidth - innerWidth;
  document.body.dataset.tiny = [...document.querySelectorAll("main *")]
    .filter(e => e.textContent.trim() && parseFloat(getComputedStyle(e).fontSize) < 8).length;
  document.body.dataset.cut = [...document.querySelectorAll(".bars .name")]
    .filter(e => e.scrollWidth > e.clientWidth).length;
  document.body.dataset.sideways = [...document.querySelectorAll(".scroller")]
    .filter(e => e.scrollWidth > e.clientWidth).length;
  document.body.dataset.goal = Math.max(...[...document.querySelectorAll(".episode h3")].map(e => e.clientHeight));
  document.body.dataset.ragged = [...document.querySelectorAll(".charts")].filter(e =>
    Math.max(...[...e.children].map(c => c.getBoundingClientRect().right)) - e.lastChild.getBoundingClientRect().right > 1).length;
});</script>"""


@pytest.fixture(scope="module")
def page(dataset) -> str:
    return write_report(dataset).read_text(encoding="utf-8")


class Tags(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag not in ("meta", "link", "img", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_well_formed_and_its_anchors_exist(page):
    tags = Tags(page)
    assert tags.open == []
    ids = [attrs["id"] for _, attrs in tags.found if "id" in attrs]
    assert len(ids) == len(set(ids))
    anchors = {attrs["href"][1:] for tag, attrs in tags.found if tag == "a" and attrs["href"].startswith("#")}
    assert anchors and anchors <= set(ids)


def test_nothing_is_loaded_from_anywhere(page):
    for tag, attrs in Tags(page).found:
        for name in ("src", "href", "xlink:href", "srcset", "data", "action"):
            value = attrs.get(name) or ""
            assert value.startswith(("data:", "#")) or not value, (tag, name, value[:60])
        assert tag not in ("script", "iframe", "object", "embed")
    assert not re.search(r"@import|url\(\s*['\"]?(?!#)", page)


def test_every_image_has_a_text_and_every_chart_a_title(page):
    tags = Tags(page).found
    images = [attrs for tag, attrs in tags if tag == "img"]
    assert images and all(attrs["alt"] for attrs in images)
    charts = [attrs for tag, attrs in tags if tag == "svg" and attrs.get("role") == "img"]
    assert len(charts) >= 4 and all(attrs["aria-label"] for attrs in charts)


def test_foreign_text_is_escaped(page):
    assert "Do the &lt;alarm&gt; task &amp; finish it" in page
    assert "<alarm>" not in page and "<milk>" not in page


def test_the_strips_show_rewards_sums_and_the_first_failure(page):
    alarm = page[page.index("Do the &lt;alarm&gt;") :]
    alarm = alarm[: alarm.index("</figure>")]
    assert alarm.count('class="step"') == 7 and alarm.count("<img ") == 7
    assert "t* = 5" in alarm and "✓ finishes" in alarm
    assert "= target +6.94" in alarm
    assert alarm.count('class="cell prefix"') == 7 + 6 + 1 - 1
    assert len(re.findall(r'class="cell breakdown first"', alarm)) == 3
    assert len(re.findall(r'class="cell later', alarm)) == 1 + 5 + 3


def test_screens_without_a_screenshot_are_drawn_from_coordinates(page):
    bare = page[page.index("Do the &lt;bare&gt;") :]
    bare = bare[: bare.index("</figure>")]
    assert bare.count("no screenshot</span>") == 4 and "<img " not in bare
    assert 'class="target"' in bare and 'class="mark invalid' in bare and 'class="offered"' in bare


def test_unscored_is_said_and_is_not_zero(page):
    assert "unscored: off screen" in page
    cell = re.search(r'class="cell unscored"[^>]*>\s*<span class="figure">(.*?)</span>', page)
    assert cell and cell.group(1) == "–"


def test_the_same_dataset_gives_the_same_bytes_with_and_without_its_manifest_written(dataset, page, tmp_path):
    copy = shutil.copytree(dataset, tmp_path / "copy")
    manifest = read_manifest(copy)
    (copy / "manifest.json").unlink()
    (copy / "report.html").unlink()
    again = write_report(copy, manifest.model_copy(update={"files": ()}))
    assert again.read_text(encoding="utf-8") == page


def test_a_folder_that_is_no_dataset_is_the_users_fault(tmp_path):
    with pytest.raises(InputError, match=r"no manifest\.json"):
        write_report(tmp_path)


def browse(page: str, folder: Path, *more: str) -> tuple[dict[str, str], str]:
    """Open the page with the probe in a fresh browser; return the body's data attributes and the DOM."""
    if CHROMIUM is None:
        if os.environ.get("REQUIRE_BROWSER") == "1":
            pytest.fail("REQUIRE_BROWSER=1, but there is no Chromium on the path")
        pytest.skip("no Chromium on the path")
    copy = folder / "probed.html"
    copy.write_text(page.replace("</body>", PROBE + "</body>"), encoding="utf-8")
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={folder / 'profile'}", *more, copy.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert "CONSOLE" not in done.stderr
    return dict(re.findall(r'data-(\w+)="(-?\d+)"', done.stdout)), done.stdout


@pytest.mark.browser
@pytest.mark.parametrize("width", [1400, 480])
def test_a_browser_shows_it(page, tmp_path, width):
    seen, dom = browse(page, tmp_path, f"--window-size={width},2400", "--dump-dom")
    assert int(seen["images"]) > 20 and seen["loaded"] == seen["images"]
    assert int(seen["overflow"]) <= 0, "the page itself must not scroll sideways"
    assert seen["tiny"] == seen["cut"] == seen["ragged"] == "0"
    assert dom.count('<table class="strip">') == 5


def longer(strip: str) -> str:
    """Return an episode's strip with its last step twice."""
    strip = re.sub(
        r'(<th scope="col" class="step">(?:(?!</th>).)*</th>)(?=\s*<th[^>]*total)',
        r"\1\1",
        strip,
        flags=re.DOTALL,
    )
    return re.sub(
        r'(<td class="cell(?:(?!</td>).)*</td>)(?=\s*<td class="total)', r"\1\1", strip, flags=re.DOTALL
    )


@pytest.mark.browser
def test_eight_steps_fit_a_laptop_and_a_long_goal_takes_three_lines(page, tmp_path):
    before, seven, after = re.split(r'(<figure class="episode.*</figure>)', page, flags=re.DOTALL)
    (seven,) = (
        strip
        for strip in re.findall(r'<figure class="episode.*?</figure>', seven, re.DOTALL)
        if strip.count('class="step"') == 7
    )
    goal = "Do the &lt;alarm&gt; task &amp; finish it"
    assert seven.count(goal) == 2, "the goal stands in the title too"
    eight = longer(seven.replace(goal, "a goal without an end, " * 200))
    for strip, sideways in ((eight, "0"), (longer(eight), "1")):
        seen, dom = browse(before + strip + after, tmp_path, "--window-size=1400,2400", "--dump-dom")
        assert dom.count('class="step"') == 8 + int(sideways) and seen["sideways"] == sideways
        assert 60 < int(seen["goal"]) < 90


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_screenshot_is_no_blank_page(page, tmp_path, scheme):
    from PIL import Image

    out = tmp_path / "page.png"
    dark = ["--blink-settings=preferredColorScheme=0"] if scheme == "dark" else []
    browse(page, tmp_path, "--window-size=1400,3000", f"--screenshot={out}", *dark)
    with Image.open(out) as image:
        corner = image.convert("L").getpixel((3, 3))
        assert (corner < 60) == (scheme == "dark")
        assert len(image.convert("RGB").getcolors(1 << 22)) > 200
