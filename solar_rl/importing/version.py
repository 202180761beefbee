"""Plan and make the new version: demonstrations linked, candidates from the file, the rest as ``score`` does it."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from solar_rl.config import DatasetConfig, set_dotted, validate_config
from solar_rl.errors import InputError
from solar_rl.formats import get_format
from solar_rl.importing.answers import check_fit, read_answers
from solar_rl.importing.parsing import candidate_rows, parsable
from solar_rl.pipeline import Built, derive
from solar_rl.prompts import settled
from solar_rl.schema import SPLITS
from solar_rl.store.manifest import FileEntry, describe_files, sha256_file
from solar_rl.store.parquet import TableWriter

LINKED = ("episodes", "steps", "images")
_OURS = ("prompt", "sampler")


@dataclass(frozen=True)
class Import:
    """Candidates to be brought into a new version of a dataset, read and found to fit.

    Args:
        file: Where they come from.
        base: The new version's folder and config, and the old one's manifest as it were had it these answers.
        answers: The file's rows, sorted by key.
        screens: The frame of every step.
        sampler_id: Of every row; None: the rows' own.
        parsed: Share of answers, of some that were tried, that the format can read.
    """

    file: Path
    base: derive.Derivation
    answers: pl.DataFrame
    screens: pl.DataFrame
    sampler_id: str | None
    parsed: float

    @property
    def fallback_id(self) -> str:
        """Return the sampler id of rows that state none."""
        return f"recorded/{self.file.name.split('.')[0]}"

    def as_dict(self) -> dict[str, Any]:
        """Say what would be done, for --dry-run."""
        if derive.already_there(self.base.out, self.base.keys.build_id):
            return self.base.as_dict()
        own = self.answers["sampler_id"].fill_null(self.fallback_id).unique().sort().to_list()
        return {
            "from": str(self.base.folder),
            "folder": str(self.base.out),
            "version": self.base.config.version,
            "answers": self.answers.height,
            "n": self.base.config.sampler.n,
            "sampler_id": self.sampler_id or ", ".join(own),
            "with token ids": self.answers["token_ids"].count(),
            "with log-probs": self.answers["sampling_logprobs"].count(),
            "format": self.base.config.prompt.format,
            "parsable": f"{self.parsed:.1%}",
            "would link": ", ".join(LINKED),
            "would write": "candidates, rewards, trajectories, preview and all that stands beside them",
        }


def plan(
    file: Path,
    folder: Path,
    overrides: Mapping[str, str],
    *,
    format: str | None = None,
    sampler_id: str | None = None,
    out: Path | None = None,
    version: str | None = None,
) -> Import:
    """Read the file, check it against the dataset, and choose the new version's name, folder and config.

    Args:
        file: JSONL or parquet, one answer a row.
        folder: A built dataset.
        overrides: Dotted fields of prompt, sampler.temperature and sampler.adaptive, validity, shaping and advantage.
        format: Output format of the answers (default: the dataset's).
        sampler_id: Who answered (default: the rows' own, else from the file's name).
        out: Folder of the new version (default: beside the old one).
        version: The new version (default: the next patch version).

    Raises:
        InputError: The file or the dataset isn't there, is broken, or they don't fit each other; or the new
            folder isn't free.
        ConfigError: An override is unknown or wrong.
    """
    ours = {key: text for key, text in overrides.items() if key.split(".")[0] in _OURS}
    rest = {key: text for key, text in overrides.items() if key not in ours}
    base = derive.draft(folder, rest, out, version, "score")
    answers, steps = read_answers(file), _table(folder, "steps", _STEP_COLUMNS)
    data = base.config.model_dump(mode="json")
    data["sampler"] = {"type": "recorded", "path": file.name, "temperature": base.config.sampler.temperature}
    told_anew = bool({"prompt.format", "prompt.template"} & set(ours)) or format is not None
    if told_anew:
        data["prompt"]["template"] = None  # another format's models expect another
    for key, text in ours.items():
        set_dotted(data, key, text)
    if format is not None:
        data["prompt"]["format"] = format
    adaptive = bool(data["sampler"].get("adaptive"))
    data["sampler"]["n"] = check_fit(
        answers, steps.select("episode_id", "step_index"), file, adaptive=adaptive
    )
    config = validate_config(DatasetConfig, data, where="command line", overrides=tuple(ours))
    get_format(config.prompt.format)
    if told_anew:
        config = config.model_copy(update={"prompt": settled(config.prompt)})
    screens = _screens(folder, steps)
    shares = parsable(answers, screens, config)
    if not shares[config.prompt.format]:
        raise _unreadable(file, config.prompt.format, shares)
    base = _sampled_from(file, replace(base, config=config))
    derive.already_there(base.out, base.keys.build_id)
    return Import(file, base, answers, screens, sampler_id, shares[config.prompt.format])


def run(job: Import) -> Built:
    """Make the new version: a dataset of the old demonstrations and the new candidates, which is then scored."""
    base = job.base
    if there := derive.already_there(base.out, base.keys.build_id):
        return Built.of(base.out, there, changed=False)
    middle = base.out.parent / f".{base.out.name}.import"
    shutil.rmtree(middle, ignore_errors=True)  # what a kill left
    try:
        known = _link_demonstrations(base.folder, middle, base.manifest.files)
        _write_candidates(job, middle)
        files = tuple(describe_files(middle, known))
        manifest = base.manifest.model_copy(update={"files": files})
        built = derive.run(replace(base, folder=middle, manifest=manifest))
    finally:
        shutil.rmtree(middle, ignore_errors=True)
    return replace(built, kept_from=base.folder)


def _sampled_from(file: Path, base: derive.Derivation) -> derive.Derivation:
    """State in the old manifest where the new candidates come from: it is what the new version's keys hang on."""
    old, config = base.manifest, base.config
    digest = sha256_file(file)
    key = hashlib.sha256(f"import {old.build_id} {digest} {config.digest()}".encode())
    stated = {
        "config": config.model_dump(mode="json"),
        "stages": {"read": old.stages.get("read", old.build_id), "sample": key.hexdigest()[:16]},
        "sampler_files": {f"sampler.path/{file.name}": digest},
    }
    return replace(base, manifest=old.model_copy(update=stated))


_STEP_COLUMNS = ("episode_id", "step_index", "screen_width", "screen_height", "image_sha256")


def _screens(folder: Path, steps: pl.DataFrame) -> pl.DataFrame:
    """Return what pixels of each step's answers are divided by: its screenshot's size, else its screen's."""
    sizes = _table(folder, "images", ("sha256", "width", "height")).unique("sha256")
    joined = steps.join(sizes, left_on="image_sha256", right_on="sha256", how="left", maintain_order="left")
    return joined.select(
        "episode_id",
        "step_index",
        width=pl.coalesce("width", "screen_width"),
        height=pl.coalesce("height", "screen_height"),
        has_image=pl.col("image_sha256").is_not_null(),
    )


def _table(folder: Path, name: str, columns: tuple[str, ...], split: str = "*") -> pl.DataFrame:
    files = sorted((folder / "data" / name).glob(f"{split}-*.parquet"))
    return pl.concat([pl.read_parquet(path, columns=list(columns), glob=False) for path in files])


def _link_demonstrations(folder: Path, middle: Path, files: tuple[FileEntry, ...]) -> dict[str, FileEntry]:
    known = {}
    for entry in files:
        parts = entry.path.split("/")
        if parts[0] == "data" and parts[1] in LINKED:
            _link(folder / entry.path, middle / entry.path)
            known[entry.path] = entry
    _link(folder / "rejects.jsonl", middle / "rejects.jsonl")
    return known


def _link(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copyfile(source, target)


def _write_candidates(job: Import, middle: Path) -> None:
    """Write one file of candidates beside each file of episodes."""
    for split in SPLITS:
        files = sorted((middle / "data" / "episodes").glob(f"{split}-*.parquet"))
        for index, path in enumerate(files):
            ids = pl.read_parquet(path, columns=["episode_id"], glob=False)
            answers = job.answers.join(ids, on="episode_id", how="semi", maintain_order="left")
            with TableWriter(middle, "candidates", split, part=(index, len(files))) as writer:
                for rows in candidate_rows(
                    answers, job.screens, job.base.config, job.sampler_id, job.fallback_id
                ):
                    writer.write(rows)


def _unreadable(file: Path, name: str, shares: Mapping[str, float]) -> InputError:
    fitting = sorted((n for n, share in shares.items() if share), key=lambda n: -shares[n])
    hint = f"--format {' or '.join(fitting)}?" if fitting else "`solar-rl parse` says why"
    return InputError(f"no answer can be read as '{name}'", where=str(file), hint=hint)
