"""Start a training recipe: check it, print the command, run it. Nothing heavy is imported here.

A mistake in the recipe or on the command line is found before torch is (``solar_rl.train.keys``), and the
script itself checks the same again, for those who start it on their own.
"""

from __future__ import annotations

import difflib
import importlib.util
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from solar_rl.errors import ConfigError, InputError, MissingExtra
from solar_rl.shipped import shipped_path
from solar_rl.store.hub import parse_repo
from solar_rl.store.manifest import MANIFEST, read_manifest
from solar_rl.train.keys import SCRIPTS, is_true, read_settings, whole
from solar_rl.train.packages import check_packages
from solar_rl.yaml_file import read_yaml

ACCELERATE = "accelerate"
"""Folder of recipes/ that holds accelerate's own configs."""
_POLICY = "\nmodel_name_or_path:"
"""What a recipe says, and no config of a sampler, of rounds or of accelerate."""
_PACKAGES = ("torch", "transformers", "trl", "accelerate")
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
"""ORG/NAME, the shape of a model's id on the Hub."""
_ROWS = {"per_device_train_batch_size": 8, "gradient_accumulation_steps": 1}
"""Keys whose product with the number of processes is the rows of an update, with TRL's defaults."""


@dataclass(frozen=True)
class Machines:
    """Where this machine stands among those that train together.

    Args:
        count: Number of machines.
        rank: Number of this one, from 0.
        host: HOST:PORT of the first, where there are several.
    """

    count: int = 1
    rank: int = 0
    host: str | None = None


ALONE = Machines()


def launch(
    recipe: str | Path,
    extra: Sequence[str] = (),
    *,
    dry_run: bool = False,
    processes: int | None = None,
    accelerate: str | None = None,
    machines: Machines = ALONE,
) -> int:
    """Run a training recipe in processes of its own.

    Args:
        recipe: A YAML file, or the name of a shipped one, such as ``phone_cpu/stage1_atomic``.
        extra: Overrides as command-line words: ``["--max_steps", "10"]``.
        dry_run: Print the command to stdout and don't run it.
        processes: Number of processes on all machines together (default: one for each GPU, or one).
        accelerate: A config of accelerate, or the name of a shipped one, such as ``fsdp2``: GPUs only.
        machines: This machine's place among several.

    Returns:
        The exit code of the run.

    Raises:
        ConfigError: No such recipe or accelerate config, an unknown key or a wrong value, or processes that
            don't add up to the recipe's ``rows_per_update``.
        InputError: The dataset or the policy isn't there, or a GPU config is to run without a GPU.
        MissingExtra: torch, transformers, trl or accelerate isn't installed.
    """
    for package in _PACKAGES:
        if importlib.util.find_spec(package) is None:
            raise MissingExtra(f"training ({package})", "train")
    path = find_recipe(recipe)
    settings = read_settings(path, extra)
    check_inputs(settings, str(path))
    check_packages(settings, str(path))
    config = find_accelerate(accelerate, settings) if accelerate else None
    gpus = 0 if is_true(settings.get("use_cpu")) else _gpu_count()
    if config and not gpus and not dry_run:
        raise InputError("no GPU is here", where=str(config), hint="add --dry-run to see the command alone")
    if config and not dry_run:
        _check_deepspeed(config)
    count = processes or _processes(gpus, config, machines)
    check_rows(settings, str(path), count)
    command = make_command(path, extra, settings, count, accelerate=config, machines=machines)
    print(f"$ {shlex.join(command)}", file=sys.stdout if dry_run else sys.stderr, flush=True)
    return 0 if dry_run else subprocess.run(command, check=False).returncode


def find_recipe(recipe: str | Path) -> Path:
    """Return the YAML file that a path or the name of a shipped recipe means.

    Raises:
        ConfigError: There is none.
    """
    path = Path(recipe)
    if path.is_file():
        return path
    names = recipe_names()
    name = str(path.with_suffix("")) if path.suffix in (".yaml", ".yml") else str(path)
    if name in names:
        return shipped_path("recipes", f"{name}.yaml")
    raise ConfigError("no such recipe", where=str(recipe), hint=_nearest(str(recipe), names, "recipes"))


def recipe_names() -> list[str]:
    """List the shipped recipes, such as ``phone_cpu/stage1_atomic``: the files that name a policy to train."""
    root = shipped_path("recipes")
    found = (path for path in root.glob("*/*.yaml") if _POLICY in path.read_text(encoding="utf-8"))
    return sorted(str(path.relative_to(root).with_suffix("")) for path in found)


