"""Close a dataset: views, report, card, and the manifest last of all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from solar_rl.config import DatasetConfig
from solar_rl.pipeline.checks import run_checks
from solar_rl.pipeline.keys import Keys
from solar_rl.schema import Reject
from solar_rl.store.fingerprint import schema_hashes
from solar_rl.store.manifest import (
    Attribution,
    FileEntry,
    Manifest,
    describe_files,
    library_versions,
    read_manifest,
    write_manifest,
    write_text,
)

if TYPE_CHECKING:
    from solar_rl.report.strip import Images

CARD_STATS = ("first_failure", "validity", "truncation")
"""Statistics whose tables the card prints."""


@dataclass(frozen=True)
class Origin:
    """Where a dataset comes from: its portable config, the keys of its stages and its source."""

    config: DatasetConfig
    keys: Keys
    source_files: tuple[FileEntry, ...]
    attribution: Attribution | None
    filtered: dict[str, dict[str, int]] = field(default_factory=dict)
    base: Manifest | None = None
    """The version whose sampled tables are kept, if they are."""


@contextmanager
def prepared() -> Iterator[None]:
    """Load what ``finish`` needs in a thread while the block works on columns, which leaves Python idle."""

    def load() -> None:
        from solar_rl import query
        from solar_rl.report import page, picture

        query.preload()
        page.preload()
        picture.preload()

    with ThreadPoolExecutor(1) as thread:
        loading = thread.submit(load)
        yield
        loading.result()


def finish(
    out: Path,
    origin: Origin,
    rejects: Iterable[Reject],
    known: Mapping[str, FileEntry] | None = None,
    images: Images | None = None,
) -> Manifest:
    """Write views.sql, report.html, the card, its picture, croissant.json and then manifest.json.

    Args:
        out: Folder whose tables are written.
        origin: Where they come from.
        rejects: What was not built.
        known: Entries of files that needn't be hashed again (hard-linked tables).
        images: Reads screenshots for report and picture (default: from the version's own table).
    """
    from solar_rl import query, stats
    from solar_rl.report import write_report
    from solar_rl.report.card_picture import write_picture
    from solar_rl.store.card import render_card
    from solar_rl.store.croissant import CROISSANT, render_croissant

    write_text(out / "views.sql", query.views_sql())
    reasons = dict(sorted(Counter(reject.reason for reject in rejects).items()))
    tables = tuple(describe_files(out, known))
    with query.connect(out, unfinished=True) as con, ThreadPoolExecutor(1) as thread:
        drawing = thread.submit(write_picture, out, con.cursor(), images)  # Pillow leaves Python idle
        answers = stats.Answers(con)
        manifest = Manifest(
            name=origin.config.name,
            version=origin.config.version,
            build_id=origin.keys.build_id,
            stages=origin.keys.stages,
            config=origin.config.model_dump(mode="json"),
            attribution=origin.attribution,
            source_files=origin.source_files,
            sampler_files=origin.keys.inputs["sample"].files,
            code=origin.keys.code,
            libraries=library_versions(),
            seeds={"build": origin.config.seed},
            counts=_counts(tables),
            rejects=reasons,
            filtered=origin.filtered,
            schemas=schema_hashes(),
            checks=run_checks(con, out, origin.config, origin.base),
            files=tables,
        )
        write_report(out, manifest, answers, images)
        shown = {title: table for name in CARD_STATS for title, table in answers.compute(name).items()}
        picture = drawing.result()
        write_text(out / CROISSANT, render_croissant(manifest))
        card = render_card(manifest, answers.headline, shown, picture=picture, croissant=True)
        write_text(out / "README.md", card)
    known = {entry.path: entry for entry in tables if entry.path.startswith("data/")}
    manifest = manifest.model_copy(update={"files": tuple(describe_files(out, known))})
    write_manifest(out, manifest)
    return manifest


def refresh_report(out: Path) -> None:
    """Write report.html anew and its hash into the manifest."""
    from solar_rl.report import write_report

    manifest = read_manifest(out)
    write_report(out, manifest)
    known = {entry.path: entry for entry in manifest.files if entry.path != "report.html"}
    write_manifest(out, manifest.model_copy(update={"files": tuple(describe_files(out, known))}))


def _counts(files: Iterable[FileEntry]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for entry in files:
        if entry.rows is not None:
            table = entry.path.split("/")[1]
            counts[table] = counts.get(table, 0) + entry.rows
    order = ("episodes", "steps", "images", "candidates", "rewards", "trajectories", "preview")
    return {table: counts[table] for table in order if table in counts}
