"""One headless Chromium that plays MiniWoB++ pages: loads a task, shows it, touches it, and goes away.

The pages, the list of elements, the key names and the ways of clicking and typing are those of PyPI's
``miniwob``; the browser is started here, because the package has no place for flags. It reaches no network.
"""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import tempfile
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from solar_rl.errors import InputError, MissingExtra

from .script import LOOK

WIDTH, HEIGHT = 160, 210
"""Pixels of every page's task area, the yellow bar with the goal included."""
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
_FLAGS = (
    "--headless",
    "--remote-debugging-pipe",  # Chromium ends when its driver does
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--disable-smooth-scrolling",
    "--font-render-hinting=none",
    "--lang=en-US",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE localhost",
)
_LEASE = """#!/bin/sh
# Runs the driver for as long as the program that started it holds the other end of stdin, so that a killed
# program leaves neither a driver nor a browser behind.
exec 3<&0
"$SOLAR_DRIVER" "$@" 3<&- &
driver=$!
{
  read -r _ <&3
  kill "$driver"
  sleep 1 # until Chromium, which ends after its driver, has written its last
  rm -rf "$TMPDIR"
} &
reader=$!
trap 'kill "$driver" "$reader" 2>/dev/null; exit 0' TERM INT HUP
wait "$driver"
code=$?
if [ "$code" -ne 143 ]; then kill "$reader"; fi # 143: the reader ended it, and has yet to tidy up
exit "$code"
"""
_STYLE = """
const style = document.createElement("style");
style.textContent = `#reward-display, #click-canvas { display: none !important; }
  html::-webkit-scrollbar { display: none; }
  * { caret-color: transparent !important; }`;
document.head.append(style);
"""
"""Scores and marks of past clicks lie beside the task area, scrollbars of the window would lie on it, and a
blinking caret would differ each time."""
_START = "core.EPISODE_MAX_TIME = 2e9; Math.seedrandom(arguments[0]); core.startEpisodeReal();"
_READY = "return WOB_TASK_READY;"
_STATE = "return { done: WOB_DONE_GLOBAL, raw_reward: WOB_RAW_REWARD_GLOBAL };"
_AT_REST = """
const done = arguments[0];
const styles = [...document.querySelectorAll("#area *")].map((element) => getComputedStyle(element));
const urls = styles.flatMap((style) => [style.content, style.backgroundImage]);
window.solarImages ??= {};
for (const url of urls) {
  if (url.startsWith('url("')) solarImages[url] ??= Object.assign(new Image(), { src: url.slice(5, -2) });
}
const images = [...document.images, ...Object.values(solarImages)];
const rests = () =>
  images.every((image) => image.complete) && !(typeof jQuery !== "undefined" && jQuery(":animated").length);
requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => done(rests()), 0)));
"""
"""Two frames on, so that what a page does with no delay is done; then: are icons there, and nothing moves?"""
_ELEMENT_AT = """
const [x, y] = arguments;
let hit = document.elementFromPoint(x, y);
while (hit && core.previousDOMInfo[hit.dataset.wob_ref] !== hit) hit = hit.parentElement;
return hit ? +hit.dataset.wob_ref : null;
"""
_SCROLL = """
const [x, y, across, down] = arguments;
let element = document.elementFromPoint(x, y);
for (; element; element = element.parentElement) {
  const [left, top] = [element.scrollLeft, element.scrollTop];
  element.scrollBy({ left: across * element.clientWidth, top: down * element.clientHeight, behavior: "instant" });
  if (element.scrollLeft !== left || element.scrollTop !== top) return;
}
"""
_WARM_UP = "enter-text"
"""The first page that a Chromium draws may differ by a fraction of a pixel, so nobody looks at it."""
_LONGEST = 40
"""Characters of a folder's path; a socket's has at most 107, and Chromium adds its own."""
_PATIENCE = 5.0
"""Seconds that a page may take to be ready, or to come to rest."""


def find_program(given: str | None, variable: str, names: tuple[str, ...]) -> str:
    """Return the path of a program: as given, from the environment, or found on PATH.

    Raises:
        InputError: It is nowhere.
    """
    wanted = given or os.environ.get(variable)
    found = shutil.which(wanted) if wanted else next(filter(None, map(shutil.which, names)), None)
    if found is None:
        raise InputError(
            f"no {names[0]} was found",
            where=wanted or "PATH",
            hint=f"install Debian's chromium and chromium-driver, or set {variable}",
        )
    return found


def find_browser(chromium: str | None, chromedriver: str | None) -> tuple[str, str]:
    """Return the paths of Chromium and of its driver; both must be there, nothing is ever downloaded."""
    return (
        find_program(chromium, "MINIWOB_CHROME_BINARY", _BROWSERS),
        find_program(chromedriver, "MINIWOB_CHROMEDRIVER", ("chromedriver",)),
    )


def _short_folder() -> str:
    """Return where temporary files go; Chromium's sockets lie there, and their paths must be short."""
    usual = tempfile.gettempdir()
    return usual if len(usual) <= _LONGEST or not os.path.isdir("/tmp") else "/tmp"


def program_version(program: str) -> str:
    """Return what a browser says its version is, such as ``Chromium 156.0.8078.114``.

    Raises:
        InputError: It doesn't say.
    """
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise InputError(f"the browser doesn't tell its version: {error}", where=program) from error
    return " ".join(done.stdout.split()[:2])


