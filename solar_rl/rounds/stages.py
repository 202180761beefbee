"""The three stages of a round: build a dataset version, train, evaluate; each can be run again after a kill."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from solar_rl.advantage import require_credit
from solar_rl.config import DatasetConfig, load_dataset_config, validate_config
from solar_rl.config.source import MIX
from solar_rl.errors import CheckFailed, ConfigError, InputError
from solar_rl.evaluate.suites import load_suite
from solar_rl.pipeline import Options, Submitted, build
from solar_rl.pipeline.phases import Standing
from solar_rl.pipeline.work import temporary_name, write_atomically
from solar_rl.rounds.config import RoundsConfig, dotted
from solar_rl.rounds.figures import held_out, played, sampled, trained
from solar_rl.rounds.state import Stage
from solar_rl.shipped import shipped_path
from solar_rl.store.manifest import read_manifest
from solar_rl.train.keys import is_true, read_settings
from solar_rl.train.launch import check_pixels, check_rows, find_accelerate, find_recipe
from solar_rl.train.packages import check_packages
from solar_rl.yaml_file import read_yaml

SUITE = "suite"
"""Folder in a round's for what its policy did in closed loop."""
CACHE = ".cache"
"""Folder below a run's for the answers of an unfinished build."""
Progress = Callable[[Standing], None]
_STDERR = 2
_POLICY_KEY = {"scripted": "policy", "transformers": "model", "vllm": "model"}
"""Field of a sampler that names the policy, for those that run a local one."""


