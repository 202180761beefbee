"""Choose what goes through the model: rows that count, and extra answers to prompts that are there already.

In truncated modes more than half of a batch's rows are not in play. They stay in the batch, because TRL groups
by position, but nothing of them reaches the loss, so they needn't reach the model. The recorded actions of the
expert anchor come into the same forward pass, each with the prompt and the screenshots of a row of its group.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.distributed.fsdp import FSDPModule
from trl.trainer import utils as trl_utils

BY_TOKEN = ("token_type_ids", "mm_token_type_ids")
"""Inputs of shape (B, prompt + completion), 0 over the completion."""
BY_IMAGE = ("image_grid_thw", "image_sizes", "image_position_ids", "pixel_attention_mask")
"""Inputs with one entry an image, beside ``pixel_values``."""

_ALONE = "solar_rl_alone"
"""Mark of TRL's choice of tokens, where ``score_answers_alone`` made it."""
_GATHERED = "solar_rl_gathered"
"""Mark of a head that is gathered whenever the backbone has run."""


def can_choose(images: Mapping[str, Any]) -> bool:
    """Tell whether rows of these inputs can be told apart: text alone, or a known layout of images.

    Models that cut images into tiles (LFM2-VL, InternVL) have another one; their rows all go through.
    """
    given = {name for name, value in images.items() if value is not None}
    if "pixel_values" not in given:
        return given <= {*BY_TOKEN, "num_images"}
    if not given <= {*BY_TOKEN, *BY_IMAGE, "num_images", "pixel_values"} or "num_images" not in given:
        return False
    return "image_grid_thw" in given or images["pixel_values"].size(0) == sum(images["num_images"])


def choose_rows(rows: torch.Tensor, images: Mapping[str, Any], extra: int = 0) -> dict[str, Any]:
    """Return the inputs beside ids and masks for a choice of rows; a row may be chosen twice.

    Args:
        rows: (R,) row numbers.
        images: Those inputs for all rows; None where the model has no such input.
        extra: Columns that the completion part grows by on the right.
    """
    chosen: dict[str, Any] = {}
    counts = images.get("num_images")
    for name, value in images.items():
        if value is None:
            continue
        if name in BY_TOKEN:
            chosen[name] = torch.nn.functional.pad(value[rows], (0, extra))
        elif name == "num_images":
            chosen[name] = [value[row] for row in rows.tolist()]
        else:
            assert counts is not None, "TRL gives the number of images of each row"
            pieces = _pieces(name, value, images)
            firsts = [0, *torch.tensor(counts).cumsum(0).tolist()]
            taken = [pieces[k] for row in rows.tolist() for k in range(firsts[row], firsts[row + 1])]
            chosen[name] = torch.cat(taken) if taken else value[:0]
    return chosen


def _pieces(name: str, value: torch.Tensor, images: Mapping[str, Any]) -> tuple[torch.Tensor, ...]:
    """Cut an input into one piece an image."""
    grid = images.get("image_grid_thw")
    if name == "pixel_values" and grid is not None:
        return torch.split(value, grid.prod(dim=-1).tolist())
    return torch.split(value, 1)


def widen(values: torch.Tensor, width: int, fill: int = 0) -> torch.Tensor:
    """Pad (R, L) values on the right to a width."""
    return torch.nn.functional.pad(values, (0, width - values.size(1)), value=fill)


def spread(values: torch.Tensor, rows: torch.Tensor, size: int) -> torch.Tensor:
    """Put (R, T) values of chosen rows back to their places among ``size`` rows; the others are 0."""
    whole = values.new_zeros((size, *values.shape[1:]))
    return whole.index_copy(0, rows, values)


def score_answers_alone() -> None:
    """Let TRL apply the head to the scored tokens alone on a CPU too.

    TRL 1.16 does so where Triton is; elsewhere it scores prompts as well, to keep shapes the same for compilers that a CPU
    doesn't have. An update of a small model takes twice as long so.
    """
    known = getattr(trl_utils, "_use_triton", None)
    if known is None or getattr(known, _ALONE, False):
        return

    def compact(device: torch.device) -> bool:
        return device.type == "cpu" or bool(known(device))

    setattr(compact, _ALONE, True)
    trl_utils._use_triton = compact  # type: ignore[attr-defined]


def gather_head(model: Any) -> None:
    """Let FSDP2 gather the head whenever the backbone has run, so that its gradient is shared.

    TRL 1.16 multiplies by the head's weight without calling the head, so FSDP2 doesn't gather it, and TRL's own
    ``full_tensor()`` leaves each process with the gradient of its own rows. A test fails without this.

    Args:
        model: The model as the trainer calls it; nothing is done where its head isn't sharded by FSDP2.
    """
    head = model.get_output_embeddings() if hasattr(model, "get_output_embeddings") else None
    if not isinstance(head, FSDPModule) or getattr(head, _GATHERED, False):
        return

    def gather(*_: Any) -> None:
        head.unshard()

    model.base_model.register_forward_hook(gather)
    setattr(head, _GATHERED, True)
