"""Which split an episode belongs to: the release's splits.json and test_subsplits.json, ids by name."""

from __future__ import annotations

import json
from pathlib import Path

from solar_rl.errors import ConfigError
from solar_rl.schema import SPLITS


def read_splits(file: Path | None) -> dict[str, str]:
    """Read splits.json: each episode's split.

    Args:
        file: ``{"train": [ids], "test": [ids], "validation": [ids]}``; None where there is none.

    Raises:
        ConfigError: No such file, no lists of ids by split, or an id in two splits.
    """
    splits = _lists(file, "splits")
    if unknown := sorted(set(splits) - set(SPLITS)):
        raise ConfigError(
            f"unknown split '{unknown[0]}', expected {', '.join(SPLITS)}", where=f"splits file {file}"
        )
    found: dict[str, str] = {}
    for split, ids in splits.items():
        for episode_id in ids:
            if found.setdefault(episode_id, split) != split:
                raise ConfigError(
                    f"episode {episode_id} is in {found[episode_id]} and in {split}",
                    where=f"splits file {file}",
                )
    return found


def read_subsplits(file: Path | None) -> dict[str, tuple[str, ...]]:
    """Read test_subsplits.json: the finer splits of each test episode, as the file names them.

    Args:
        file: ``{"IDD": [ids], "app_unseen": [ids], "task_unseen": [ids], "category_unseen": [ids]}``, an id
            in any number of them; None where there is none.

    Raises:
        ConfigError: No such file, or no lists of ids by name.
    """
    found: dict[str, tuple[str, ...]] = {}
    for name, ids in _lists(file, "subsplits").items():
        for episode_id in ids:
            found[episode_id] = (*found.get(episode_id, ()), name)
    return found


def _lists(file: Path | None, option: str) -> dict[str, list[str]]:
    if file is None:
        return {}
    where = f"{option} file {file}"
    try:
        lists = json.loads(file.read_bytes())
    except FileNotFoundError:
        raise ConfigError("no such file", where=where, hint=f"check source.options.{option}") from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"can't be read as JSON ({error})", where=where) from error
    if not isinstance(lists, dict) or not all(isinstance(ids, list) for ids in lists.values()):
        raise ConfigError("expected an object of lists of ids, one list a split", where=where)
    return {name: list(dict.fromkeys(map(str, ids))) for name, ids in lists.items()}
