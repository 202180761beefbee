"""Time an update of replay beside TRL's own GRPOTrainer, and two processes beside one.

Usage: python benchmarks/bench_train.py [PAIRS]

The built-in phone's steps with 4 candidates each, a tiny Qwen2.5-VL, torch on one thread.

* Replay beside TRL: the same prompts, screenshots and answer tokens, no generation, `behaviour`, 16 rows an
  update. TRL's trainer gets the stored answers in the place of sampling, and is otherwise as it comes.
* Two processes beside one: the same 16 rows an update, by torchrun over gloo.

Runs are interleaved in pairs; the median of the pairs' ratios is what counts, since a busy machine slows both.
Then the peak memory of one run.
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
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
SIZE, ROWS, STEPS, WARM, LIMITS = 4, 16, 8, 2, (3136, 200_704)
SETTINGS = {
    "num_generations": SIZE, "gradient_accumulation_steps": 1, "max_steps": STEPS + WARM,
    "scale_rewards": "none", "beta": 0.0, "use_cpu": True, "bf16": False, "gradient_checkpointing": False,
    "logging_steps": 1, "save_strategy": "no", "report_to": [], "disable_tqdm": True, "learning_rate": 1e-5,
}  # fmt: skip


def main() -> None:
    """Build, time, print a table."""
    if sys.argv[1:2] == ["--work"]:
        return work(*sys.argv[2:])
    pairs = int((sys.argv[1:] or ["3"])[0])
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder))
        print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
        compare(
            "replay / TRL, seconds an update",
            pairs,
            lambda: run(folder, "replay"),
            lambda: run(folder, "trl"),
        )
        compare("same, shaped credit", pairs, lambda: run(folder, "solar"), lambda: run(folder, "trl"))
        compare(
            "one process / two, seconds an update", pairs,
            lambda: run(folder, "replay"), lambda: run(folder, "replay", 2),
        )  # fmt: skip
        print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    return None


def make(folder: Path) -> None:
    """Make the policy and the dataset."""
    from solar_rl.train.tiny import make_tiny_policy

    policy = make_tiny_policy(folder / "policy")
    command = [sys.executable, "-m", "solar_rl.cli", "build", "phone", "--out", str(folder / "data")]
    options = {"n": SIZE, "policy": policy}
    command += [word for name, value in options.items() for word in (f"--sampler.{name}", str(value))]
    command += ["--source.options.episodes", "8", "--prompt.max_pixels", str(LIMITS[1])]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def compare(title: str, pairs: int, one: Any, other: Any) -> None:
    """Run two ways in turns and print the median of the pairs' ratios."""
    results = [(one(), other()) for _ in range(pairs)]
    ratio = statistics.median(a["seconds"] / b["seconds"] for a, b in results)
    seconds = [statistics.median(r[k]["seconds"] for r in results) for k in (0, 1)]
    peaks = [max(r[k]["gigabytes"] for r in results) for k in (0, 1)]
    print(
        f"{title:40} {ratio:6.3f}   {seconds[0]:.3f} s / {seconds[1]:.3f} s   peak {peaks[0]:.2f} / {peaks[1]:.2f} GB"
    )


def run(folder: str, way: str, processes: int = 1) -> dict[str, float]:
    """Train in processes of their own; return seconds an update and the peak memory of one of them."""
    result = Path(folder, "result.json")
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(processes)]
    start = torchrun if processes > 1 else []
    command = [sys.executable, *start, __file__, "--work", folder, way, str(processes)]
    env = os.environ | {"OMP_NUM_THREADS": "1"}
    subprocess.run(command, check=True, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    measured: dict[str, float] = json.loads(result.read_text())
    return measured


def work(folder: str, way: str, processes: str) -> None:
    """Train and write down the mean time of an update after the first ones."""
    import torch
    from transformers import TrainerCallback

    torch.set_num_threads(1)

    class Clock(TrainerCallback):
        times: list[float] = []

        def on_step_end(self, *args: Any, **kwargs: Any) -> None:
            self.times.append(time.perf_counter())

    trainer = make_trainer(Path(folder), way, ROWS // int(processes))
    trainer.add_callback(Clock())
    trainer.train()
    if trainer.is_world_process_zero():
        seconds = (Clock.times[-1] - Clock.times[WARM - 1]) / STEPS
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        Path(folder, "result.json").write_text(json.dumps({"seconds": seconds, "gigabytes": peak}))


def make_trainer(folder: Path, way: str, rows: int) -> Any:
    """Return the replay trainer, or TRL's own on the same rows."""
    from trl import GRPOConfig

    from solar_rl.policy import load_policy
    from solar_rl.train.data import Crediting, load_replay
    from solar_rl.train.images import remember_images
    from solar_rl.train.trainer import ReplayGRPOTrainer

    credit = "solar" if way == "solar" else "step_local"
    data = load_replay(folder / "data", Crediting(credit=credit))
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


if __name__ == "__main__":
    main()
