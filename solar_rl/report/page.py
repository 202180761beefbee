"""Render the page: one HTML file that loads nothing from anywhere."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from solar_rl.report import data_charts, failure_charts, headline, reward_charts, sampling_charts, words
from solar_rl.report.picks import Pick, pick_episodes
from solar_rl.report.screens import data_uris
from solar_rl.report.strip import Images, Strip, images_of, make_strip, read_records

if TYPE_CHECKING:
    from jinja2 import Environment

    from solar_rl.query import Connection
    from solar_rl.stats import Answers
    from solar_rl.store.manifest import Manifest

REPORT = "report.html"
SECTIONS = (
    failure_charts.failures,
    failure_charts.validity,
    sampling_charts.sampling,
    reward_charts.rewards,
    reward_charts.learning,
    data_charts.labels,
)


def render_page(answers: Answers, manifest: Manifest, images: Images | None = None) -> str:
    """Return the whole report as HTML.

    Args:
        answers: The dataset's statistics, over a connection from ``query.connect``.
        manifest: Name, version, build, config, code and rejects; its ``files`` are not looked at, so that
            a build can write its report before its manifest.
        images: Reads screenshots (default: from the dataset's own table).
    """
    strips, shots = _strips(answers.con, images)
    figures = answers.headline
    template = environment().get_template("page.html.j2")
    return template.render(
        name=manifest.name,
        version=manifest.version,
        description=manifest.config.get("description", ""),
        build_id=manifest.build_id,
        code=sorted(manifest.code.items()),
        facts=headline.facts(manifest),
        summary=headline.summary(figures),
        cards=headline.cards(figures, manifest),
        sections=[section(answers) for section in SECTIONS],
        strips=strips,
        shots=shots,
        css=css("page.css"),
    )


def _strips(con: Connection, images: Images | None) -> tuple[list[tuple[Pick, Strip]], dict[str, str]]:
    """Lay out the chosen episodes and encode the screenshots that they show."""
    picks = pick_episodes(con)
    records = read_records(con, [pick.episode_id for pick in picks])
    strips = [(pick, make_strip(records[pick.episode_id])) for pick in picks]
    shown = images_of(con, records.values(), (strip for _, strip in strips), images)
    return strips, data_uris(shown)


def preload() -> None:
    """Compile the templates of ``render_page``, for a build that has a core to spare meanwhile."""
    for name in ("page.html.j2", "charts.html.j2", "strip.html.j2", "reading.html.j2"):
        environment().get_template(name)


@cache
def environment() -> Environment:
    """Return the templates of this package, with the filters that they use."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("solar_rl.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    environment.filters["px"] = _pixels
    environment.filters["decimal"] = words.decimal
    return environment


def _pixels(value: float) -> str:
    """Write a length with at most one decimal, so that the page stays small."""
    return f"{value:.1f}".removesuffix(".0")


@cache
def css(*names: str) -> Any:
    """Return the style sheets of this package as one, without indentation and empty lines."""
    from markupsafe import Markup

    sheets = (resources.files("solar_rl.report").joinpath(name).read_text(encoding="utf-8") for name in names)
    return Markup("\n".join(line.strip() for sheet in sheets for line in sheet.splitlines() if line.strip()))
