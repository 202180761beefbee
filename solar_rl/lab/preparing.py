"""Make what all arms share: demonstrations, a policy that has learned from them, and one sampled dataset."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from solar_rl.builder import load_builder
from solar_rl.config import DatasetConfig, validate_config
from solar_rl.errors import InputError
from solar_rl.evaluate.answering import source_episodes
from solar_rl.lab.arms import ALIGNMENTS
from solar_rl.lab.asking import phone_options, prompt_block, sampler_block
from solar_rl.lab.folder import Folder
from solar_rl.lab.measuring import Examiner
from solar_rl.lab.plan import Plan
from solar_rl.lab.training import train
from solar_rl.pipeline import build
from solar_rl.store.dataset import open_dataset
from solar_rl.store.manifest import MANIFEST

Say = Callable[[str], None]
_TRIED = "warming.json"
"""Step accuracy of the warm start's checkpoints so far."""


def dataset_config(
    plan: Plan, name: str, episodes: int, seed: int, more: Mapping[str, Any] | None = None, **blocks: Any
) -> DatasetConfig:
    """Describe a dataset of the lab's phone: training goals, screens as a short list.

    Args:
        plan: The lab run.
        name: Name of the dataset.
        episodes: How many.
        seed: Seed of the phones.
        more: More options of the phone.
        blocks: More blocks of the config, such as sampler.
    """
    options = phone_options(plan, episodes=episodes, seed=seed, only="train")
    data = {
        "name": name,
        "seed": plan.seed,
        "source": {"builder": "phone", "options": options | dict(more or {}), "screen_hash": False},
        "prompt": prompt_block(plan),
        "preview_rows": 0,
        **blocks,
    }
    return validate_config(DatasetConfig, data, where=f"lab: {name}")


def prepare(plan: Plan, folder: Folder, say: Say) -> None:
    """Make everything up to the dataset versions; what is there already is kept.

    Args:
        plan: The lab run.
        folder: Where it goes.
        say: Told what begins.
    """
    if plan.shares is not None:
        _take_over(plan.shares, folder)
    else:
        demonstrations(plan, folder, say)
        policy(plan, folder, say)
        warm_start(plan, folder, say)
    versions(plan, folder, say)


def _take_over(name: str, folder: Folder) -> None:
    """Copy another plan's start policy."""
    if folder.read("start.json") is not None:
        return
    other = Folder(folder.root.with_name(name))
    told = other.read("start.json")
    if told is None:
        raise InputError("no start policy", where=str(other.root), hint=f"first run: solar-rl lab {name}")
    shutil.copytree(other.start, folder.start, dirs_exist_ok=True)
    folder.write("start.json", told)


def demonstrations(plan: Plan, folder: Folder, say: Say) -> None:
    """Build the dataset that the warm start learns from: recorded actions, no candidates worth the name."""
    if (folder.demonstrations / MANIFEST).is_file():
        return
    say(f"demonstrations: {plan.demonstrations} episodes")
    sampler = {"type": "scripted", "n": 1, "error_rate": 0.0}
    more = {"templates": plan.warm.templates} if plan.warm.templates else {}
    config = dataset_config(plan, "demonstrations", plan.demonstrations, plan.seed, more, sampler=sampler)
    build(config, folder.demonstrations)


def policy(plan: Plan, folder: Folder, say: Say) -> None:
    """Make the policy with random weights, its tokenizer trained on the texts of both datasets."""
    from solar_rl.train.tiny_text import Size, make_text_policy

    if plan.pretrained is not None or (folder.random / "config.json").is_file():
        return
    say("a policy with random weights")
    corpus = [*_texts(folder.demonstrations), *_recorded_texts(plan, folder)]
    made = folder.random.with_name("random.tmp")
    make_text_policy(made, corpus, size=Size(**plan.size), seed=plan.policy_seed)
    made.rename(folder.random)


def _texts(dataset: Path) -> Iterator[str]:
    """Yield goals, screens as the prompt shows them, and answers."""
    source = open_dataset(dataset)
    yield from source.table("episodes", "train").collect(engine="in-memory")["goal"]
    steps = source.table("steps", "train").collect(engine="in-memory")
    yield from (text.replace("\n", "\n ") for text in steps["screen_text"])
    yield from steps["thought"].drop_nulls()
    yield from source.table("candidates", "train").collect(engine="in-memory")["completion"]


def _recorded_texts(plan: Plan, folder: Folder) -> Iterator[str]:
    """Yield goals, screens and thoughts of the episodes that will be sampled."""
    config = sampled_config(plan, folder.random, ALIGNMENTS[0], plan.sampled)
    for episode in source_episodes(config, load_builder(config.source), []):
        yield episode.goal
        for step in episode.steps:
            yield from (text.replace("\n", "\n ") for text in (step.screen_text, step.thought) if text)


def warm_start(plan: Plan, folder: Folder, say: Say) -> None:
    """Fine-tune on the demonstrations, leg by leg, until a checkpoint's step accuracy reaches the target.

    The checkpoint that is nearest to the target becomes the start of every arm.
    """
    if folder.read("start.json") is not None:
        return
    warm, examiner = plan.warm, Examiner(plan)
    say(f"warm start: at most {warm.updates} updates of {warm.rows} steps")
    _read(plan, folder)
    tried: list[dict[str, Any]] = folder.read(_TRIED) or []
    for until in range(warm.every, warm.updates + 1, warm.every):
        if tried and (tried[-1]["step_accuracy"] >= warm.target or tried[-1]["updates"] >= until):
            continue
        _leg(plan, folder, until)
        tried.append(_tried(folder, examiner, until, say))
        folder.write(_TRIED, tried)
    if warm.cooling and tried[-1]["step_accuracy"] < warm.target and tried[-1]["updates"] <= warm.updates:
        _cool(plan, folder)
        tried.append(_tried(folder, examiner, warm.updates + warm.cooling, say))
        folder.write(_TRIED, tried)
    best = min(tried, key=lambda one: abs(one["step_accuracy"] - warm.target))
    shutil.rmtree(folder.start, ignore_errors=True)
    unneeded = shutil.ignore_patterns("optimizer*", "scheduler*", "rng_state*", "training_args*")
    shutil.copytree(_warmed(folder, best["updates"]), folder.start, ignore=unneeded)
    folder.write("start.json", {"chosen": best, "tried": tried})


