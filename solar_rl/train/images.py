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

    Args:
        budget: Bytes; the newest value is kept even when it alone is larger.
    """

    def __init__(self, budget: int) -> None:
        self.budget, self.held = budget, 0
        self._values: OrderedDict[Any, tuple[V, int]] = OrderedDict()

    def get(self, key: Any) -> V | None:
        """Return the value of a key, or None; it counts as used now."""
        if key not in self._values:
            return None
        self._values.move_to_end(key)
        return self._values[key][0]

    def put(self, key: Any, value: V, size: int) -> V:
        """Keep a value of ``size`` bytes under a new key and return it."""
        self._values[key] = (value, size)
        self.held += size
        while self.held > self.budget and len(self._values) > 1:
            self.held -= self._values.popitem(last=False)[1][1]
        return value


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
            if self._memory.get(other) is None:
                self._memory.put(other, data, len(data))
        return read[sha256]

    def decoded(self, sha256: str) -> Image:
        """Return a screenshot in RGB, marked with its hash for ``remember_images``."""
        from PIL import Image

        image = Image.open(io.BytesIO(self.encoded(sha256))).convert("RGB")
        image.info = {HASH_KEY: sha256}
        return image


def remember_images(image_processor: Any, budget: int) -> bool:
    """Let an image processor remember what it made of a screenshot.

    It works for processors whose patches are laid one after the other (the Qwen-VL family); any other one
    is left as it is. The processor keeps its class name, so that it is saved as what it is.

    Args:
        image_processor: A transformers image processor; its class is replaced by a subclass.
        budget: Bytes of patches to keep.

    Returns:
        Whether it remembers now.
    """
    from transformers import BatchFeature

    base = type(image_processor)
    if list(base.model_input_names) != ["pixel_values", "image_grid_thw"]:
        return False
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
    return True


def _flatten(images: Any) -> Iterator[Any]:
    if isinstance(images, (list, tuple)):
        for image in images:
            yield from _flatten(image)
    elif images is not None:
        yield images
