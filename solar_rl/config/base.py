"""What every config model shares: frozen, no unknown keys, a digest of what changes results."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from pydantic import BaseModel, ConfigDict

SPEED_ONLY: dict[str, Any] = {"speed_only": True}
"""``json_schema_extra`` of a field that changes how fast a build runs but not what it gives."""


class Config(BaseModel):
    """Base of every config model: frozen, no unknown keys, field docstrings as help."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    def digest(self) -> str:
        """Return a hex digest of every field that can change a result."""
        text = json.dumps(_results_only(self), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


def _results_only(value: Any) -> Any:
    if isinstance(value, Config):
        fields = type(value).model_fields
        kept = (n for n, f in fields.items() if (f.json_schema_extra or {}) != SPEED_ONLY)
        return {name: _results_only(getattr(value, name)) for name in kept}
    if isinstance(value, (list, tuple)):
        return [_results_only(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _results_only(item) for key, item in value.items()}
    return value
