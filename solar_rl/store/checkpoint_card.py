"""Render the model card of a checkpoint: which dataset version, recipe and code made it, and what it reaches."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import yaml

from solar_rl.config import PromptConfig, validate_config
from solar_rl.errors import InputError
from solar_rl.store.card import card_environment, figure
from solar_rl.store.provenance import KEY, RECORD, read_record

TEMPLATE = "checkpoint_card.md.jinja"
CARD = "README.md"
WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
LEFT_OUT = (
    "checkpoint-*/*",
    "*/checkpoint-*/*",
    "global_step*/*",
    "runs/*",
    "logs/*",
    "wandb/*",
    "completions/*",
    "training_args.bin",
    "trainer_state.json",
    "optimizer*",
    "scheduler.pt",
    "rng_state*",
    "scaler.pt",
    CARD,
)
"""What lies in a run's folder and is no part of its checkpoint: states to resume from, logs, a pickle that holds
paths. The card is made anew."""
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
_MACHINE_MADE = ("generated_from_trainer", "solar-rl")
"""Tags of cards that TRL or this module wrote: nothing in them is a person's."""
_SHOWN_ONLY = ("collapse", "disable_tqdm", "logging_", "margin_", "report_to", "save_")
"""How keys of a recipe begin that change no weight."""
_LOGGED = {"loss": "loss", "reward": "reward", "kl": "kl", "entropy": "entropy", "grad_norm": "gradient norm"}


@dataclass(frozen=True)
class Measured:
    """A report of ``solar-rl evaluate`` as a section of the card."""

    title: str
    about: str
    table: str


def render_checkpoint_card(folder: Path, name: str, reports: Sequence[Path] = ()) -> str:
    """Render the card of a run's output folder.

    Args:
        folder: The folder, with weights and training.json.
        name: Name of the model.
        reports: Files report.json of ``solar-rl evaluate``.

    Raises:
        InputError: No weights, no record of a run, or a report that can't be read.
    """
    record = require_checkpoint(folder)
    made: dict[str, Any] = record.get(KEY) or {}
    given = made.get("prompt")
    prompt = validate_config(PromptConfig, given, where=f"{RECORD}, {KEY}.prompt") if given else None
    environment = card_environment()
    environment.filters["figure"] = figure
    text = environment.get_template(TEMPLATE).render(
        front=yaml.safe_dump(_front(folder, made), sort_keys=False, allow_unicode=True),
        name=name,
        repo=name if _HUB_ID.fullmatch(name) else "OWNER/NAME",
        known=bool(made),
        steps=record.get("steps"),
        start=f"`{(made.get('starts_from') or {}).get('model', 'a model that is not recorded')}`",
        dataset=_told_dataset(made, record),
        made=list(_made(made, record)),
        figures=list(_figures(record)),
        reports=[_measured(path) for path in reports],
        prompt=prompt,
        template=_told_template(prompt) if prompt else None,
        recipe=yaml.safe_dump(recipe, sort_keys=True) if (recipe := _learned_by(made)) else "",
        notes=_notes(folder / CARD),
    )
    return re.sub(r"\n{3,}", "\n\n", text)  # what a condition left out leaves its empty lines


def stage_checkpoint(folder: Path, into: Path, name: str, reports: Sequence[Path] = ()) -> None:
    """Lay out what is published of a run's folder: links to its files, and the card. The folder stays as it is.

    Args:
        folder: The folder.
        into: An empty folder.
        name: Name of the model, for the card.
        reports: Files report.json of ``solar-rl evaluate``.

    Raises:
        InputError: No weights, no record of a run, or a report that can't be read.
    """
    card = render_checkpoint_card(folder, name, reports)
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        hidden = any(part.startswith(".") for part in relative.parts)
        if hidden or not path.is_file() or any(fnmatchcase(relative.as_posix(), each) for each in LEFT_OUT):
            continue
        link = into / relative
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(path.resolve())
    if not (into / RECORD).exists():  # a checkpoint-N's record lies beside it
        (into / RECORD).symlink_to((folder.parent / RECORD).resolve())
    (into / CARD).write_text(card, encoding="utf-8")


