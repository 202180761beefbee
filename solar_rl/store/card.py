"""Render README.md of a dataset: the Hub's YAML, how it was made, and what this build measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import yaml

from solar_rl.errors import InputError
from solar_rl.schema import TABLES
from solar_rl.store.features import yaml_features
from solar_rl.store.manifest import Attribution, Manifest

if TYPE_CHECKING:
    import polars as pl

TEMPLATE = "card.md.jinja"
DEFAULT_CONFIG = "preview"
# (upper bound of rows, the Hub's name for it)
_SIZES = (
    (1_000, "n<1K"),
    (10_000, "1K<n<10K"),
    (100_000, "10K<n<100K"),
    (1_000_000, "100K<n<1M"),
    (10_000_000, "1M<n<10M"),
    (100_000_000, "10M<n<100M"),
)


def render_card(
    manifest: Manifest,
    headline: Mapping[str, float | int | None],
    tables: Mapping[str, pl.DataFrame] | None = None,
    attribution: Attribution | None = None,
) -> str:
    """Render the dataset card.

    Args:
        manifest: With ``files`` of the parquet tables; its own entry for README.md isn't needed.
        headline: ``stats.headline``: figures by name.
        tables: Titled statistics to print, such as those of ``stats.compute(con, "validity")``.
        attribution: Licence, home and citation of the source (default: the manifest's).

    Raises:
        InputError: The manifest lists no parquet file.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    attribution = attribution or manifest.attribution
    environment = Environment(
        loader=PackageLoader("solar_rl.store", "."),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # it is Markdown
    )
    environment.filters["markdown"] = markdown_table
    environment.filters["figure"] = figure
    return environment.get_template(TEMPLATE).render(
        front=yaml.safe_dump(front_matter(manifest, attribution), sort_keys=False, allow_unicode=True),
        m=manifest,
        config=manifest.config,
        headline=headline,
        statistics=tables or {},
        source=attribution,
        schema=TABLES,
        rows={name: manifest.table_rows(name) for name in TABLES},
        left_out=_reasons(manifest),
    )


def _reasons(manifest: Manifest) -> list[str]:
    """Name the columns of the table of what was filtered: found, left out by reason, drawn."""
    named = {reason for counts in manifest.filtered.values() for reason in counts}
    ends = [name for name in ("drawn", "missing") if name in named]
    return ["good", *sorted(named - {"good", *ends}), *ends]


def front_matter(manifest: Manifest, attribution: Attribution | None = None) -> dict[str, Any]:
    """Return the card's YAML: licence, configs (``preview`` is the default), features, tags, size.

    Raises:
        InputError: The manifest lists no file of some table.
    """
    for name in TABLES:
        if not manifest.table_rows(name):
            raise InputError(f"the manifest lists no file of table '{name}'", where=manifest.name)
    license_ = manifest.config.get("license") or (attribution.license if attribution else None) or "other"
    total = sum(manifest.table_rows("candidates").values())
    front: dict[str, Any] = {"license": license_.lower()}
    if attribution and license_ == "other":
        front["license_name"] = "see-source"
    # load_dataset refuses a split without rows: such tables are for SQL alone and make no config
    names = [name for name in (DEFAULT_CONFIG, *TABLES) if _splits(manifest, name)]
    names = list(dict.fromkeys(names))
    return front | {
        "pretty_name": manifest.name,
        "task_categories": ["reinforcement-learning", "image-text-to-text"],
        "tags": ["gui-agents", "grpo", "reward-shaping", "trajectories", "solar-rl"],
        "size_categories": [next((name for top, name in _SIZES if total < top), "n>100M")],
        "configs": [_config(name, manifest, default=name == names[0]) for name in names],
        "dataset_info": [_info(name, manifest) for name in names],
    }


def _splits(manifest: Manifest, table: str) -> dict[str, int]:
    return {split: rows for split, rows in manifest.table_rows(table).items() if rows}


def _config(table: str, manifest: Manifest, *, default: bool) -> dict[str, Any]:
    paths = [
        {"split": split, "path": f"data/{table}/{split}-*.parquet"} for split in _splits(manifest, table)
    ]
    return {"config_name": table, "data_files": paths, **({"default": True} if default else {})}


def _info(table: str, manifest: Manifest) -> dict[str, Any]:
    rows = _splits(manifest, table)
    sizes = {
        split: sum(f.bytes for f in manifest.files if f.path.startswith(f"data/{table}/{split}-"))
        for split in rows
    }
    return {
        "config_name": table,
        "features": yaml_features(table),
        # num_bytes is asked for and never checked; the size on disk stands in for the one in memory
        "splits": [{"name": split, "num_bytes": sizes[split], "num_examples": rows[split]} for split in rows],
        "download_size": sum(sizes.values()),
        "dataset_size": sum(sizes.values()),
    }


def figure(value: Any) -> str:
    """Print one figure: thousands with commas, shares and scores with four significant digits.

    >>> figure(752000), figure(0.61234567), figure(None)
    ('752,000', '0.6123', '')
    """
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value).replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


def markdown_table(frame: pl.DataFrame, rows: int = 20) -> str:
    """Render the first rows of a frame as a Markdown table.

    >>> import polars as pl
    >>> print(markdown_table(pl.DataFrame({"app": ["notes"], "valid": [0.5]})))
    | app | valid |
    |---|---|
    | notes | 0.5 |
    """
    lines = [f"| {' | '.join(frame.columns)} |", "|" + "---|" * frame.width]
    lines += [f"| {' | '.join(map(figure, row))} |" for row in frame.head(rows).rows()]
    if frame.height > rows:
        lines.append(f"\nAnd {frame.height - rows:,} more rows.")
    return "\n".join(lines)
