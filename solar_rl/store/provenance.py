"""Say what makes a checkpoint, as it is made: the dataset's version, the recipe, the code and what it starts from.

A trainer puts ``made_by`` into its record (training.json), and the model card (``checkpoint_card``) and
``evaluate`` read it back. It holds no path of the machine and no token.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import MISSING, Field, fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from solar_rl.errors import InputError
from solar_rl.store.dataset import SolarDataset, open_dataset
from solar_rl.store.manifest import code_versions

RECORD = "training.json"
"""What a training run leaves beside the weights."""
KEY = "made_by"
LIBRARIES = ("accelerate", "peft", "torch", "transformers", "trl", "vllm")
_OWN = (
    "output_dir",
    "model_name_or_path",
    "logging_dir",
    "run_name",
    "resume_from_checkpoint",
    "local_rank",
    "dataset",
)
"""Fields that say where something lies on a machine, not what is done."""
_SECRET = ("token", "api_key", "password", "secret")


def made_by(
    dataset: str | Path,
    model: str,
    *parts: Any,
    revision: str | None = None,
    recipe: str | None = None,
    written: Collection[str] | None = None,
) -> dict[str, dict[str, Any]]:
    """Describe a training run, for its record.

    Args:
        dataset: Folder, or OWNER/NAME on the Hub, as the recipe names it.
        model: What training starts from: a folder or an id on the Hub.
        parts: The recipe's dataclasses (our arguments, TRL's config, TRL's model config).
        revision: Tag, branch or commit of a dataset on the Hub.
        recipe: Name of the recipe.
        written: Fields that its file or the command line sets (default: all that differ from their defaults,
            those that a dataclass fills in itself among them).

    Returns:
        ``{"made_by": ...}``: dataset, prompt, recipe_name, recipe (fields that differ from their defaults), code,
        starts_from.

    Raises:
        InputError: No such dataset.
    """
    found = {
        "dataset": _dataset(source := open_dataset(dataset, revision)),
        "prompt": source.manifest.config.get("prompt", {}),
        "recipe_name": recipe,
        "recipe": {
            name: value
            for part in parts
            for name, value in changed_fields(part).items()
            if written is None or name in written
        },
        "code": code_versions() | _libraries(),
        "starts_from": _start(model),
    }
    return {KEY: found}


def changed_fields(part: Any) -> dict[str, Any]:
    """Return the fields of a dataclass that differ from their defaults, paths as names alone, no secrets."""
    given = (
        part.to_dict() if hasattr(part, "to_dict") else {f.name: getattr(part, f.name) for f in fields(part)}
    )
    kept = {}
    for field in fields(part):
        value = given.get(field.name)
        if value == _default(field) or field.name in _OWN or field.name.startswith("_"):
            continue
        if isinstance(value, str) and field.name.endswith(_SECRET):
            continue
        kept[field.name] = _plain(value)
    return kept


def read_record(folder: str | Path) -> dict[str, Any] | None:
    """Read the record of the run that made a checkpoint; None where there is none.

    Args:
        folder: The output folder of a run, or one of its ``checkpoint-N``.

    Raises:
        InputError: It can't be read.
    """
    root = Path(folder)
    for path in (root / RECORD, root.parent / RECORD if root.name.startswith("checkpoint-") else None):
        if path is None or not path.is_file():
            continue
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise InputError(f"can't be read as JSON ({error})", where=str(path)) from error
        if not isinstance(record, dict):
            raise InputError("is no JSON object", where=str(path))
        return record
    return None


def prompt_of(model: str | Path) -> dict[str, Any] | None:
    """Return the prompt block that a checkpoint was trained with; None where its folder doesn't say.

    Args:
        model: Folder of a checkpoint, or anything else that names a model.
    """
    prompt = ((read_record(model) or {}).get(KEY) or {}).get("prompt")
    return prompt if isinstance(prompt, dict) else None


def _dataset(source: SolarDataset) -> dict[str, Any]:
    manifest = source.manifest
    return {
        "name": manifest.name,
        "version": manifest.version,
        "build_id": manifest.build_id,
        "repo": source.repo,
        "commit": source.commit,
    }


def _start(model: str) -> dict[str, Any]:
    """Name what training starts from, and what made that, where it is a checkpoint of ours."""
    local = Path(model).exists()
    record = read_record(model) if local else None
    return {
        "model": Path(model).resolve().name if local else model,
        "local": local,
        KEY: (record or {}).get(KEY),
    }


def _libraries() -> dict[str, str]:
    found = {}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue  # an extra that isn't installed has made nothing
    return found


def _default(field: Field[Any]) -> Any:
    if field.default is not MISSING:
        return field.default
    return field.default_factory() if field.default_factory is not MISSING else MISSING


def _plain(value: Any) -> Any:
    """Turn a value into what JSON holds; a path becomes its last part."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, Path) or (isinstance(value, str) and _is_path(value)):
        return Path(value).name
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)


def _is_path(text: str) -> bool:
    return text.startswith(("/", "./", "../", "~")) or ("/" in text and Path(text).exists())
