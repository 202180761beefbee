"""Frozen records that are cheap to make: a build makes millions of steps and actions.

``record(frozen=True, slots=True)`` is the standard library's ``dataclass`` to a type checker, and ``fields``,
``replace`` and ``asdict`` work on what it makes. At run time that is a ``msgspec.Struct``: made and compared in C,
and left out of garbage collection, since a record can't lead back to itself. A frozen dataclass takes five times as
long to make, and making records was half of the time of reading lines without screenshots
(benchmarks/bench_sources.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass as record
else:
    from collections.abc import Callable
    from dataclasses import MISSING, dataclass, fields

    import msgspec

    _OF_A_DATACLASS = ("__dataclass_fields__", "__dataclass_params__")

    def record(*, frozen: bool, slots: bool) -> Callable[[type], type]:
        """Make a struct of a class's annotated fields, with its methods; both arguments hold for every struct."""

        def make(cls: type) -> type:
            plain = dataclass(frozen=True)(cls)
            told = fields(plain)
            struct = msgspec.defstruct(
                cls.__name__,
                [(f.name, f.type) if f.default is MISSING else (f.name, f.type, f.default) for f in told],
                namespace=_methods(plain, {f.name for f in told}),
                module=cls.__module__,
                frozen=True,
                gc=False,
            )
            for name in _OF_A_DATACLASS:
                setattr(struct, name, getattr(plain, name))
            return struct

        return make

    def _methods(plain: type, told: set[str]) -> dict[str, object]:
        """Return what a class's own body says beside its fields: methods, properties, docstring."""
        made = {
            "__init__",
            "__repr__",
            "__eq__",
            "__hash__",
            "__setattr__",
            "__delattr__",
            "__dict__",
            "__weakref__",
        }
        left_out = {*made, *told, *_OF_A_DATACLASS, "__annotations__", "__match_args__"}
        return {name: value for name, value in vars(plain).items() if name not in left_out}


__all__ = ["record"]
