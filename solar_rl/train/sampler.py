"""Order the groups of an epoch so that TRL's purely positional grouping sees whole groups."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

from torch.utils.data import Sampler


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
