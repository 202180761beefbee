"""Make what all arms share: demonstrations, a policy that has learned from them, and one sampled dataset."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from solar_rl.builder import load_builder
from solar_rl.config import DatasetConfig
from solar_rl.evaluate.answering import source_episodes
from solar_rl.lab.arms import ALIGNMENTS
from solar_rl.lab.asking import PIXELS, dataset_config, prompt_block, sampler_block
from solar_rl.lab.folder import Folder
from solar_rl.lab.measuring import Examiner
from solar_rl.lab.plan import Plan
from solar_rl.lab.sharing import take_over_start
from solar_rl.lab.training import train
from solar_rl.lab.worlds import WORLDS
from solar_rl.pipeline import build
from solar_rl.store.dataset import open_dataset
from solar_rl.store.manifest import MANIFEST

Say = Callable[[str], None]
_TRIED = "warming.json"
"""Step accuracy of the warm start's checkpoints so far."""
_MANY = 500
"""Demonstrations from which on it pays to start workers for them."""


def prepare(plan: Plan, folder: Folder, say: Say) -> None:
    """Make everything up to the dataset versions; what is there already is kept.

    Args:
        plan: The lab run.
        folder: Where it goes.
        say: Told what begins.
    """
    if plan.shares is not None:
        take_over_start(plan, folder)
    else:
        demonstrations(plan, folder, say)
        policy(plan, folder, say)
        warm_start(plan, folder, say)
    versions(plan, folder, say)


def demonstrations(plan: Plan, folder: Folder, say: Say) -> None:
    """Build the dataset that the warm start learns from: recorded actions, no candidates worth the name."""
    if (folder.demonstrations / MANIFEST).is_file():
        return
    say(f"demonstrations: {plan.demonstrations} episodes")
    sampler = {"type": "scripted", "n": 1, "error_rate": 0.0}
    options = WORLDS[plan.world].recorded(plan, plan.demonstrations, plan.seed, plan.warm.only)
    executor = {"type": "local", "workers": plan.workers if plan.demonstrations >= _MANY else 1}
    config = dataset_config(plan, "demonstrations", options, sampler=sampler, executor=executor)
    build(config, folder.demonstrations)


def policy(plan: Plan, folder: Folder, say: Say) -> None:
    """Make the policy with random weights, its tokenizer trained on all texts that it will see."""
    if plan.pretrained is not None or (folder.random / "config.json").is_file():
        return
    say("a policy with random weights")
    corpus = list(_texts(folder.demonstrations))
    if plan.warm.only:  # the sampled goals have words that the demonstrations lack
        corpus += _recorded_texts(plan, folder)
    made = folder.random.with_name("random.tmp")
    if plan.observation == "image":
        from solar_rl.train.tiny import default_corpus, make_tiny_policy

        make_tiny_policy(made, corpus=[*default_corpus(), *corpus], seed=plan.policy_seed, max_pixels=PIXELS)
    else:
        from solar_rl.train.tiny_text import Size, make_text_policy

        make_text_policy(made, corpus, size=Size(**plan.size), seed=plan.policy_seed)
    made.rename(folder.random)


def _texts(dataset: Path) -> Iterator[str]:
    """Yield goals, screens as the prompt shows them, and answers."""
    source = open_dataset(dataset)
    yield from source.table("episodes", "train").collect(engine="in-memory")["goal"]
    steps = source.table("steps", "train").collect(engine="in-memory")
    yield from (text.replace("\n", "\n ") for text in steps["screen_text"])
    yield from (f"> {thought}" for thought in steps["thought"].drop_nulls())
    yield from source.table("candidates", "train").collect(engine="in-memory")["completion"]


def _recorded_texts(plan: Plan, folder: Folder) -> Iterator[str]:
    """Yield goals, screens and thoughts of the episodes that will be sampled."""
    config = sampled_config(plan, folder.random, ALIGNMENTS[0], plan.sampled)
    for episode in source_episodes(config, load_builder(config.source), []):
        yield episode.goal
        for step in episode.steps:
            yield (step.screen_text or "").replace("\n", "\n ")
            yield f"> {step.thought or ''}"


def warm_start(plan: Plan, folder: Folder, say: Say) -> None:
    """Fine-tune on the demonstrations, and measure the checkpoints; the last is the start of every arm."""
    if folder.read("start.json") is not None:
        return
    warm, examiner = plan.warm, Examiner(plan)
    say(f"warm start: {warm.updates} updates of {warm.rows} steps")
    if not (folder.warming / "config.json").is_file():
        _warm(plan, folder)
    tried: list[dict[str, Any]] = folder.read(_TRIED) or []
    points = [
        *((updates_of(point), point) for point in checkpoints(folder.warming)),
        (warm.updates, folder.warming),
    ]
    for updates, point in dict(points).items():
        if updates in {each["updates"] for each in tried}:
            continue
        found = examiner.steps(point)
        say(f"  {updates} updates: step accuracy {found['step_accuracy']:.3f}")
        tried.append({"updates": updates, "step_accuracy": found["step_accuracy"]})
        folder.write(_TRIED, tried)
    shutil.rmtree(folder.start, ignore_errors=True)
    unneeded = shutil.ignore_patterns("checkpoint-*", "training_args*")
    shutil.copytree(folder.warming, folder.start, ignore=unneeded)
    folder.write("start.json", {"chosen": tried[-1], "tried": tried})


def _warm(plan: Plan, folder: Folder) -> None:
    """Train, or go on from the last checkpoint."""
    warm, begun = plan.warm, checkpoints(folder.warming)
    keys: dict[str, Any] = {
        "dataset": str(folder.demonstrations),
        "model_name_or_path": plan.pretrained or str(folder.random),
        "output_dir": str(folder.warming),
        "rows_per_update": warm.rows,
        "per_device_train_batch_size": warm.rows,
        "max_steps": warm.updates,
        "learning_rate": warm.learning_rate,
        "lr_scheduler_type": "linear",
        "warmup_steps": min(100, warm.updates // 10),
        "prompt_weight": warm.prompt_weight,
        "thoughts": "recorded" if plan.thoughts else "none",
        "seed": plan.seed,
        "logging_steps": warm.every,
        "save_strategy": "steps",
        "save_steps": warm.every,
    }
    if plan.observation == "text":  # short prompts needn't wait for long ones; pictures are of one size
        keys["train_sampling_strategy"] = "group_by_length"
    keys |= {"resume_from_checkpoint": str(begun[-1])} if begun else {}
    train("phone_cpu/baseline_sft", keys | warm.keys, folder.root / "warming.log")


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
        more: Added to the seed, for other episodes.
    """
    sampler = sampler_block(plan, policy, plan.n) | {"adaptive": plan.adaptive}
    return dataset_config(
        plan,
        "sampled",
        WORLDS[plan.world].recorded(plan, episodes, plan.seed + plan.sampled_seed + more),
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
