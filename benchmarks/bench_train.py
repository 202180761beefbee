"""Time an update of replay beside TRL's own GRPOTrainer, two processes beside one; count pixels' work and memory.

Usage: python benchmarks/bench_train.py [PART ...]      PART: trl, processes, images, memory (default: all)

The built-in phone's steps with 4 candidates each, a tiny Qwen2.5-VL, torch on one thread. A part ends in less
than 6 minutes.

* `trl`: the same prompts, screenshots and answer tokens, no generation, `behaviour`, 16 rows an update. TRL's
  trainer gets the stored answers in the place of sampling, and is otherwise as it comes. Both lie in one process
  and take the same groups in turns, update by update, so that a busy machine slows both; the median of the
  updates' ratios counts. Replay's screenshots are new in each update, as in a first epoch.
* `processes`: the same 16 rows an update by one process, and by two with torchrun over gloo, in 3 pairs of runs;
  the median of the pairs' ratios counts.
* `images`: how often a screenshot is preprocessed in one epoch.
* `memory`: peak memory of the tests of the trainer (tests/train/test_replay_trainer.py).
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
SIZE, ROWS, STEPS, WARM, LIMITS = 4, 16, 8, 2, (3136, 200_704)
TURNS, PAIRS = 16, 3
SETTINGS = {
    "num_generations": SIZE, "gradient_accumulation_steps": 1, "max_steps": STEPS + WARM,
    "scale_rewards": "none", "beta": 0.0, "use_cpu": True, "bf16": False, "gradient_checkpointing": False,
    "logging_steps": 1, "save_strategy": "no", "report_to": [], "disable_tqdm": True, "learning_rate": 1e-5,
}  # fmt: skip
QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def main() -> None:
    """Build what is trained on, do the parts, print a table."""
    if sys.argv[1:2] == ["--work"]:
        return WORK[sys.argv[2]](*sys.argv[3:])
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder))
        for part in sys.argv[1:] or PARTS:
            print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
            PARTS[part](folder)
    return None


def make(folder: Path) -> None:
    """Make the policy and the dataset."""
    from solar_rl.train.tiny import make_tiny_policy

    policy = make_tiny_policy(folder / "policy")
    command = [sys.executable, "-m", "solar_rl.cli", "build", "phone", "--out", str(folder / "data")]
    options = {"n": SIZE, "policy": policy}
    command += [word for name, value in options.items() for word in (f"--sampler.{name}", str(value))]
    command += ["--source.options.episodes", "20", "--prompt.max_pixels", str(LIMITS[1])]
    subprocess.run(command, check=True, **QUIET)


def run(*words: str, processes: int = 1) -> dict[str, float]:
    """Do a piece of work in processes of its own and return what it found."""
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(processes)]
    start = torchrun if processes > 1 else []
    command = [sys.executable, *start, __file__, "--work", *words]
    subprocess.run(command, check=True, env=os.environ | {"OMP_NUM_THREADS": "1"}, **QUIET)
    found: dict[str, float] = json.loads(Path(words[1], "result.json").read_text())
    return found


def tell(folder: str, **found: float) -> None:
    """Leave what a piece of work found."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    Path(folder, "result.json").write_text(json.dumps(found | {"gigabytes": peak}))


# --- beside TRL ----------------------------------------------------------------------------------------


def beside_trl(folder: str) -> None:
    """Print how long an update of replay takes, in TRL's."""
    found = run("turns", folder)
    print(f"replay / TRL, median of {TURNS} updates in turns   {found['ratio']:.3f} (CPU {found['cpu']:.3f})")
    print(f"  seconds an update: {found['replay']:.2f} / {found['trl']:.2f}")


def turns(folder: str) -> None:
    """Let both trainers take the same groups in turns."""
    import torch

    torch.set_num_threads(1)
    ways = ("replay", "trl")
    trainers = {way: make_trainer(Path(folder), way, ROWS) for way in ways}
    times: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
    for trainer in trainers.values():
        trainer.current_gradient_accumulation_steps = 1
        trainer.create_optimizer()
    groups = ROWS // SIZE
    for turn in range(TURNS + WARM):
        numbers = [turn * groups + k for k in range(groups)]
        for way in ways if turn % 2 else ways[::-1]:
            rows = (
                replays_rows(trainers[way], numbers) if way == "replay" else trls_rows(trainers[way], numbers)
            )
            times[way].append(update(trainers[way], rows))
    wall, cpu = (
        statistics.median(
            a[k] / b[k] for a, b in list(zip(times["replay"], times["trl"], strict=True))[WARM:]
        )
        for k in (0, 1)
    )
    medians = {way: statistics.median(seconds for seconds, _ in times[way][WARM:]) for way in ways}
    tell(folder, ratio=wall, cpu=cpu, **medians)


def update(trainer: Any, rows: list[dict[str, Any]]) -> tuple[float, float]:
    """Take one update, as the training loop does; return its seconds by the clock and of the CPU."""
    wall, cpu = time.perf_counter(), time.process_time()
    trainer.training_step(trainer.model, rows, None)
    trainer.optimizer.step()
    trainer.model.zero_grad()
    return time.perf_counter() - wall, time.process_time() - cpu


def replays_rows(trainer: Any, groups: list[int]) -> list[dict[str, Any]]:
    """Return the rows of groups as the training loop's batches have them."""
    return [trainer.train_dataset[number * SIZE + k] for number in groups for k in range(SIZE)]


def trls_rows(trainer: Any, groups: list[int]) -> list[dict[str, Any]]:
    """Return TRL's rows: one a group, repeated, its screenshots read anew for each."""
    return [trainer.train_dataset[number] for number in groups for _ in range(SIZE)]


