"""Test a builder on a sample against the contract of docs/builders.md: for one's own builders, and for ours."""

from __future__ import annotations

from collections.abc import Iterator

from solar_rl.builder import Builder, load_builder
from solar_rl.config import SourceConfig
from solar_rl.conformance.damage import damaged_samples
from solar_rl.conformance.declared import declarations
from solar_rl.conformance.finding import Finding
from solar_rl.conformance.items import Reading, contents
from solar_rl.conformance.repeating import repeats
from solar_rl.errors import SolarError

__all__ = ["Finding", "conform"]


def conform(source: SourceConfig) -> Iterator[Finding]:
    """Yield what each check finds, in an order in which later ones build on earlier ones.

    Args:
        source: The builder (module:Class, or a short name), its options, and the path of a small sample.

    Raises:
        ConfigError: The builder can't be imported, or refuses the sample or its options.
    """
    builder = load_builder(source)
    before = _stamps(builder)
    yield from declarations(builder, source)
    try:
        shards = builder.shards()
        reading = Reading.of(builder, shards)
    except Exception as error:
        yield Finding.of("reads_the_sample", [_told(error)])
        return
    yield from contents(builder, reading)
    yield from repeats(source, reading)
    yield from damaged_samples(builder, source, reading)
    changed = sorted(set(_stamps(builder)) ^ set(before))
    yield Finding.of("leaves_the_sample_alone", [name for name, _, _ in changed])


def _told(error: Exception) -> str:
    hint = (
        "; a broken record is a Reject that is yielded, not an error" if isinstance(error, SolarError) else ""
    )
    return f"raises {type(error).__name__}: {error}{hint}"


def _stamps(builder: Builder) -> list[tuple[str, int, int]]:
    """Note every file of the sample with its size and time."""
    if not builder.needs_path:
        return []
    root = builder.path
    files = [root] if root.is_file() else sorted(path for path in root.rglob("*") if path.is_file())
    stats = ((str(path), path.stat()) for path in files)
    return [(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats]
