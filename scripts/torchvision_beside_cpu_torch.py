"""Let a CUDA build of torchvision be imported beside a CPU build of torch; loaded at start through a .pth file.

Its compiled part can't load there, so two operators that its Python part registers fake kernels for don't
exist. They are declared right before torchvision is imported. Calling them still fails, and nothing here does.
"""

import importlib.abc
import sys
from typing import Any

OPERATORS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)

KEPT: list[Any] = []
"""The library that declares them: the operators go when it does."""


class DeclareOperators(importlib.abc.MetaPathFinder):
    """Finds nothing itself; declares the operators when torchvision is looked for."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Declare what torchvision expects, and leave the finding to others."""
        if name == "torchvision":
            sys.meta_path.remove(self)
            _declare()


def _declare() -> None:
    import torch

    if torch.cuda.is_available() or hasattr(torch.ops.torchvision, "nms"):
        return
    library = torch.library.Library("torchvision", "DEF")
    for operator in OPERATORS:
        library.define(operator)
    KEPT.append(library)


sys.meta_path.insert(0, DeclareOperators())