# --- two processes -------------------------------------------------------------------------------------


def beside_one(folder: str) -> None:
    """Print how much quicker two processes are than one."""
    results = [(run("train", folder, "1"), run("train", folder, "2", processes=2)) for _ in range(PAIRS)]
    ratios = [one["seconds"] / two["seconds"] for one, two in results]
    print(f"two processes / one, throughput, median of {PAIRS}     {statistics.median(ratios):.3f}")
    print("  pairs: " + ", ".join(f"{ratio:.2f}" for ratio in ratios))
    seconds = [statistics.median(pair[k]["seconds"] for pair in results) for k in (0, 1)]
    print(f"  seconds an update: {seconds[0]:.2f} / {seconds[1]:.2f}")


def train(folder: str, processes: str) -> None:
    """Train and tell the mean time of an update after the first ones."""
    import torch
    from transformers import TrainerCallback

    torch.set_num_threads(1)

    class Clock(TrainerCallback):
        times: list[float] = []

        def on_step_end(self, *args: Any, **kwargs: Any) -> None:
            self.times.append(time.perf_counter())

    trainer = make_trainer(Path(folder), "replay", ROWS // int(processes))
    trainer.add_callback(Clock())
    trainer.train()
    if trainer.is_world_process_zero():
        tell(folder, seconds=(Clock.times[-1] - Clock.times[WARM - 1]) / STEPS)


# --- pixels and memory ---------------------------------------------------------------------------------


def pixels(folder: str) -> None:
    """Print how often a screenshot is preprocessed in an epoch."""
    found = run("count", folder)
    print(
        f"screenshots preprocessed in an epoch of {found['steps']:.0f} steps (x {SIZE} candidates): "
        f"{found['made']:.0f}, and {found['again']:.0f} more in a second epoch"
    )


def count(folder: str) -> None:
    """Make the batches of two epochs as the trainer does, and count what the image processor makes."""
    trainer = make_trainer(Path(folder), "replay", ROWS)
    trainer.model.train()
    groups = len(trainer.train_dataset) // SIZE
    made = []
    for _ in range(2):
        for start in range(0, groups, ROWS // SIZE):
            numbers = [k % groups for k in range(start, start + ROWS // SIZE)]
            trainer._generate_and_score_completions(replays_rows(trainer, numbers))
        made.append(trainer.images.made)
    tell(folder, steps=groups, made=made[0], again=made[1] - made[0])


def memory(folder: str) -> None:
    """Print the peak memory of the trainer's tests."""
    tests = Path(__file__).parents[1] / "tests" / "train" / "test_replay_trainer.py"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tests)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    subprocess.run(
        command, check=True, env=os.environ | {"OMP_NUM_THREADS": "1"}, cwd=tests.parents[2], **QUIET
    )
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    limit = "" if peak > before else "at most "
    print(f"peak memory of the trainer's tests: {limit}{peak / 2**20:.2f} GB")


def make_trainer(folder: Path, way: str, rows: int) -> Any:
    """Return the replay trainer, or TRL's own on the same groups."""
    from trl import GRPOConfig

    from solar_rl.policy import load_policy
    from solar_rl.train.data import Crediting, load_replay
    from solar_rl.train.images import remember_images
    from solar_rl.train.trainer import ReplayGRPOTrainer

    data = load_replay(folder / "data", Crediting(credit="step_local"))
    policy = load_policy(folder / "policy", device="cpu", min_pixels=LIMITS[0], max_pixels=LIMITS[1])
    config = GRPOConfig(output_dir=str(folder / way), per_device_train_batch_size=rows, **SETTINGS)
    shared = {"model": policy.model, "processing_class": policy.processor, "args": config}
    if way != "trl":
        images = remember_images(policy.processor.image_processor, 2**28)
        return ReplayGRPOTrainer(contexts=data.contexts, images=images, train_dataset=data.rows, **shared)
    return trls_own(data, shared)


def trls_own(data: Any, shared: dict[str, Any]) -> Any:
    """Return TRL's trainer on one row a step, with the stored answers in the place of generation."""
    import datasets
    from trl import GRPOTrainer

    groups = [data.group(number) for number in range(len(data))]
    rows = datasets.Dataset.from_list(
        [
            {
                "number": number,
                "prompt": data.contexts.messages(group[0]["context"]),
                "images": [
                    {"bytes": image, "path": None} for image in data.contexts.encoded(group[0]["context"])
                ],
            }
            for number, group in enumerate(groups)
        ]
    ).cast_column("images", datasets.List(datasets.Image()))

    class Stored(GRPOTrainer):
        def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
            seen: Counter[int] = Counter()
            self.members = []
            for row in inputs:
                self.members.append(groups[row["number"]][seen[row["number"]]])
                seen[row["number"]] += 1
            return super()._generate_and_score_completions(inputs)

        def _generate_single_turn(self, prompt_ids: list[Any], *args: Any, **kwargs: Any) -> tuple[Any, Any]:
            return [list(m["token_ids"]) for m in self.members], None

    def reward(completions: list[Any], **_: Any) -> list[float]:
        return [member["reward"] for member in trainer.members]

    trainer = Stored(reward_funcs=[reward], train_dataset=rows, **shared)
    return trainer


PARTS: dict[str, Callable[[str], None]] = {
    "trl": beside_trl,
    "processes": beside_one,
    "images": pixels,
    "memory": memory,
}
WORK: dict[str, Callable[..., None]] = {"turns": turns, "train": train, "count": count}

if __name__ == "__main__":
    main()