class Browser:
    """A running Chromium.

    Args:
        chromium: Its program (default: found on PATH).
        chromedriver: The driver's program.
        scale: Pixels of a screenshot for one of the page.

    Raises:
        MissingExtra: ``miniwob`` isn't installed.
        InputError: A program is missing, or doesn't start.
    """

    def __init__(
        self, chromium: str | None = None, chromedriver: str | None = None, scale: float = 2.0
    ) -> None:
        try:
            from miniwob import selenium_actions, selenium_instance
        except ImportError as error:
            raise MissingExtra("MiniWoB++", "miniwob") from error
        programs = find_browser(chromium, chromedriver)
        self._do: Any = selenium_actions
        self._pages = selenium_instance.DEFAULT_BASE_URL
        folder = Path(tempfile.mkdtemp(prefix="solar-miniwob-", dir=_short_folder()))
        try:
            with told("Chromium doesn't start"):
                self._driver = _launch(*programs, folder)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        self._end = weakref.finalize(self, _end, self._driver, folder)
        size = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": scale, "mobile": False}
        self._driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.start(_WARM_UP, 0)
        self.screenshot()

    @property
    def version(self) -> str:
        """Return Chromium's version, such as 156.0.8078.114."""
        return str(self._driver.capabilities["browserVersion"])

    def start(self, task: str, seed: int) -> None:
        """Load a task's page anew and start the episode of a seed, without a time limit.

        Raises:
            InputError: The page doesn't load.
        """
        with told(f"page {task} doesn't start"):
            self._driver.get(f"{self._pages}{task}.html")
            self._driver.execute_script(_STYLE)
            self._driver.execute_script(_START, seed)
            self._wait(lambda: self._driver.execute_script(_READY))

    def look(self) -> dict[str, Any]:
        """Return what the script sees, once nothing moves any more."""
        with told("the page can't be read"):
            self._wait(lambda: self._driver.execute_async_script(_AT_REST))
            seen: dict[str, Any] = self._driver.execute_script(LOOK, WIDTH, HEIGHT)
            return seen

    def judge(self) -> tuple[bool, float]:
        """Return whether the page has ended the episode, and its raw reward."""
        with told("the page can't be read"):
            state = self._driver.execute_script(_STATE)
            return bool(state["done"]), float(state["raw_reward"])

    def screenshot(self) -> bytes:
        """Return the task area as a PNG."""
        with told("no screenshot"):
            shot = self._driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})
            return base64.b64decode(shot["data"])

    def click_element(self, x: float, y: float) -> None:
        """Click, by script, the element on top at a point in the page's pixels."""
        with told("a click failed"):
            ref = self._driver.execute_script(_ELEMENT_AT, x, y)
            if ref is not None:
                self._do.execute_click_element(ref, self._driver)

    def click(self, x: float, y: float, times: int = 1) -> None:
        """Click with the pointer."""
        with told("a click failed"):
            act = self._do.execute_click_coords if times == 1 else self._do.execute_dblclick_coords
            act(x, y, self._driver)

    def move(self, x: float, y: float) -> None:
        """Move the pointer."""
        with told("a pointer's move failed"):
            self._do.execute_move_coords(x, y, self._driver)

    def drag(self, x: float, y: float, x2: float, y2: float) -> None:
        """Drag with the pointer."""
        with told("a drag failed"):
            self._do.execute_mousedown_coords(x, y, self._driver)
            self._do.execute_mouseup_coords(x2, y2, self._driver)

    def scroll(self, x: float, y: float, across: float, down: float) -> None:
        """Scroll what lies under a point, by shares of what it shows."""
        with told("a scroll failed"):
            self._driver.execute_script(_SCROLL, x, y, across, down)

    def type(self, text: str) -> None:
        """Type into what has the focus."""
        with told("typing failed"):
            self._do.execute_type_text(text, self._driver)

    def press(self, key: str) -> None:
        """Press a key, spelt as ``miniwob`` does: ``C-a``, ``<Enter>``."""
        with told("a key failed"):
            self._do.execute_press_key(key, self._driver)

    def close(self) -> None:
        """End the browser and its driver and remove their files."""
        self._end()

    def _wait(self, ready: Any) -> None:
        give_up = time.monotonic() + _PATIENCE
        while not ready():
            if time.monotonic() > give_up:
                raise InputError(f"the page wasn't ready within {_PATIENCE:.0f} s")
            time.sleep(0.01)


def _launch(chromium: str, chromedriver: str, folder: Path) -> Any:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    options.unhandled_prompt_behavior = "dismiss"
    for flag in _FLAGS:
        options.add_argument(flag)
    lease = folder / "chromedriver"
    lease.write_text(_LEASE)
    lease.chmod(0o700)
    own = {"SOLAR_DRIVER": chromedriver, "TMPDIR": str(folder), "TZ": "UTC", "LC_ALL": "C.UTF-8"}
    service = Service(executable_path=str(lease), env=os.environ | own)
    return webdriver.Chrome(service=service, options=options)


def _end(driver: Any, folder: Path) -> None:
    driver.quit()
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def told(what: str) -> Iterator[None]:
    """Tell what Selenium raises as an error of ours."""
    from selenium.common.exceptions import WebDriverException

    try:
        yield
    except WebDriverException as error:
        reason = (error.msg or type(error).__name__).splitlines()[0]
        raise InputError(f"{what}: {reason}", where="MiniWoB++") from error