@dataclass(frozen=True)
class Stages:
    """What the stages of a run work on.

    Args:
        config: The run.
        folder: The run's folder.
        dataset: The dataset's config, as the first round has it.
        split: The split that is trained on.
        seed: Seed of the recipe.
        progress: Told how far a build is.
    """

    config: RoundsConfig
    folder: Path
    dataset: DatasetConfig
    split: str
    seed: int
    progress: Progress = lambda standing: None

    def policy(self, number: int) -> str:
        """Return the policy that comes out of a round; 0: the one that the run starts with."""
        return str(self.place(number) / "policy") if number else self.config.policy

    def place(self, number: int) -> Path:
        """Return the folder of a round."""
        return self.folder / f"round-{number}"

    def artifact(self, stage: Stage) -> Path:
        """Return the folder that a stage makes."""
        if stage.kind == "train":
            return Path(self.policy(stage.round))
        kind = "" if stage.kind == "build" else "heldout-"
        return self.folder / f"{self.dataset.name}-{kind}1.{stage.round}.0"

    def run(self, stage: Stage) -> dict[str, Any]:
        """Do a stage, or the rest of it, and return its figures.

        Raises:
            CheckFailed: Training ended with an error, or a build's source is too broken.
            InputError: The policy, the dataset or the recipe can't be used.
        """
        if stage.kind == "train":
            return self._train(stage)
        folder = self.artifact(stage)
        config = self.dataset_config(stage)
        self._build(config, folder, self.place(stage.round) / f"{stage.kind}.yaml")
        if stage.kind == "build":
            return sampled(folder)
        found = held_out(folder, self.config.evaluate.bucket_rule, seed=config.seed)
        return found | ({"played": self._play(stage)} if self.config.evaluate.suite else {})

    def dataset_config(self, stage: Stage) -> DatasetConfig:
        """Return what a stage builds: the round's candidates, or the answers to held-out steps."""
        data = self.dataset.model_dump(mode="json")
        number, held = stage.round, stage.kind == "evaluate"
        sampler = data["sampler"]
        data["version"] = f"1.{number}.0"
        if held:
            ours = self.config.evaluate
            data["name"] = f"{self.dataset.name}-heldout"
            data["source"] |= {"splits": ours.splits, "limit": ours.episodes}
            if sampler["type"] == "scripted":  # scripted answers would tell nothing of the policy
                sampler = {"type": "transformers", "batch_size": sampler["batch_size"]}
            sampler |= {"n": ours.samples, "temperature": ours.temperature, "adaptive": False}
            sampler |= {"max_new_tokens": ours.max_new_tokens} if ours.max_new_tokens else {}
            data["preview_rows"] = min(data["preview_rows"], 50)
        else:
            data["seed"] = self.dataset.seed + number
            data["source"] = self._drawn(data["source"], number) | {"splits": [self.split]}
        # round R samples with the policy of round R - 1, and evaluates its own
        sampler[_POLICY_KEY[sampler["type"]]] = self.policy(number if held else number - 1)
        data["sampler"] = sampler
        return validate_config(DatasetConfig, data, where=f"round {number}")

    def command(self, stage: Stage) -> str:
        """Return what a user would type to do a stage alone."""
        if stage.kind == "train":
            return " ".join(["solar-rl train", self.config.recipe, *self._words(stage.round)])
        described = self.place(stage.round) / f"{stage.kind}.yaml"
        built = f"solar-rl build {described} --out {self.artifact(stage)}"
        if stage.kind == "build" or not self.config.evaluate.suite:
            return built
        return f"{built} && solar-rl {shlex.join(self._playing(stage.round))}"

    def _drawn(self, source: dict[str, Any], number: int) -> dict[str, Any]:
        """Return the source with only as many episodes as a round samples, others each time."""
        count = self.config.episodes_per_round
        if count is None:
            return source
        if source["sources"]:
            if any(each["share"] is None for each in source["sources"].values()):
                raise ConfigError(
                    "episodes_per_round needs a dataset of one source, or of sources with shares",
                    where=self.config.dataset,
                )
            return source | {"episodes": count, "seed": number}
        inner = ("builder", "path", "options", "filters")
        one = {name: source[name] for name in inner} | {"episodes": count}
        rest = {name: value for name, value in source.items() if name not in inner}
        return rest | {"builder": MIX, "sources": {source["builder"]: one}, "seed": number}

    def _build(self, config: DatasetConfig, folder: Path, described: Path) -> None:
        described.parent.mkdir(parents=True, exist_ok=True)
        text = yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
        write_atomically(described, text.encode())
        cache = self.folder / CACHE
        built = build(config, folder, progress=self.progress, options=Options(cache=cache))
        if isinstance(built, Submitted):
            raise ConfigError("rounds wait for each build: executor.type slurm can't be used")
        shutil.rmtree(cache, ignore_errors=True)  # answers of an older policy are never asked for again
        self._share_files(folder)

    def _share_files(self, folder: Path) -> None:
        """Let files that an earlier version has too, such as screenshots, take their place on disk once."""
        known: dict[str, Path] = {}
        for other in sorted(self.folder.glob(f"{self.dataset.name}-*/manifest.json")):
            if other.parent != folder:
                entries = read_manifest(other.parent).files
                known |= {entry.sha256: other.parent / entry.path for entry in entries}
        for entry in read_manifest(folder).files:
            twin, path = known.get(entry.sha256), folder / entry.path
            if twin is None or not twin.is_file() or twin.samefile(path):
                continue
            temporary = temporary_name(path)
            try:
                os.link(twin, temporary)
            except OSError:
                return  # a file system without hard links: each version has its own
            temporary.replace(path)

    def _train(self, stage: Stage) -> dict[str, Any]:
        folder = Path(self.policy(stage.round))
        words = [*self._words(stage.round), "--resume_from_checkpoint", "latest"]
        for name, value in (("processes", self.config.processes), ("accelerate", self.config.accelerate)):
            words += [f"--{name}", str(value)] if value else []
        _in_its_own_process("training", stage, ["train", self.config.recipe, *words])
        figures = trained(folder)
        for checkpoint in folder.glob("checkpoint-*"):  # what the next round needs is saved beside them
            shutil.rmtree(checkpoint)
        return figures

    def _play(self, stage: Stage) -> dict[str, Any]:
        _in_its_own_process("playing", stage, self._playing(stage.round))
        return played(self.place(stage.round) / SUITE / "report.json")

    def _playing(self, number: int) -> list[str]:
        """Return the words that let a round's policy play, asked as the dataset's sampler asks it."""
        ours = self.config.evaluate
        kind = "vllm" if self.dataset.sampler.type == "vllm" else "transformers"
        words = ["evaluate", "--suite", str(ours.suite), "--model", self.policy(number), "--sampler", kind]
        words += ["--out", str(self.place(number) / SUITE)]
        words += ["--limit", str(ours.suite_episodes)] if ours.suite_episodes else []
        fields = self.dataset.prompt.model_dump(mode="json", exclude_unset=True, exclude={"level"})
        if ours.max_new_tokens:
            words += ["--sampler.max_new_tokens", str(ours.max_new_tokens)]
        return words + [word for key, text in dotted(fields, "prompt.") for word in (f"--{key}", text)]

    def _words(self, number: int) -> list[str]:
        build = self.artifact(Stage("build", number))
        keys = {
            "dataset": str(build),
            "model_name_or_path": self.policy(number - 1),
            "output_dir": self.policy(number),
            "max_steps": str(self.config.updates_per_round),
            "seed": str(self.seed + number),
        }
        return _as_words(self.config.train) + _as_words(keys)


def _in_its_own_process(what: str, stage: Stage, words: Sequence[str]) -> None:
    """Run a verb whose memory is gone when the next stage begins; stdout is for the rounds' results."""
    command = [sys.executable, "-m", "solar_rl.cli", *words]
    code = subprocess.run(command, check=False, stdout=_STDERR).returncode
    if code:
        raise CheckFailed(
            f"{what} ended with exit code {code}",
            where=f"round {stage.round}",
            hint="its message is above; mend the cause and run the same command again",
        )


