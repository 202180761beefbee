"""Order the groups of an epoch so that TRL's purely positional grouping sees whole groups; look at all of them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

import torch
from datasets.arrow_dataset import Dataset
from torch.utils.data import Sampler

from solar_rl.errors import InputError


class GroupSampler(Sampler[int]):
    """Yields row numbers: N different candidates a group, whole groups only.

    Group g is rows ``g * size`` to ``g * size + size - 1``. The groups of one generation batch come
    ``repeat`` times in a row, because TRL reads the batch anew at each of its micro-steps and uses the
    first reading. The last batch of an epoch is filled up from the epoch's start, so no group is left out.

    Args:
        order: Group numbers of an epoch; a number that comes twice is an up-sampled group.
        size: N, rows a group.
        batch: Groups a generation batch (over all processes).
        repeat: Readings of each generation batch.
        shuffle: Draw a new order each epoch.
        seed: Seed of the order, the same on every process.
        epoch: Tells the epoch that starts, so that a resumed run goes on in the same order.
    """

    def __init__(
        self,
        order: Sequence[int],
        *,
        size: int,
        batch: int,
        repeat: int = 1,
        shuffle: bool = True,
        seed: int = 0,
        epoch: Callable[[], int] = lambda: 0,
    ) -> None:
        self.order, self.size, self.batch, self.repeat = list(order), size, batch, repeat
        self.shuffle, self.seed, self.epoch = shuffle, seed, epoch

    def __len__(self) -> int:
        return self._batches() * self.batch * self.repeat * self.size

    def _batches(self) -> int:
        return -(-len(self.order) // self.batch)

    def __iter__(self) -> Iterator[int]:
        order = list(self.order)
        if self.shuffle:
            random.Random(f"{self.seed}/{self.epoch()}").shuffle(order)
        for start in range(0, self._batches() * self.batch, self.batch):
            groups = [order[k % len(order)] for k in range(start, start + self.batch)]
            for _ in range(self.repeat):
                yield from (group * self.size + k for group in groups for k in range(self.size))


def check_groups(rows: Dataset, size: int) -> None:
    """Make sure that rows come in whole groups of ``size`` candidates of one step.

    Raises:
        InputError: A group is short, mixed, or holds a candidate twice.
    """
    if len(rows) % size:
        raise InputError(
            f"{len(rows)} rows are no whole groups of {size}", hint="set num_generations to the dataset's N"
        )
    keys = zip(rows["episode_id"], rows["step_index"], rows["candidate_index"], strict=True)
    members = list(keys)
    for start in range(0, len(members), size):
        group = members[start : start + size]
        if len({key[:2] for key in group}) != 1 or len(set(group)) != size:
            episode, step, _ = group[0]
            raise InputError(
                f"rows {start} to {start + size - 1} aren't {size} different candidates of one step",
                where=f"episode {episode}, step {step}",
                hint="set num_generations to the dataset's N",
            )


def mean_weight(rows: Dataset) -> float | None:
    """Return the mean weight of the groups that have one, each as often as an epoch shows it; None: not known yet."""
    if "weight" not in rows.column_names:
        return None
    weight, times = (torch.tensor(rows[name][:], dtype=torch.float64) for name in ("weight", "repeat"))
    shown = times * (weight > 0)
    return float((weight * shown).sum() / shown.sum()) if shown.any() else 1.0
