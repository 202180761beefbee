"""Decode and preprocess a screenshot once, not once a candidate.

TRL hands every row's images to the processor, so a group of N candidates pays N times for one screen,
twice over (once for the prompt's tokens, once for the forward pass). ``remember_images`` gives the image
processor a memory, keyed by the screenshot's hash, which travels in ``Image.info``: copies keep it.
"""

from __future__ import annotations

import io
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import pyarrow.parquet as pq

from solar_rl.errors import InputError

if TYPE_CHECKING:
    from PIL.Image import Image

V = TypeVar("V")
HASH_KEY = "solar_rl_sha256"
"""Key of ``Image.info`` that holds the hash of the encoded bytes."""


class Memory(Generic[V]):
    """Keeps values up to a number of bytes; the one unused for longest goes first.

    What was used since ``turn`` stays, whatever the budget: a batch never makes a value twice.

    Args:
        budget: Bytes.
    """

    def __init__(self, budget: int) -> None:
        self.budget, self.held, self.made = budget, 0, 0
        self._values: OrderedDict[Any, tuple[V, int]] = OrderedDict()
        self._in_use: set[Any] = set()

    def turn(self) -> None:
        """Begin a new batch: what only earlier ones used may go."""
        self._in_use.clear()
        self._shrink()

    def get(self, key: Any) -> V | None:
        """Return the value of a key, or None; it counts as used now."""
        if key not in self._values:
            return None
        self._values.move_to_end(key)
        self._in_use.add(key)
        return self._values[key][0]

    def __contains__(self, key: Any) -> bool:
        return key in self._values

    def put(self, key: Any, value: V, size: int, *, asked: bool = True) -> V:
        """Keep a value of ``size`` bytes under a new key and return it; counted in ``made``.

        Args:
            key: The key.
            value: The value.
            size: Its bytes.
            asked: Whether the batch needs it; one that merely came along may go at any time.
        """
        self._values[key] = (value, size)
        if asked:
            self._in_use.add(key)
        self.held += size
        self.made += 1
        self._shrink()
        return value

    def _shrink(self) -> None:
        while self.held > self.budget:
            oldest = next((key for key in self._values if key not in self._in_use), None)
            if oldest is None:
                return
            self.held -= self._values.pop(oldest)[1]


class Screens:
    """Reads screenshots of a dataset by hash, from table ``images``, a row group at a time.

    Args:
        files: Parquet files of table images.
        budget: Bytes of encoded images kept in memory.
    """

    def __init__(self, files: Iterable[Path], budget: int = 256 * 2**20) -> None:
        self._files = [pq.ParquetFile(path) for path in files]
        self._place = dict(self._index())  # sha256 -> (file, row group, (width, height))
        self._memory: Memory[bytes] = Memory(budget)
        self._decoded: Memory[Image] = Memory(0)  # of the batch at hand alone

    def _index(self) -> Iterator[tuple[str, tuple[int, int, tuple[int, int]]]]:
        for number, file in enumerate(self._files):
            for group in range(file.num_row_groups):
                rows = file.read_row_group(group, columns=["sha256", "width", "height"]).to_pylist()
                for row in rows:
                    yield row["sha256"], (number, group, (row["width"], row["height"]))

    def size(self, sha256: str) -> tuple[int, int]:
        """Return a screenshot's (width, height) in pixels."""
        return self._find(sha256)[2]

    def _find(self, sha256: str) -> tuple[int, int, tuple[int, int]]:
        if sha256 not in self._place:
            raise InputError(
                "table images has no such screenshot", where=sha256, hint="run solar-rl validate"
            )
        return self._place[sha256]

    def encoded(self, sha256: str) -> bytes:
        """Return the encoded bytes of a screenshot.

        Raises:
            InputError: Table images doesn't hold it.
        """
        found = self._memory.get(sha256)
        if found is not None:
            return found
        number, group, _ = self._find(sha256)
        table = self._files[number].read_row_group(group, columns=["sha256", "image"])
        images = table.column("image").combine_chunks().field("bytes").to_pylist()
        read: dict[str, bytes] = dict(zip(table.column("sha256").to_pylist(), images, strict=True))
        for other, data in read.items():
            if other not in self._memory:
                self._memory.put(other, data, len(data), asked=other == sha256)
        return read[sha256]

    def decoded(self, sha256: str) -> Image:
        """Return a screenshot in RGB, marked with its hash for ``remember_images``; decoded once a batch."""
        from PIL import Image

        known = self._decoded.get(sha256)
        if known is not None:
            return known
        image = Image.open(io.BytesIO(self.encoded(sha256))).convert("RGB")
        image.info = {HASH_KEY: sha256}
        return self._decoded.put(sha256, image, 1)

    def turn(self) -> None:
        """Begin a new batch: screenshots that only earlier ones needed may go."""
        self._decoded.turn()
        self._memory.turn()


def remember_images(image_processor: Any, budget: int) -> Memory[tuple[np.ndarray, np.ndarray]] | None:
    """Let an image processor remember what it made of a screenshot.

    It works for processors whose patches are laid one after the other (the Qwen-VL family); any other one
    is left as it is. The processor keeps its class name, so that it is saved as what it is.

    Args:
        image_processor: A transformers image processor; its class is replaced by a subclass.
        budget: Bytes of patches to keep.

    Returns:
        What it remembers, or None where it can't. Its ``made`` counts the screenshots it has preprocessed;
        call its ``turn`` before each batch.
    """
    from transformers import BatchFeature

    base = type(image_processor)
    if list(base.model_input_names) != ["pixel_values", "image_grid_thw"]:
        return None
    memory: Memory[tuple[np.ndarray, np.ndarray]] = Memory(budget)

    class Remembering(base):  # type: ignore[misc, valid-type]
        def __call__(self, images: Any, *args: Any, return_tensors: Any = None, **kwargs: Any) -> Any:
            flat = list(_flatten(images))
            hashes = [getattr(image, "info", {}).get(HASH_KEY) for image in flat]
            if args or not all(hashes):
                return super().__call__(images, *args, return_tensors=return_tensors, **kwargs)
            how = repr((sorted(kwargs.items()), sorted(dict(self.size).items())))
            made = [self._patches(image, (sha, how), kwargs) for image, sha in zip(flat, hashes, strict=True)]
            data = {
                "pixel_values": np.concatenate([patches for patches, _ in made]),
                "image_grid_thw": np.concatenate([grid for _, grid in made]),
            }
            return BatchFeature(data=data, tensor_type=return_tensors)

        def _patches(self, image: Any, key: Any, kwargs: Any) -> tuple[np.ndarray, np.ndarray]:
            found = memory.get(key)
            if found is None:
                made = super().__call__([image], return_tensors="np", **kwargs)
                found = (made["pixel_values"], made["image_grid_thw"])
                memory.put(key, found, found[0].nbytes)
            return found

    for name in ("__name__", "__qualname__", "__module__"):
        setattr(Remembering, name, getattr(base, name))
    image_processor.__class__ = Remembering
    return memory


def _flatten(images: Any) -> Iterator[Any]:
    if isinstance(images, (list, tuple)):
        for image in images:
            yield from _flatten(image)
    elif images is not None:
        yield images