def _warmed(folder: Folder, updates: int) -> Path:
    """Return the checkpoint of the warm start after so many updates; the last may be the cooled one."""
    point = folder.warming / f"checkpoint-{updates}"
    return point if point.is_dir() else folder.cooled


def _tried(folder: Folder, examiner: Examiner, updates: int, say: Say) -> dict[str, Any]:
    """Measure a checkpoint of the warm start."""
    found = examiner.steps(_warmed(folder, updates))
    say(f"  {updates} updates: step accuracy {found['step_accuracy']:.3f}")
    return {"updates": updates, "step_accuracy": found["step_accuracy"]}


def _read(plan: Plan, folder: Folder) -> None:
    """Train on whole texts: names come back in goal, history, screen and answer, and most of them not in the answer."""
    if not plan.warm.reading or (folder.reading / "config.json").is_file():
        return
    keys = _warm_keys(plan, folder) | {
        "completion_only_loss": False,
        "output_dir": str(folder.reading),
        "max_steps": plan.warm.reading,
        "lr_scheduler_type": "constant_with_warmup",
        "warmup_steps": min(100, plan.warm.reading // 10),
        "save_strategy": "no",
    }
    train("phone_cpu/baseline_sft", keys | plan.warm.keys, folder.root / "warming.log")


def _leg(plan: Plan, folder: Folder, until: int) -> None:
    """Train on from the last checkpoint."""
    warm = plan.warm
    keys = _warm_keys(plan, folder) | {
        "output_dir": str(folder.warming),
        "max_steps": until,
        "lr_scheduler_type": "constant_with_warmup",  # so that a leg doesn't depend on how many follow
        "warmup_steps": min(100, warm.updates // 10),
        "save_strategy": "steps",
        "save_steps": warm.every,
    }
    keys |= {"model_name_or_path": str(folder.reading)} if warm.reading else {}
    begun = [point for point in checkpoints(folder.warming) if updates_of(point) < until]
    keys |= {"resume_from_checkpoint": str(begun[-1])} if begun else {}
    train("phone_cpu/baseline_sft", keys | warm.keys, folder.root / "warming.log")


def _cool(plan: Plan, folder: Folder) -> None:
    """Train on from the last checkpoint, in another order, while the learning rate falls to 0."""
    shutil.rmtree(folder.cooled, ignore_errors=True)
    keys = _warm_keys(plan, folder) | {
        "model_name_or_path": str(_warmed(folder, plan.warm.updates)),
        "output_dir": str(folder.cooled),
        "max_steps": plan.warm.cooling,
        "lr_scheduler_type": "linear",
        "warmup_steps": plan.warm.cooling // 10,  # the optimizer's moments begin anew
        "seed": plan.seed + 1,
        "save_strategy": "no",
    }
    train("phone_cpu/baseline_sft", keys | plan.warm.keys, folder.root / "warming.log")


def _warm_keys(plan: Plan, folder: Folder) -> dict[str, Any]:
    """Return what all parts of the warm start say otherwise than their recipe."""
    warm = plan.warm
    return {
        "dataset": str(folder.demonstrations),
        "model_name_or_path": plan.pretrained or str(folder.random),
        "rows_per_update": warm.rows,
        "per_device_train_batch_size": warm.rows,
        "learning_rate": warm.learning_rate,
        "train_sampling_strategy": "group_by_length",  # short prompts needn't wait for long ones
        "thoughts": "recorded" if plan.thoughts else "none",
        "seed": plan.seed,
        "logging_steps": warm.every,
    }


def checkpoints(folder: Path) -> list[Path]:
    """List the checkpoints of a training run, oldest first."""
    return sorted(folder.glob("checkpoint-*"), key=updates_of)


def updates_of(checkpoint: Path) -> int:
    """Return after how many updates a checkpoint was saved."""
    return int(checkpoint.name.partition("-")[2])


def sampled_config(plan: Plan, policy: Path, alignment: str, episodes: int, more: int = 0) -> DatasetConfig:
    """Describe a dataset of candidates.

    Args:
        plan: The lab run.
        policy: Who answers.
        alignment: How rewards are aligned.
        episodes: Of how many episodes.
        more: Added to the seed of the phones, for other episodes.
    """
    sampler = sampler_block(plan, policy, plan.n) | {"adaptive": plan.adaptive}
    return dataset_config(
        plan,
        "sampled",
        episodes,
        plan.seed + plan.sampled_seed + more,
        sampler=sampler,
        prompt=prompt_block(plan) | {"history": plan.history},
        version=f"1.{ALIGNMENTS.index(alignment)}.0",
        shaping={"alignment": alignment},
    )


def versions(plan: Plan, folder: Folder, say: Say) -> None:
    """Sample candidates with the start policy once, and shape a version for each alignment."""
    for alignment in ALIGNMENTS:
        if (folder.dataset(alignment) / MANIFEST).is_file():
            continue  # whatever changed in the code since: all runs read one dataset
        say(f"dataset version {alignment}")
        config = sampled_config(plan, folder.start, alignment, plan.sampled)
        build(config, folder.dataset(alignment))  # the candidates come from the version beside it
