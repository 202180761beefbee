"""A built phone dataset for the fresh trainer, trainers on it, and answers that are known beforehand."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import polars as pl
from trl import GRPOConfig

from solar_rl.config import DatasetConfig
from solar_rl.pipeline import build
from solar_rl.pipeline.scoring import score_and_shape
from solar_rl.policy import load_policy
from solar_rl.sampling.base import Completion, Request
from solar_rl.train.data import Crediting
from solar_rl.train.fresh import FreshGRPOTrainer, let_generate
from solar_rl.train.fresh_data import load_fresh

SIZE = 4
SETTINGS = {
    "per_device_train_batch_size": 8,
    "steps_per_generation": 6,
    "gradient_accumulation_steps": 6,
    "num_generations": SIZE,
    "max_completion_length": 12,
    "max_steps": 1,
    "learning_rate": 1e-3,
    "lr_scheduler_type": "constant",
    "loss_type": "dapo",
    "scale_rewards": "none",
    "beta": 0.0,
    "use_cpu": True,
    "bf16": False,
    "gradient_checkpointing": False,
    "logging_steps": 1,
    "save_strategy": "no",
    "report_to": [],
    "disable_tqdm": True,
    "seed": 0,
}


def build_phone(folder: Path, policy: Path, **fields) -> Path:
    """Build 8 short episodes of the phone, 4 scripted candidates a step, scored by the policy."""
    options = {"episodes": 8, "buckets": {"short": 1.0, "long": 0.0, "super_long": 0.0}, "popup_rate": 0.0}
    config = DatasetConfig(
        name="phone",
        source={"builder": "phone", "splits": ["train"], "options": options},
        prompt={"max_pixels": 28 * 28 * 32} | fields.pop("prompt", {}),
        sampler={"n": SIZE, "policy": str(policy)} | fields.pop("sampler", {}),
        preview_rows=10,
        **fields,
    )
    return build(config, folder).folder


def fresh_trainer(
    dataset: Path,
    policy_folder: Path,
    out: Path,
    crediting: Crediting,
    kind=FreshGRPOTrainer,
    **options,
):
    """Make a fresh trainer as recipes/grpo.py does."""
    given = {name: options.pop(name) for name in ("anchor", "off_policy") if name in options}
    args = GRPOConfig(output_dir=str(out), **SETTINGS | options)
    data = load_fresh(
        dataset,
        crediting,
        size=args.num_generations,
        temperature=args.temperature,
        local_rows=args.per_device_train_batch_size * args.steps_per_generation,
    )
    prompt = data.prompt
    policy = load_policy(
        policy_folder, device="cpu", min_pixels=prompt.min_pixels, max_pixels=prompt.max_pixels
    )
    let_generate(args, policy)
    return kind(
        data=data,
        policy=policy,
        score=score_and_shape,
        crediting=crediting,
        model=policy.model,
        processing_class=policy.processor,
        args=args,
        **given,
    )


class Known:
    """Answers with a dataset's stored candidates, in the place of generation."""

    sampler_id = "known"

    def __init__(self, dataset: Path) -> None:
        rows = pl.read_parquet(dataset / "data" / "candidates" / "train-*.parquet")
        self._rows = {(r["episode_id"], r["step_index"], r["candidate_index"]): r for r in rows.to_dicts()}
        self.calls: list[list[Request]] = []

    def sample(self, requests: Iterable[Request]) -> Iterator[list[Completion]]:
        asked = list(requests)
        self.calls.append(asked)
        for request in asked:
            step = (request.episode.episode_id, request.step.step_index)
            rows = [self._rows[(*step, request.first + k)] for k in range(request.n)]
            yield [
                Completion(r["completion"], r["seed"], tuple(r["token_ids"]), tuple(r["sampling_logprobs"]))
                for r in rows
            ]

    def wait_for_others(self) -> None:
        """There are no others."""
