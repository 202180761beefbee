"""A small dataset with real screenshots, made through the schema, and a trainer on it."""

import io
import random
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path

import polars as pl
from peft import LoraConfig
from PIL import Image, ImageDraw
from trl import GRPOConfig

from solar_rl.actions import Action
from solar_rl.columns import candidates_frame, episodes_frame, polars_schema, steps_frame
from solar_rl.config import DatasetConfig
from solar_rl.formats import get_format
from solar_rl.formats.base import Frame
from solar_rl.policy import answer_ids, batch_logprobs, load_policy
from solar_rl.schema import Candidate, Episode, Screenshot, Step
from solar_rl.store.manifest import Manifest, write_manifest
from solar_rl.store.parquet import TableWriter
from solar_rl.train.anchor import Anchor
from solar_rl.train.contexts import Contexts
from solar_rl.train.data import Crediting, load_replay
from solar_rl.train.images import Screens, remember_images
from solar_rl.train.trainer import ReplayGRPOTrainer

SIZE = 4
SCREEN = (112, 168)
PROMPT = {"format": "json", "min_pixels": 28 * 28 * 4, "max_pixels": 28 * 28 * 32}
CORRECT, NEAR, WRONG, GARBAGE = "correct", "near", "wrong", "garbage"
KINDS = {CORRECT: 1.0, NEAR: 0.7, WRONG: 0.2, GARBAGE: 0.0}
LABELS = (
    Action("click", x=0.25, y=0.5),
    Action("scroll", direction="down"),
    Action("input_text", text="hello"),
    Action("click", x=0.75, y=0.25),
    Action("press", button="back"),
)


@dataclass(frozen=True)
class Made:
    """A dataset folder, and what kind each of its candidates is, by (episode, step, candidate)."""

    folder: Path
    kinds: dict[tuple[str, int, int], str]


def make_dataset(
    folder: Path, policy_folder: Path | None, episodes: int = 5, build_id: str = "0" * 16
) -> Made:
    """Write episodes of 3 steps with 4 candidates each; without a policy there are no log-probs.

    The shaped columns are those of alignment ``off`` with suffix ``discard``: after its first wrong
    action a trajectory is out of play. Step 2 of the last episode has 4 equal scores.
    """
    demos = [episode_number(number) for number in range(episodes)]
    kinds = {
        (demo.episode_id, step.step_index, k): _kind(number, step.step_index, k, last=number == episodes - 1)
        for number, demo in enumerate(demos)
        for step in demo.steps
        for k in range(SIZE)
    }
    candidates = [
        _candidate(demo.episode_id, step, k, kinds[demo.episode_id, step.step_index, k])
        for demo in demos
        for step in demo.steps
        for k in range(SIZE)
    ]
    images = {step.screenshot.sha256: step.screenshot for demo in demos for step in demo.steps}
    tables = {
        "episodes": episodes_frame(demos),
        "steps": steps_frame(demos),
        "images": pl.DataFrame(
            [(sha, {"bytes": i.data, "path": None}, i.width, i.height) for sha, i in sorted(images.items())],
            schema=polars_schema("images"),
            orient="row",
        ),
        "candidates": candidates_frame(candidates),
        **_rewards(demos, kinds),
    }
    for table, rows in tables.items():
        if table == "candidates" and policy_folder is not None:
            continue
        with TableWriter(folder, table, "train") as writer:
            writer.write(rows)
    if policy_folder is not None:
        with TableWriter(folder, "candidates", "train") as writer:
            writer.write(_with_logprobs(tables["candidates"], tables, folder, policy_folder))
    config = DatasetConfig(
        name="small", source={"builder": "phone"}, sampler={"type": "scripted", "n": SIZE}, prompt=PROMPT
    )
    write_manifest(
        folder,
        Manifest(name="small", version="1.0.0", build_id=build_id, config=config.model_dump(mode="json")),
    )
    return Made(folder, kinds)


def episode_number(number: int) -> Episode:
    steps = tuple(
        Step(t, LABELS[(number + t) % len(LABELS)], *SCREEN, screenshot=screen(10 * number + t))
        for t in range(3)
    )
    return Episode(f"e{number}", "small", "android", f"Open page {number} and say hello", steps, app="notes")


def screen(seed: int, size: tuple[int, int] = SCREEN) -> Screenshot:
    draw_from = random.Random(seed)
    image = Image.new("RGB", size, (245, 245, 245))
    draw = ImageDraw.Draw(image)
    for _ in range(4):
        x, y = draw_from.randrange(size[0] - 30), draw_from.randrange(size[1] - 20)
        draw.rectangle([x, y, x + 28, y + 16], fill=tuple(draw_from.randrange(256) for _ in range(3)))
    data = io.BytesIO()
    image.save(data, "PNG")
    return Screenshot(data.getvalue(), *size)


def _kind(episode: int, step: int, candidate: int, *, last: bool) -> str:
    if last and step == 2:
        return CORRECT
    pattern = (
        (CORRECT, WRONG, NEAR, GARBAGE),
        (CORRECT, CORRECT, WRONG, GARBAGE),
        (GARBAGE, CORRECT, WRONG, WRONG),
    )[(episode + step) % 3]
    return pattern[(candidate + episode) % SIZE]


def _candidate(episode_id: str, step: Step, index: int, kind: str) -> Candidate:
    form, frame = get_format("json"), Frame(*SCREEN)
    wrong = Action("open_app", app_name="Clock") if index % 2 else Action("wait")
    action = {CORRECT: step.action, NEAR: step.action, WRONG: wrong, GARBAGE: None}[kind]
    text = "I can not see it." if action is None else form.render(action, frame)
    text += "\n" if kind == NEAR else ""
    error = None if action else "no JSON object"
    return Candidate(episode_id, step.step_index, index, text, "test", index, action, error)