def find_accelerate(config: str, settings: Mapping[str, Any]) -> Path:
    """Return the file that a path or the name of a shipped accelerate config means.

    Raises:
        ConfigError: There is none, or the recipe runs on a CPU, where accelerate shards nothing.
    """
    path = Path(config)
    if not path.is_file():
        names = sorted(each.stem for each in shipped_path("recipes", ACCELERATE).glob("*.yaml"))
        if config not in names:
            hint = _nearest(config, names, "accelerate configs")
            raise ConfigError("no such accelerate config", where=config, hint=hint)
        path = shipped_path("recipes", ACCELERATE, f"{config}.yaml")
    if is_true(settings.get("use_cpu")):
        hint = "leave --accelerate out: several processes on a CPU are started by torchrun (--processes 2)"
        raise ConfigError("accelerate's configs are for GPUs", where=str(path), hint=hint)
    return path


def _check_deepspeed(config: Path) -> None:
    needed = read_yaml(config).get("distributed_type") == "DEEPSPEED"
    if needed and importlib.util.find_spec("deepspeed") is None:
        raise InputError("deepspeed isn't installed", where=str(config), hint="pip install deepspeed")


def _nearest(word: str, names: Sequence[str], kind: str) -> str:
    close = difflib.get_close_matches(word, names, n=1)
    return f"did you mean '{close[0]}'?" if close else f"shipped {kind}: {', '.join(names)}"


def _processes(gpus: int, config: Path | None, machines: Machines) -> int:
    if gpus or config is None:
        return max(gpus, 1) * machines.count
    return int(read_yaml(config).get("num_processes", 1))  # a dry run on a machine without GPUs


def check_arguments(words: Sequence[str]) -> dict[str, Any]:
    """Check the words that a recipe script was started with, and return their settings.

    Args:
        words: What follows the script's name: ``--config FILE`` and overrides.

    Raises:
        ConfigError: A key or value is wrong, or the rows of an update don't add up.
        InputError: The dataset or the policy isn't there.
    """
    words, path = list(words), None
    if "--config" in words[:-1]:
        place = words.index("--config")
        path = Path(words[place + 1])
        del words[place : place + 2]
    settings = read_settings(path, words)
    where = str(path) if path else "command line"
    check_inputs(settings, where)
    check_packages(settings, where)
    check_rows(settings, where, int(os.environ.get("WORLD_SIZE", "1")))
    return settings


def check_rows(settings: Mapping[str, Any], where: str, processes: int) -> None:
    """Make sure that an update has as many rows as the recipe's ``rows_per_update`` says.

    Raises:
        ConfigError: It hasn't; the hint names the accumulation that fits.
    """
    wanted = str(settings.get("rows_per_update", "none"))
    if wanted.lower() in ("none", "null"):
        return
    rows, steps = (whole(settings, key, default) for key, default in _ROWS.items())
    if processes * rows * steps == int(wanted):
        return
    fitting, rest = divmod(int(wanted), processes * rows)
    hint = f"add --gradient_accumulation_steps {fitting}"
    if rest:
        hint = f"{processes} processes and per_device_train_batch_size must divide {wanted} together"
    shown = f"{processes} processes x {rows} rows x {steps} accumulation steps"
    raise ConfigError(
        f"{shown} make {processes * rows * steps} rows an update, but rows_per_update is {wanted}",
        where=where,
        hint=hint,
    )


def check_inputs(settings: Mapping[str, Any], where: str) -> None:
    """Make sure that the dataset is there, and the policy a folder or an id on the Hub.

    Raises:
        ConfigError: Neither is named.
        InputError: One isn't there; where a shipped recipe makes it, the hint names that.
    """
    for key in ("dataset", "model_name_or_path"):
        if not settings.get(key):
            raise ConfigError(f"key '{key}' is missing", where=where, hint=f"add --{key} FOLDER")
    _check_dataset(str(settings["dataset"]), settings.get("revision"))
    _check_pixels(settings)
    check_policy_name(str(settings["model_name_or_path"]))


def check_policy_name(policy: str) -> None:
    """Make sure that a policy is a folder, or has the shape of an id on the Hub.

    Raises:
        InputError: It is neither; where a shipped recipe or the demo makes it, the hint names that.
    """
    folder = Path(policy)
    if folder.is_dir() or (not folder.exists() and _HUB_ID.fullmatch(policy)):
        return
    earlier = maker_of(policy)
    hint = "a later stage starts from an earlier one's output_dir: run that first"
    if earlier:
        hint = f"it is what this makes, so run it first: solar-rl train {earlier}"
    elif folder.parts[:1] == ("demo",):
        hint = "the demo makes it: make demo, or solar-rl demo --out demo"
    raise InputError(
        "no such policy folder", where=policy, hint=f"{hint}, or name another folder, or ORG/NAME on the Hub"
    )


