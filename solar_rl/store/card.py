"""Render README.md of a dataset: the Hub's YAML, how it was made, and what this build measured."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import yaml

from solar_rl.errors import InputError
from solar_rl.schema import SPLITS, TABLES
from solar_rl.store.features import yaml_features
from solar_rl.store.manifest import Attribution, Manifest

if TYPE_CHECKING:
    import polars as pl
    from jinja2 import Environment

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


def card_environment() -> Environment:
    """Return what every card's template is rendered in: strict about names, Markdown left as it is."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("solar_rl.store", "."),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # it is Markdown
    )


def render_card(
    manifest: Manifest,
    headline: Mapping[str, float | int | None],
    tables: Mapping[str, pl.DataFrame] | None = None,
    attribution: Attribution | None = None,
    *,
    picture: str | None = None,
    croissant: bool = False,
) -> str:
    """Render the dataset card.

    Args:
        manifest: With ``files`` of the parquet tables; its own entry for README.md isn't needed.
        headline: ``stats.headline``: figures by name.
        tables: Titled statistics to print, such as those of ``stats.compute(con, "validity")``.
        attribution: Licence, home and citation of the source (default: the manifest's).
        picture: Path of a picture beside the card, relative to it.
        croissant: Whether croissant.json lies beside the card.

    Raises:
        InputError: The manifest lists no parquet file.
    """
    attribution = attribution or manifest.attribution
    environment = card_environment()
    environment.filters["markdown"] = markdown_table
    environment.filters["figure"] = figure
    environment.filters["percent"] = percent
    environment.filters["markdown_text"] = markdown_text
    text = environment.get_template(TEMPLATE).render(
        front=yaml.safe_dump(front_matter(manifest, attribution), sort_keys=False, allow_unicode=True),
        m=manifest,
        config=manifest.config,
        headline=headline,
        statistics=tables or {},
        source=attribution,
        schema=TABLES,
        rows={name: manifest.table_rows(name) for name in TABLES},
        left_out=_reasons(manifest),
        splits=[split for split in SPLITS if any(split in manifest.table_rows(name) for name in TABLES)],
        made=list(_made(manifest, attribution)),
        picture=picture,
        croissant=croissant,
    )
    return re.sub(r"\n{3,}", "\n\n", text)  # what a condition left out leaves its empty lines


def _made(manifest: Manifest, source: Attribution | None) -> Iterator[tuple[str, str]]:
    """Say how the dataset was made, row by row; what the config doesn't tell is left out."""
    config = manifest.config
    builder, prompt, sampler, validity, shaping = (
        config.get(name, {}) for name in ("source", "prompt", "sampler", "validity", "shaping")
    )
    if builder:
        named = source.source if source else builder.get("builder", "")
        yield (
            "source",
            f"{named}, read by builder `{builder.get('builder')}`"
            if named != builder.get("builder")
            else named,
        )
    if sampler:
        yield "sampler", ", ".join(_sampler(sampler))
    if prompt:
        words = (f"{name} {prompt[name]}" for name in ("level", "observation", "history") if name in prompt)
        yield "prompt", ", ".join((f"format `{prompt.get('format')}`", *words))
    if validity:
        verifier = validity.get("verifier")
        yield (
            "validity",
            f"verifier `{verifier}`"
            if verifier
            else f"preset {validity.get('preset')}{_thresholds(validity)}",
        )
    if shaping:
        weights = ", ".join(
            f"{shaping[f'{name}_weight']:g} {name}"
            for name in ("score", "progress", "success")
            if f"{name}_weight" in shaping
        )
        suffix = (
            f", suffix {shaping['suffix']}"
            if shaping.get("alignment") != "segments" and "suffix" in shaping
            else ""
        )
        normalisation = f", normalisation {shaping.get('normalisation', 'none')}"
        yield (
            "shaping",
            f"alignment `{shaping.get('alignment')}`{suffix}{normalisation}"
            + (f"; R_traj = {weights}" if weights else ""),
        )
    scale = config.get("advantage", {}).get("scale", "none")
    yield (
        "advantage",
        "reward minus its group's mean" + (", divided by the group's std" if scale == "std" else ""),
    )
    yield (
        "build",
        f"`{manifest.build_id}`, seed {manifest.seeds.get('build', 0)}, solar-rl {manifest.code.get('solar-rl', '?')}",
    )
    if manifest.stages:
        yield "stages", ", ".join(f"{stage} `{key}`" for stage, key in manifest.stages.items())


def _sampler(sampler: Mapping[str, Any]) -> Iterator[str]:
    model, revision = sampler.get("model"), sampler.get("revision")
    yield str(sampler.get("type"))
    if model:
        yield f"model `{model}`" + (f" at revision `{revision}`" if revision else "")
    for name in ("n", "temperature", "adaptive"):
        if sampler.get(name):
            yield {"n": f"N = {sampler['n']}", "adaptive": "adaptive (a pilot first)"}.get(
                name, f"{name} {sampler[name]}"
            )


def _thresholds(validity: Mapping[str, Any]) -> str:
    found = [
        f"{kind} {validity[f'{kind}_threshold']:g}"
        for kind in ("click", "text", "launch")
        if f"{kind}_threshold" in validity
    ]
    return f", valid from {', '.join(found)}" if found else ""


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
    front: dict[str, Any] = {"language": list(manifest.config.get("language", ("en",)))}
    front["license"] = license_.lower()
    if attribution and license_ == "other":
        front["license_name"] = "see-source"
    # load_dataset refuses a split without rows: such tables are for SQL alone and make no config
    names = [name for name in (DEFAULT_CONFIG, *TABLES) if _splits(manifest, name)]
    names = list(dict.fromkeys(names))
    return front | {
        "pretty_name": manifest.name,
        "task_categories": ["reinforcement-learning", "image-text-to-text"],
        "tags": ["gui-agents", "grpo", "reward-shaping", "trajectories", "solar-rl", "arxiv:2604.22558"],
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


def percent(share: float | None) -> str:
    """Print a share as per cent.

    >>> percent(0.61234), percent(None)
    ('61.2 %', 'none')
    """
    return "none" if share is None else f"{100 * share:.1f} %"


def markdown_text(text: str) -> str:
    r"""Escape what Markdown or HTML would read as markup.

    >>> print(markdown_text("<b> a|b*"))
    &lt;b> a\|b\*
    """
    escaped = re.sub(r"([|*_`\[\]\\])", r"\\\1", text)
    return escaped.replace("<", "&lt;").replace("\n", " ")


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