def require_checkpoint(folder: Path) -> dict[str, Any]:
    """Return the record of the run that a folder with weights is of.

    Raises:
        InputError: No such folder, no weights in it, or no record.
    """
    if not folder.is_dir():
        raise InputError("no such folder", where=str(folder))
    if not any(path for pattern in WEIGHTS for path in folder.glob(pattern)):
        raise InputError(
            "no weights in this folder",
            where=str(folder),
            hint="name a run's output folder, or a checkpoint-N",
        )
    record = read_record(folder)
    if record is None:
        raise InputError(
            f"no {RECORD} here, so nobody can say what made this checkpoint",
            where=str(folder),
            hint="`solar-rl train` leaves it when a run ends; what others trained goes up with `hf upload`",
        )
    return record


def _learned_by(made: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a recipe sets, without what only changes what is printed or kept."""
    recipe: Mapping[str, Any] = made.get("recipe") or {}
    return {name: value for name, value in recipe.items() if not name.startswith(_SHOWN_ONLY)}


def _told_template(prompt: PromptConfig) -> str:
    template = prompt.template or f"{prompt.format}/1"
    return "one of its own, in training.json" if "\n" in template else template


def _front(folder: Path, made: Mapping[str, Any]) -> dict[str, Any]:
    sees = any((folder / name).is_file() for name in ("preprocessor_config.json", "processor_config.json"))
    adapter = (folder / "adapter_config.json").is_file() and not (folder / "config.json").is_file()
    found: dict[str, Any] = {
        "library_name": "peft" if adapter else "transformers",
        "pipeline_tag": "image-text-to-text" if sees else "text-generation",
    }
    if base := _base(made):
        found["base_model"] = base
    if repo := (made.get("dataset") or {}).get("repo"):
        found["datasets"] = [repo]
    credit = (made.get("recipe") or {}).get("trainer", "grpo")
    return found | {"tags": ["gui-agent", str(credit), "solar-rl", "trl"]}


def _base(made: Mapping[str, Any]) -> str | None:
    """Return the model of the Hub at the root of the stages; None where the root is a folder."""
    start = made.get("starts_from") or {}
    if not start.get("local") and _HUB_ID.fullmatch(str(start.get("model", ""))):
        return str(start["model"])
    return _base(start[KEY]) if start.get(KEY) else None


def _told_dataset(made: Mapping[str, Any], record: Mapping[str, Any]) -> str:
    dataset = made.get("dataset")
    if not dataset:
        return str(record.get("dataset", ""))
    return f"{dataset['name']} {dataset['version']} (build `{dataset['build_id']}`)"


def _made(made: Mapping[str, Any], record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Say what made a checkpoint, row by row: the last stage first."""
    yield "dataset", _told_dataset(made, record)
    dataset, recipe = made.get("dataset") or {}, made.get("recipe") or {}
    if dataset.get("repo"):
        yield "its commit", f"`{dataset['repo']}@{dataset['commit']}`"
    elif dataset:
        yield "its commit", "none: it was read from a folder"
    chosen = {
        **{k: record[k] for k in ("trainer", "credit", "advantage_weight", "off_policy") if k in record}
    }
    chosen |= {
        k: recipe[k] for k in ("expert_anchor", "mode", "learning_rate", "seed", "use_peft") if k in recipe
    }
    named = [f"`{made['recipe_name']}`"] if made.get("recipe_name") else []
    if named or chosen:
        yield "recipe", ", ".join(named + [f"{key} {value}" for key, value in chosen.items()])
    if code := made.get("code"):
        yield "code", ", ".join(f"{name} {value}" for name, value in code.items())
    start = made.get("starts_from") or {}
    if start:
        yield (
            "starts from",
            f"`{start['model']}`" + ("" if start.get(KEY) or not start["local"] else ", a folder"),
        )
    before = start.get(KEY)
    while before:
        told = _told_dataset(before, {})
        credit = (before.get("recipe") or {}).get("credit", "solar")
        start = before.get("starts_from") or {}
        by = f" by `{before['recipe_name']}`" if before.get("recipe_name") else ""
        yield "which was made", f"{by} on {told}, credit {credit}, from `{start.get('model')}`".lstrip()
        before = start.get(KEY)


def _figures(record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    margins = record.get("margin") or []
    if margins:
        first, last = margins[0], margins[-1]
        yield (
            "margin, before and after",
            f"{first['margin']:+.3f} at update {first['step']}, {last['margin']:+.3f} at update {last['step']}",
        )
    for key in ("groups", "counts", "anchors"):
        if record.get(key):
            yield key, ", ".join(f"{count:,} {what}" for what, count in record[key].items())
    log = record.get("log") or []
    if log:
        said = (f"{word} {log[-1][key]:.4g}" for key, word in _LOGGED.items() if key in log[-1])
        yield f"last log, update {log[-1].get('step', '?')}", ", ".join(said)
    if record.get("warnings"):
        yield "warnings", "; ".join(str(each) for each in record["warnings"])


def _measured(path: Path) -> Measured:
    """Turn a report of ``solar-rl evaluate`` into a section."""
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
        name = report.get("suite") or report["config"]["name"]
        rows = list(_rates(report) if "overall" in report else _metrics(report))
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise InputError(
            f"is no report of `solar-rl evaluate` ({type(error).__name__}: {error})", where=str(path)
        ) from error
    how = "greedy" if report.get("temperature") == 0 else f"temperature {report.get('temperature')}"
    who = Path(report["model"]).name if report.get("model") else report.get("sampler")
    parts = (
        f"measured: `{who}`",
        report.get("data"),
        report.get("prompt"),
        how,
        f"changed: {report['changed']}" if report.get("changed") else None,
    )
    return Measured(f"Suite {name}", "; ".join(part for part in parts if part), "\n".join(rows))


def _metrics(report: Mapping[str, Any]) -> Iterator[str]:
    yield "| protocol | judged steps | type match | exact match | goal progress | task SR |"
    yield "|---|---:|---:|---:|---:|---:|"
    for each in report["protocols"]:
        values = (
            _percent(each["metrics"][name])
            for name in ("type_match", "exact_match", "goal_progress", "task_sr")
        )
        yield f"| {each['protocol']} | {each['counts']['judged']:,} | {' | '.join(values)} |"


def _rates(report: Mapping[str, Any]) -> Iterator[str]:
    yield "| task | episodes | success | progress | steps | unreadable |"
    yield "|---|---:|---:|---:|---:|---:|"
    for each in (*report["tasks"], report["overall"]):
        success = _percent({"value": each["success"], "low": each["low"], "high": each["high"]})
        progress = _percent({"value": each["progress"], "low": None})
        yield (
            f"| {each['task']} | {each['episodes']:,} | {success} | {progress} | {each['steps']:.1f} | "
            f"{_percent({'value': each['invalid'], 'low': None})} |"
        )


def _percent(found: Mapping[str, float | None]) -> str:
    if found["value"] is None:
        return "-"
    told = f"{100 * found['value']:.1f} %"
    if found.get("low") is None or found.get("high") is None:
        return told
    return f"{told} ({100 * (found['low'] or 0):.1f}-{100 * (found['high'] or 0):.1f})"


def _notes(card: Path) -> str:
    """Return what a person wrote in the folder's README.md; what TRL or we wrote says nothing new."""
    if not card.is_file():
        return ""
    text = card.read_text(encoding="utf-8")
    front = re.match(r"---\n(.*?)\n---\n", text, re.S)
    if front and any(tag in front[1] for tag in _MACHINE_MADE):
        return ""
    return text[front.end() :].strip() if front else text.strip()
