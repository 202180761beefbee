"""Work out how much GPU memory a recipe takes: arithmetic from the model's shape, not a measurement.

Every term is a formula of docs/memory.md. What no formula knows (CUDA's own memory, fragments of the
allocator, NCCL's buffers) is ``OVERHEAD``. GB are 10^9 bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from solar_rl.store.manifest import MANIFEST, read_manifest
from solar_rl.train.keys import is_true, whole

GB = 10**9
CARDS = (24, 48, 80, 141)
"""GPUs that a plan is compared with, in GB."""
SHARINGS = ("ddp", "fsdp2", "zero2", "zero3")
"""Ways to share a model over GPUs: the shipped accelerate configs; multi_node shares as fsdp2 does."""
OVERHEAD = 1.5 * GB
"""CUDA's context, NCCL's buffers and the allocator's fragments; ours, because nothing states it."""
PAPER_CONTEXT = 6144
"""Tokens of prompt and answer in the paper."""
_TEXT = 600
"""Tokens of a prompt beside its screenshot: system prompt, goal, history; ours, a round figure."""
_SFT_ANSWER = 256
"""Tokens of a recorded action, at most; ours, a round figure."""
_PIXELS = 28 * 28
"""Pixels that become one token in the Qwen-VL family."""
_BF16, _FP32 = 2, 4
_BUCKET = 500_000_000
"""Elements of DeepSpeed's buckets, its default."""
_LIVE = 1_000_000_000
"""Elements of gathered weights that ZeRO-3 keeps, its default."""
_TILE_TOKENS, _TILE_WORDS = 4096, 32768
"""TRL 1.16 multiplies by the head in tiles of so many tokens and words, so logits never exist in full."""


@dataclass(frozen=True)
class Eyes:
    """The vision part of a model.

    Args:
        layers: Blocks.
        hidden: Width.
        intermediate: Width inside the MLP.
        patch_values: Numbers in the pixels of a patch.
        merge: Patches that become one token.
    """

    layers: int
    hidden: int
    intermediate: int
    patch_values: int
    merge: int


@dataclass(frozen=True)
class Shape:
    """What a model's size is made of.

    Args:
        parameters: Weights, adapters left out.
        adapters: Weights of LoRA's adapters; 0 without them.
        block: Weights of the largest block that FSDP gathers at a time.
        root: Weights outside of all blocks: embedding, head, norms, the merger of the eyes.
        layers: Blocks of the language model.
        hidden: Its width.
        keys: Width of its keys, all heads together.
        intermediate: Width inside its MLP.
        vocabulary: Words of its head.
        eyes: Its vision part; None for a model that reads text only.
    """

    parameters: int
    adapters: int
    block: int
    root: int
    layers: int
    hidden: int
    keys: int
    intermediate: int
    vocabulary: int
    eyes: Eyes | None

    @property
    def trainable(self) -> int:
        """Return the number of weights that are trained."""
        return self.adapters or self.parameters


@dataclass(frozen=True)
class Job:
    """What a recipe asks of a GPU.

    Args:
        rows: Rows of a forward pass.
        held: Rows whose screenshots wait on the GPU.
        context: Tokens of prompt and answer.
        answer: Tokens of the answer.
        screens: Tokens of the screenshots in a prompt.
        weight_bytes: Bytes of a weight as it is loaded.
        bf16: Whether the arithmetic is in bf16.
        checkpointing: Whether activations are made again in the backward pass.
        reference: Whether a second model is kept for the KL term.
        vllm: Share of the GPU that vLLM takes for itself.
    """

    rows: int
    held: int
    context: int
    answer: int
    screens: int
    weight_bytes: int
    bf16: bool
    checkpointing: bool
    reference: bool
    vllm: float = 0.0