def _check_dataset(dataset: str, revision: object) -> None:
    """Refuse what is no dataset: as ``open_dataset`` reads a name, but without asking the Hub."""
    here = not dataset.startswith("hf://") and Path(dataset).exists()
    if parse_repo(dataset) and not here:
        return
    if dataset.startswith("hf://"):
        raise InputError("is no name on the Hub", where=dataset, hint="hf://OWNER/NAME, or with @REVISION")
    if not Path(dataset, "manifest.json").is_file():
        raise InputError(
            "is no built dataset (it has no manifest.json)", where=dataset, hint="make it with solar-rl build"
        )
    if str(revision or "none").lower() not in ("none", "null"):
        raise InputError("revision goes with a dataset of the Hub, not with a folder", where=dataset)


def _check_pixels(settings: Mapping[str, Any]) -> None:
    dataset, limit = str(settings["dataset"]), str(settings.get("dataset_max_pixels", "none"))
    if Path(dataset, MANIFEST).is_file() and limit.lower() not in ("none", "null"):
        check_pixels(read_manifest(Path(dataset)).config["prompt"]["max_pixels"], int(limit), dataset)


def check_pixels(found: int, limit: int | None, dataset: str) -> None:
    """Refuse a dataset of larger screenshots than a recipe's memory is reckoned with.

    Args:
        found: The dataset's ``prompt.max_pixels``.
        limit: The recipe's ``dataset_max_pixels``; None: any.
        dataset: How errors name the dataset.

    Raises:
        InputError: They are larger.
    """
    if limit is not None and found > limit:
        raise InputError(
            f"prompt.max_pixels of the dataset is {found}, and dataset_max_pixels {limit}",
            where=dataset,
            hint=f"build it with --prompt.max_pixels {limit}, or say --dataset_max_pixels {found} where the GPU holds it "
            "(--plan)",
        )


def maker_of(folder: str) -> str | None:
    """Return the shipped recipe whose run goes to a folder where it names no output_dir.

    >>> maker_of("./runs/phone_cpu/stage1_atomic")
    'phone_cpu/stage1_atomic'
    """
    name = str(Path(folder)).removeprefix("runs/")
    return name if name in recipe_names() else None


def make_command(
    path: Path,
    extra: Sequence[str],
    settings: Mapping[str, Any],
    processes: int | None,
    *,
    accelerate: Path | None = None,
    machines: Machines = ALONE,
) -> list[str]:
    """Return the words that run the recipe.

    One process: plain Python. Several on a CPU: torchrun, because accelerate starts one there and says
    nothing. On GPUs: accelerate, with the config's kind of sharing, or plain data parallel.
    """
    script = str(shipped_path("recipes", SCRIPTS[str(settings.get("trainer", "grpo"))]))
    gpus = 0 if is_true(settings.get("use_cpu")) else _gpu_count()
    count = processes or _processes(gpus, accelerate, machines)
    words = [script, "--config", str(path), *extra, "--processes", str(count)]
    if gpus or accelerate:
        return [sys.executable, "-m", *_accelerate_words(count, accelerate, machines), *words]
    if count > 1:
        return [sys.executable, "-m", *_torchrun_words(count, machines), *words]
    return [sys.executable, *words]


def _accelerate_words(count: int, config: Path | None, machines: Machines) -> list[str]:
    words = ["accelerate.commands.launch"]
    words += ["--config_file", str(config)] if config else []
    words += ["--num_processes", str(count), "--num_machines", str(machines.count)]
    if machines.host:
        host, port = _address(machines.host)
        words += ["--machine_rank", str(machines.rank), "--main_process_ip", host]
        words += ["--main_process_port", port]
    if config is None:
        words += ["--mixed_precision", "no", "--dynamo_backend", "no"]  # the recipe's own keys decide
        words += ["--multi_gpu"] if count > 1 else []
    return words


def _torchrun_words(count: int, machines: Machines) -> list[str]:
    here, rest = divmod(count, machines.count)
    if rest:
        raise ConfigError(
            f"{count} processes can't be shared by {machines.count} machines", where="--processes"
        )
    words = ["torch.distributed.run"]
    if machines.host:
        host, port = _address(machines.host)
        words += ["--nnodes", str(machines.count), "--node_rank", str(machines.rank)]
        words += ["--master_addr", host, "--master_port", port]
    else:
        words += ["--standalone"]
    return [*words, "--nproc_per_node", str(here)]


def _address(host: str) -> tuple[str, str]:
    name, _, port = host.rpartition(":")
    if not name or not port.isdigit():
        raise ConfigError(f"'{host}' is no HOST:PORT", where="--host", hint="such as node1:29500")
    return name, port


def _gpu_count() -> int:
    import torch

    return int(torch.cuda.device_count())