def make_stages(config: RoundsConfig, folder: Path, progress: Progress) -> Stages:
    """Read the dataset's config and the recipe, and make sure that they fit each other.

    Raises:
        ConfigError: They don't, or the sampler runs no local policy.
        InputError: No such dataset, or the policy isn't there.
    """
    path = _dataset_yaml(config.dataset)
    overrides = dict(dotted(config.build))
    kind = read_yaml(path).get("sampler", {}).get("type", "scripted")
    kind = overrides.get("sampler.type", kind).strip('"')
    if kind not in _POLICY_KEY:
        raise ConfigError(
            f"sampler '{kind}' can't be given each round's policy",
            where=config.dataset,
            hint="set build.sampler.type to transformers or vllm",
        )
    overrides[f"sampler.{_POLICY_KEY[kind]}"] = config.policy
    dataset = load_dataset_config(path, overrides)
    recipe = find_recipe(config.recipe)
    settings = read_settings(recipe, _as_words(config.train))
    _check_recipe(settings, dataset, config.recipe)
    _check_held_out(settings, config)
    check_packages(settings, config.recipe)
    if config.accelerate:
        find_accelerate(config.accelerate, settings)
    if config.processes or is_true(settings.get("use_cpu")):
        check_rows(settings, str(recipe), config.processes or 1)
    _check_suite(config.evaluate.suite)
    if dataset.executor.type == "slurm":
        raise ConfigError(
            "rounds wait for each build: executor.type slurm can't be used", where=config.dataset
        )
    if not Path(config.policy).is_dir() and config.policy.startswith((".", "/")):
        raise InputError("no such policy folder", where=config.policy)
    return Stages(
        config, folder, dataset, settings.get("split", "train"), int(settings.get("seed", 42)), progress
    )


def _check_held_out(settings: Mapping[str, Any], config: RoundsConfig) -> None:
    trained_on = str(settings.get("split", "train"))
    if trained_on in config.evaluate.splits:
        raise ConfigError(
            f"split '{trained_on}' is trained on, so progress on it is not held out, and rounds would stop by it",
            where="evaluate.splits",
            hint="name another split there, or in train.split",
        )


def _check_suite(name: str | None) -> None:
    if name is not None and load_suite(name).kind != "closed_loop":
        raise ConfigError(
            f"suite '{name}' isn't played in closed loop",
            where="evaluate.suite",
            hint="recorded steps are evaluate.splits; in closed loop there are phone and miniwob",
        )


def _as_words(keys: Mapping[str, Any]) -> list[str]:
    """Spell keys of a recipe as they stand on a command line.

    >>> _as_words({"beta": 0.0, "use_peft": True, "lora_target_modules": ["q_proj", "v_proj"]})
    ['--beta', '0.0', '--use_peft', 'true', '--lora_target_modules', 'q_proj', 'v_proj']
    """
    words = []
    for key, value in keys.items():
        several = value if isinstance(value, list) else [value]
        words += [f"--{key}", *(each if isinstance(each, str) else json.dumps(each) for each in several)]
    return words


def _check_recipe(settings: dict[str, Any], dataset: DatasetConfig, recipe: str) -> None:
    if settings.get("mode", "replay") != "replay":
        raise ConfigError(
            "a recipe that samples while it trains needs no rounds",
            where=recipe,
            hint="use mode: replay, or start it with solar-rl train",
        )
    if settings.get("trainer", "grpo") != "grpo":
        raise ConfigError(
            "it learns recorded actions, and each round would sample candidates that nobody looks at",
            where=recipe,
            hint="start it with solar-rl train",
        )
    sampler = dataset.sampler
    limit = str(settings.get("dataset_max_pixels", "none"))
    if limit.lower() not in ("none", "null"):
        check_pixels(dataset.prompt.max_pixels, int(limit), dataset.name)
    floor = str(settings.get("weight_floor", "none"))
    require_credit(
        str(settings.get("credit", "solar")),
        str(settings.get("advantage_weight", "none")),
        None if floor.lower() in ("none", "null") else float(floor),
        adaptive=sampler.adaptive,
    )
    for key, default, wanted in (
        ("num_generations", 8, sampler.n),
        ("temperature", 1.0, sampler.temperature),
    ):
        if float(settings.get(key, default)) != wanted:
            raise ConfigError(
                f"{key} is {settings.get(key, default)}, but the dataset's sampler says {wanted}",
                where=recipe,
                hint=f"set train.{key}, or build.sampler.{'n' if key == 'num_generations' else key}",
            )


def _dataset_yaml(dataset: str) -> Path:
    path = Path(dataset)
    if path.is_dir() and (path / "dataset.yaml").exists():
        return path / "dataset.yaml"
    if path.is_file() or path.suffix in {".yaml", ".yml"} or len(path.parts) > 1:
        return path
    return shipped_path("datasets", dataset, "dataset.yaml")


def all_stages(rounds: int) -> Iterator[Stage]:
    """Yield the stages of a run in their order."""
    yield Stage("evaluate", 0)
    for number in range(1, rounds + 1):
        yield Stage("build", number)
        yield Stage("train", number)
        yield Stage("evaluate", number)
