"""Turn static GUI demonstrations into shaped-reward datasets, ask them questions in SQL, and train on them.

Importing this package loads no torch, vllm, duckdb or Hugging Face ``datasets``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from solar_rl.store.dataset import SolarDataset, open_dataset

__all__ = ["SolarDataset", "__version__", "open_dataset"]


def __getattr__(name: str) -> Any:
    """Load the dataset reader only when somebody asks for it (PEP 562)."""
    if name in {"open_dataset", "SolarDataset"}:
        from solar_rl.store import dataset

        return getattr(dataset, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