def context_of(settings: Mapping[str, Any]) -> tuple[int, int | None]:
    """Return the tokens of a row, and of its screenshots, at the most.

    They follow from the dataset's pixel limit; where there is no dataset yet, from the one that the recipe sets,
    with one screenshot a prompt, or else the paper's figure stands.
    """
    folder = Path(str(settings.get("dataset", "")))
    if not (folder / MANIFEST).is_file():
        if str(settings.get("dataset_max_pixels", "none")).lower() in ("none", "null"):
            return PAPER_CONTEXT, None
        screens = int(settings["dataset_max_pixels"]) // _PIXELS
        return screens + _TEXT + _answer(settings), screens
    prompt = read_manifest(folder).config["prompt"]
    screens = 0
    if prompt["observation"] != "text":
        screens = prompt["screenshots"] * (prompt["max_pixels"] // _PIXELS)
    return screens + _TEXT + _answer(settings), screens


def _answer(settings: Mapping[str, Any]) -> int:
    sft = settings.get("trainer") == "sft"
    return _SFT_ANSWER if sft else whole(settings, "max_completion_length", 512)


def read_job(settings: Mapping[str, Any], shape: Shape, context: int, screens: int | None = None) -> Job:
    """Return what a recipe's settings ask of a GPU.

    Args:
        settings: Keys of the recipe.
        shape: The model.
        context: Tokens of prompt and answer.
        screens: Tokens of the screenshots in a prompt (default: what the context leaves beside the text).
    """
    sft = settings.get("trainer") == "sft"
    rows = whole(settings, "per_device_train_batch_size", 8)
    answer = _answer(settings)
    steps = whole(settings, "steps_per_generation", whole(settings, "gradient_accumulation_steps", 1))
    half = str(settings.get("dtype", "float32")) in ("bfloat16", "float16")
    room = max(context - answer - _TEXT, 0) if screens is None else screens
    return Job(
        rows=rows,
        held=rows if sft else rows * steps,
        context=context,
        answer=answer,
        screens=room if shape.eyes else 0,
        weight_bytes=_BF16 if half else _FP32,
        bf16=is_true(settings.get("bf16", True)),
        checkpointing=is_true(settings.get("gradient_checkpointing", True)),
        reference=not sft and float(settings.get("beta", 0.0)) > 0 and not shape.adapters,
        vllm=float(settings.get("vllm_gpu_memory_utilization", 0.3)) if _colocated(settings) else 0.0,
    )


def _colocated(settings: Mapping[str, Any]) -> bool:
    return is_true(settings.get("use_vllm", False)) and settings.get("vllm_mode", "colocate") == "colocate"


def memory(shape: Shape, job: Job, sharing: str, gpus: int) -> dict[str, float]:
    """Return the bytes that each part takes on every GPU; their sum is what a GPU must have.

    Args:
        shape: The model.
        job: What the recipe asks of a GPU.
        sharing: One of ``SHARINGS``.
        gpus: Number of GPUs; with one nothing is shared.

    Returns:
        weights, gradients, optimiser, reference, gathered, activations, pixels, logits, overhead.
    """
    share = _deepspeed if sharing.startswith("zero") else _torch
    fixed = share(shape, job, sharing, gpus)
    return {
        **fixed,
        "activations": activations(shape, job, sharing),
        "pixels": pixels(shape, job),
        "logits": logits(shape, job),
        "overhead": OVERHEAD,
    }


def _torch(shape: Shape, job: Job, sharing: str, gpus: int) -> dict[str, float]:
    """Weights are kept as they were loaded, trained ones in float32 where the arithmetic is bf16."""
    trained = _FP32 if job.bf16 and (shape.adapters or sharing == "fsdp2") else job.weight_bytes
    frozen = shape.parameters if shape.adapters else 0
    parts: dict[str, float] = {
        "weights": frozen * job.weight_bytes + shape.trainable * trained,
        "gradients": shape.trainable * trained,
        "optimiser": 2 * shape.trainable * trained,
        "reference": shape.parameters * job.weight_bytes if job.reference else 0,
    }
    if sharing == "fsdp2" and gpus > 1:
        width = _BF16 if job.bf16 else job.weight_bytes
        gradients = 0 if shape.adapters else shape.root + shape.block
        gathered = width * (shape.root + 2 * shape.block + gradients)
        return {name: part / gpus for name, part in parts.items()} | {"gathered": gathered}
    buckets = parts["gradients"] if gpus > 1 else 0  # DDP reduces in buckets of its own
    copies = shape.trainable * _BF16 if job.bf16 and trained == _FP32 else 0  # autocast's, in bf16
    return parts | {"gathered": buckets + copies}


def _deepspeed(shape: Shape, job: Job, sharing: str, gpus: int) -> dict[str, float]:
    """Weights and gradients in bf16; float32 masters and both moments lie with the optimiser, sharded."""
    width = _BF16 if job.bf16 else _FP32
    whole_model = shape.parameters + shape.adapters
    over = gpus if sharing == "zero3" else 1
    gathered = width * min(shape.trainable, _BUCKET) * (1 if sharing == "zero3" else 2)
    gathered += width * min(whole_model, _LIVE) if sharing == "zero3" else 0
    return {
        "weights": width * whole_model / over,
        "gradients": width * shape.trainable / gpus,
        "optimiser": 3 * _FP32 * shape.trainable / gpus,
        "reference": width * shape.parameters / over if job.reference else 0,
        "gathered": gathered,
    }


def activations(shape: Shape, job: Job, sharing: str) -> float:
    """Return the bytes of what the forward pass leaves for the backward pass.

    With checkpointing: each block's input, and one block in full with its gradients; else all in full.
    Attention is counted without its L x L matrix, which torch's fused kernels don't keep.
    """
    casts = sharing != "ddp" or job.weight_bytes == _BF16  # else autocast leaves the stream in float32
    stream = _BF16 if job.bf16 and casts else job.weight_bytes
    width = _BF16 if job.bf16 else job.weight_bytes
    parts = [(shape.layers, job.context, shape.hidden, 8 * shape.hidden + 2 * shape.keys, shape.intermediate)]
    if shape.eyes:
        eyes, patches = shape.eyes, job.screens * shape.eyes.merge
        parts += [(eyes.layers, patches, eyes.hidden, 10 * eyes.hidden, eyes.intermediate)]
    blocks = [job.rows * tokens * width * (around + 4 * inside) for _, tokens, _, around, inside in parts]
    inputs = [job.rows * tokens * hidden * stream for _, tokens, hidden, _, _ in parts]
    kept = inputs if job.checkpointing else blocks
    left = sum(layers * each for (layers, *_), each in zip(parts, kept, strict=True))
    return left + (2 if job.checkpointing else 1) * max(blocks)


def pixels(shape: Shape, job: Job) -> float:
    """Return the bytes of the screenshots that wait on the GPU, float32, each row its own."""
    return job.held * job.screens * shape.eyes.merge * shape.eyes.patch_values * _FP32 if shape.eyes else 0


def logits(shape: Shape, job: Job) -> float:
    """Return the bytes of a tile of logits with its words, the gradient of the states, and that of the head."""
    width = _BF16 if job.bf16 else job.weight_bytes
    tokens, words = job.rows * job.answer, min(shape.vocabulary, _TILE_WORDS)
    tile = width * words * (min(tokens, _TILE_TOKENS) + shape.hidden)
    head = 0 if shape.adapters else shape.vocabulary * shape.hidden * _FP32
    return tile + tokens * shape.hidden * _FP32 + head


def smallest_card(taken: float, vllm: float = 0.0) -> int | None:
    """Return the smallest of ``CARDS`` that holds so many bytes beside vLLM's share, in GB; None: none does."""
    return next((card for card in CARDS if taken <= card * GB * (1 - vllm)), None)
