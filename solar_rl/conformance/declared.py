"""Check what a builder says of itself: name, licence, options, shards, files, and what it refuses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from solar_rl.builder import Builder, Sign, load_builder
from solar_rl.config import Config, SourceConfig
from solar_rl.conformance.finding import Finding
from solar_rl.errors import InputError

_STRANGE = (b"", b"\0" * 4096, b"[]", b"{}\n", b'{"goal": 1, "steps": [2]}\n', b"\x1f\x8b", b"PAR1")


def declarations(builder: Builder, source: SourceConfig) -> Iterator[Finding]:
    """Check everything that can be asked without reading an episode."""
    cls = type(builder)
    plain = isinstance(cls.name, str) and re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", cls.name)
    yield Finding.of("has_a_plain_name", [] if plain else [f"name is {cls.name!r}, expected a short word"])
    for name in ("license", "homepage"):
        missing = [] if getattr(cls, name) else [f"{name} is not given: cards will say nothing of it"]
        yield Finding.of(f"says_its_{name}", missing, only_warn=True)
    yield Finding.of("options_are_a_config", _options(cls))
    yield Finding.of(
        "refuses_unknown_options", _accepts(source, options={**source.options, "no_such_option": 1})
    )
    if cls.needs_path:
        yield Finding.of("refuses_a_missing_path", _accepts(source, path=f"{builder.path}.not_there"))
        yield Finding.of("source_files_exist", _files(builder))
        if not builder.source_files():
            yield Finding(
                "source_files_are_listed", "warn", 1, "none: a changed source isn't noticed by a build"
            )
    yield Finding.of("shards_are_fixed", _shards(builder, load_builder(source)))
    yield from _recognition(builder)


def _options(cls: type[Builder]) -> Iterator[str]:
    if not issubclass(cls.Options, Config):
        yield "Options is no subclass of solar_rl.config.Config"
        return
    for name, field in cls.Options.model_fields.items():
        if not field.description:
            yield f"option {name} has no docstring: `--help` would say nothing of it"


def _accepts(source: SourceConfig, **changes: Any) -> Iterator[str]:
    try:
        load_builder(source.model_copy(update=changes))
    except InputError:
        return
    except Exception as error:
        yield f"raises {type(error).__name__}: {error}; expected a ConfigError (does __init__ call super's?)"
    else:
        yield "is accepted without a word"


def _files(builder: Builder) -> Iterator[str]:
    files = builder.source_files()
    yield from (f"no such file: {file}" for file in files if not Path(file).is_file())
    if files != builder.source_files():
        yield "a second call lists others, or in another order"


def _shards(builder: Builder, other: Builder) -> Iterator[str]:
    shards = builder.shards()
    if not isinstance(shards, list) or not all(isinstance(shard, str) for shard in shards):
        yield f"shards() is {type(shards).__name__}, expected a list of texts"
        return
    if not shards:
        yield "shards() is empty: there is nothing to read"
    yield from sorted({f"shard {shard!r} is listed twice" for shard in shards if shards.count(shard) > 1})
    for again, who in ((builder.shards(), "a second call"), (other.shards(), "a second builder")):
        if again != shards:
            yield f"{who} lists others, or in another order"


def _recognition(builder: Builder) -> Iterator[Finding]:
    cls = type(builder)
    if not cls.needs_path:
        return
    if cls.recognises.__func__ is Builder.recognises.__func__:  # type: ignore[attr-defined]
        yield Finding("recognises_its_format", "skip", 0, "there is no recognises: `inspect` can't guess it")
        return
    sign = cls.recognises(builder.path)
    fits = isinstance(sign, Sign) and 0 < sign.certainty <= 1 and sign.why
    yield Finding.of("recognises_its_format", [] if fits else [f"recognises(sample) is {sign!r}"])
    yield Finding.of("recognises_nothing_else", _mistaken(cls))


def _mistaken(cls: type[Builder]) -> Iterator[str]:
    with TemporaryDirectory() as name:
        folder = Path(name)
        for path in (folder / "not there", folder):
            yield from _taken(cls, path, f"{'an empty folder' if path == folder else 'a missing path'}")
        for data in _STRANGE:
            for suffix in (".jsonl", ".json", ".parquet", ""):
                path = folder / f"a{suffix}"
                path.write_bytes(data)
                yield from _taken(cls, path, f"a file {path.name} of {data[:12]!r}")
                path.unlink()


def _taken(cls: type[Builder], path: Path, what: str) -> Iterator[str]:
    try:
        sign = cls.recognises(path)
    except Exception as error:
        yield f"raises {type(error).__name__} for {what}: {error}"
    else:
        if sign is not None:
            yield f"takes {what} for its own: {sign.why}"
