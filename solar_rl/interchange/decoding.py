"""Decode a line as the model says, in C: what nearly every line of a file passes through.

The structs are made from the pydantic models, so that there is one definition of what a line may hold. They tell good
lines from others and nothing more; what is wrong with one, pydantic says.
"""

from __future__ import annotations

from functools import cache, reduce
from operator import or_
from types import NoneType, UnionType
from typing import Annotated, Any, Union, cast, get_args, get_origin

import msgspec
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from solar_rl.interchange.model import InterchangeEpisode, told_line

_UNIONS = (Union, UnionType)
_UNLIKE = (msgspec.DecodeError, UnicodeDecodeError)


def parse_line(line: bytes | str) -> InterchangeEpisode:
    """Read one line as the model.

    Returns:
        The model, or a struct with the same attributes.

    Raises:
        RecordError: As ``told_line``.
    """
    try:
        return cast(InterchangeEpisode, _decoder().decode(line))
    except _UNLIKE:
        return told_line(line)


@cache
def _decoder() -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(_struct(InterchangeEpisode))


@cache
def _struct(model: type[BaseModel]) -> type[msgspec.Struct]:
    fields = [_field(name, info) for name, info in model.model_fields.items()]
    return msgspec.defstruct(
        model.__name__, fields, kw_only=True, gc=False, forbid_unknown_fields=True, module=__name__
    )


def _field(name: str, info: FieldInfo) -> tuple[str, Any] | tuple[str, Any, Any]:
    kind = _limited(_kind(info.annotation), info)
    return (name, kind) if info.is_required() else (name, kind, info.default)


def _kind(annotation: Any) -> Any:
    """Return the type that msgspec knows for one of the model's."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return _struct(annotation)
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _limited(_kind(parts[0]), FieldInfo.from_annotation(annotation))
    if origin in _UNIONS:
        return reduce(or_, map(_kind, parts))
    return origin[tuple(map(_kind, parts))] if origin is tuple else annotation


def _limited(kind: Any, info: FieldInfo) -> Any:
    """Add what the model says of a value that isn't null: its range, its shortest length, its pattern."""
    limits = {
        name: value
        for part in info.metadata
        for name in ("ge", "lt", "min_length", "pattern")
        if (value := getattr(part, name, None)) is not None
    }
    if not limits:
        return kind
    if "pattern" in limits:  # in Python, $ also matches before a last line break
        limits["pattern"] = limits["pattern"].removesuffix("$") + r"\Z"
    parts = get_args(kind) if get_origin(kind) in _UNIONS else (kind,)
    meta = msgspec.Meta(**limits)
    return reduce(or_, [part if part is NoneType else Annotated[part, meta] for part in parts])
