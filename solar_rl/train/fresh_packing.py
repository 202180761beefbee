"""Pack whole episodes into the batch that each process generates at once.

Shaping looks at whole trajectories, and TRL shows a process its own rows alone: so every step of an episode, N
rows each, has to lie in one local generation batch.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

from torch.utils.data import Sampler

_OPEN = 64
"""Bins that are filled side by side: enough to find a short episode's gap, few enough for any number of episodes."""


def pack(lengths: Sequence[int], slots: int, *, seed: int = 0) -> list[list[int]]:
    """Put episodes into bins of ``slots`` steps: in a shuffled order, each into the first bin with room.

    Args:
        lengths: Steps of each episode, none above ``slots``.
        slots: Steps that a bin holds.
        seed: Seed of the order.

    Returns:
        The numbers of the episodes in each bin; every episode is in one.

    >>> sorted(sorted(bin) for bin in pack([3, 2, 2, 1], 4))
    [[0, 3], [1, 2]]
    """
    order = list(range(len(lengths)))
    random.Random(seed).shuffle(order)
    full: list[list[int]] = []
    opened: list[tuple[list[int], int]] = []
    for number in order:
        place = next((k for k, (_, room) in enumerate(opened) if room >= lengths[number]), None)
        if place is None:
            if len(opened) == _OPEN:
                full.append(opened.pop(min(range(_OPEN), key=lambda k: opened[k][1]))[0])
            opened.append(([number], slots - lengths[number]))
        else:
            members, room = opened[place]
            opened[place] = ([*members, number], room - lengths[number])
    return full + [members for members, _ in opened]


class PackedSampler(Sampler[int]):
    """Yields row numbers: one bin for each process, and again, as often as TRL reads a generation batch.

    The rows of an episode are consecutive, N a step. Room that a bin leaves is filled with the padding group, the
    N rows after those of all episodes. The bins stay the same in all epochs, so that an epoch has a fixed length;
    their order is drawn anew. The last batch is filled up with the epoch's first bins.

    Args:
        bins: Episode numbers, from ``pack``.
        lengths: Steps of each episode.
        size: N, rows a step.
        slots: Steps that a bin holds.
        processes: Bins a batch.
        repeat: Readings of each batch.
        shuffle: Draw a new order each epoch.
        seed: Seed of the order, the same on every process.
        epoch: Tells the epoch that starts, so that a resumed run goes on in the same order.
    """

    def __init__(
        self,
        bins: Sequence[Sequence[int]],
        lengths: Sequence[int],
        *,
        size: int,
        slots: int,
        processes: int = 1,
        repeat: int = 1,
        shuffle: bool = True,
        seed: int = 0,
        epoch: Callable[[], int] = lambda: 0,
    ) -> None:
        self.bins, self.lengths, self.size, self.slots = bins, lengths, size, slots
        self.processes, self.repeat = processes, repeat
        self.shuffle, self.seed, self.epoch = shuffle, seed, epoch
        self._firsts = [0]
        for length in lengths:
            self._firsts.append(self._firsts[-1] + length * size)

    def __len__(self) -> int:
        return self._batches() * self.processes * self.repeat * self.slots * self.size

    @property
    def filled(self) -> float:
        """Return the share of rows that belong to an episode."""
        used = sum(self.lengths[number] for members in self.bins for number in members)
        return used / (self.slots * len(self.bins))

    def _batches(self) -> int:
        return -(-len(self.bins) // self.processes)

    def __iter__(self) -> Iterator[int]:
        order = list(range(len(self.bins)))
        if self.shuffle:
            random.Random(f"{self.seed}/{self.epoch()}").shuffle(order)
        for start in range(0, self._batches() * self.processes, self.processes):
            batch = [order[k % len(order)] for k in range(start, start + self.processes)]
            for _ in range(self.repeat):
                for number in batch:
                    yield from self._rows(self.bins[number])

    def _rows(self, members: Sequence[int]) -> Iterator[int]:
        for number in members:
            yield from range(self._firsts[number], self._firsts[number + 1])
        padding = range(self._firsts[-1], self._firsts[-1] + self.size)
        for _ in range(self.slots - sum(self.lengths[number] for number in members)):
            yield from padding