def _with_logprobs(candidates: pl.DataFrame, tables, folder: Path, policy_folder: Path) -> pl.DataFrame:
    config = DatasetConfig(name="small", source={"builder": "phone"}, prompt=PROMPT).prompt
    policy = load_policy(
        policy_folder, device="cpu", min_pixels=config.min_pixels, max_pixels=config.max_pixels
    )
    steps = tables["steps"].join(tables["episodes"].select("episode_id", "goal"), on="episode_id")
    steps = steps.sort("episode_id", "step_index")
    contexts = Contexts(steps, Screens(folder.glob("data/images/*.parquet")), config)
    texts = candidates["completion"].to_list()
    ids = [answer_ids(policy, text) for text in texts]
    logps = [
        row
        for c in range(len(contexts))
        for row in batch_logprobs(
            policy, contexts.messages(c), contexts.encoded(c), ids[c * SIZE : (c + 1) * SIZE], 1.0
        )
    ]
    return candidates.with_columns(
        pl.Series("token_ids", [list(row) for row in ids], pl.List(pl.Int32)),
        pl.Series("sampling_logprobs", logps, pl.List(pl.Float32)),
    )


def _rewards(demos, kinds) -> dict[str, pl.DataFrame]:
    rewards, trajectories = [], []
    for demo in demos:
        for k in range(SIZE):
            scores = [KINDS[kinds[demo.episode_id, t, k]] for t in range(demo.ref_len)]
            failure = next((t for t, score in enumerate(scores) if score < 0.5), None)
            kept = demo.ref_len if failure is None else failure + 1
            for t, score in enumerate(scores):
                base = (score if score >= 0.5 else score - 1.0) if t < kept else None
                position = "after" if t >= kept else "breakdown" if t == failure else "prefix"
                rewards.append(
                    {
                        "episode_id": demo.episode_id,
                        "step_index": t,
                        "candidate_index": k,
                        "app": demo.app,
                        "action_type": demo.steps[t].action.action_type,
                        "raw_score": score,
                        "valid": score >= 0.5,
                        "rule": "test",
                        "position": position,
                        "segment_index": 0,
                        "base_reward": base,
                        "gap_share": None if base is None else 0.0,
                        "reward": base,
                        "pred_action_type": None if score == 0.0 else demo.steps[t].action.action_type,
                    }
                )
            trajectories.append(
                {
                    "episode_id": demo.episode_id,
                    "candidate_index": k,
                    "ref_len": demo.ref_len,
                    "first_failure_step": failure,
                    "valid_prefix_len": demo.ref_len if failure is None else failure,
                    "success": failure is None,
                    "mean_raw_score": sum(scores[:kept]) / kept,
                    "trajectory_reward": 0.3 * sum(scores[:kept]) / kept + 0.4 * (failure is None),
                    "target_reward": 0.0,
                    "reward_sum": 0.0,
                    "alignment": "off",
                }
            )
    step = ["episode_id", "step_index"]
    frame = pl.DataFrame(rewards, schema=polars_schema("rewards"), orient="row")
    frame = frame.sort(*step, "candidate_index").with_columns(
        advantage=pl.col("reward") - pl.col("reward").mean().over(step)
    )
    return {
        "rewards": frame,
        "trajectories": pl.DataFrame(trajectories, schema=polars_schema("trajectories"), orient="row"),
    }


CREDITING = tuple(field.name for field in fields(Crediting))
REPLAYING = ("off_policy", "tis_clip", "tis_level")


def build_trainer(made: Made, policy_folder: Path, out: Path, *, expert_anchor: float = 0.0, **options):
    """Make a trainer as recipes/grpo.py does; options of load_replay, the trainer and GRPOConfig mixed."""
    crediting = {k: options.pop(k) for k in CREDITING if k in options}
    replaying = {k: options.pop(k) for k in REPLAYING if k in options}
    crediting = Crediting(**({"anchor": "auto"} if expert_anchor else {}) | crediting)
    lora = options.pop("lora", None)
    data = load_replay(made.folder, crediting)
    policy = load_policy(
        policy_folder, device="cpu", min_pixels=PROMPT["min_pixels"], max_pixels=PROMPT["max_pixels"]
    )
    settings = {
        "per_device_train_batch_size": 8,
        "gradient_accumulation_steps": 1,
        "num_generations": SIZE,
        "max_steps": 20,
        "learning_rate": 2e-3,
        "lr_scheduler_type": "constant",
        "scale_rewards": "none",
        "loss_type": "dapo",
        "beta": 0.0,
        "use_cpu": True,
        "bf16": False,
        "gradient_checkpointing": False,
        "logging_steps": 1,
        "save_strategy": "no",
        "report_to": [],
        "disable_tqdm": True,
    } | options
    trainer = ReplayGRPOTrainer(
        contexts=data.contexts,
        model=policy.model,
        processing_class=policy.processor,
        args=GRPOConfig(output_dir=str(out), **settings),
        train_dataset=data.rows,
        anchor=Anchor(expert_anchor, partial(answer_ids, policy)) if expert_anchor else None,
        images=remember_images(policy.processor.image_processor, 2**26),
        counts=data.counts,
        peft_config=LoraConfig(**lora) if lora else None,
        **replaying,
    )
    return trainer, data, policy


def losses(trainer) -> list[float]:
    return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
