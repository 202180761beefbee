"""vLLM's engine on the built-in phone, on a CPU: tiny policies on disk and one engine for many tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT / "tests" / "sampling"))

ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "ERROR",
}
os.environ.update(ENVIRONMENT)

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
MAKE_READING = """
import sys, torch, transformers
folder, seeing, template = sys.argv[1:]
tokenizer = transformers.AutoTokenizer.from_pretrained(seeing)
tokenizer.chat_template = template
torch.manual_seed(1)
config = transformers.Qwen2Config(
    vocab_size=len(tokenizer), hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=2,
    num_key_value_heads=1, bos_token_id=None, eos_token_id=tokenizer.eos_token_id,
    pad_token_id=tokenizer.pad_token_id, max_position_embeddings=8192)
transformers.Qwen2ForCausalLM(config).save_pretrained(folder)
tokenizer.save_pretrained(folder)
"""


def trained_here(*arguments: object) -> None:
    """Run Python with the train extra: the environment that policies come from."""
    python = os.environ.get("SOLAR_RL_TRAIN_PYTHON", ROOT / ".venv" / "bin" / "python")
    done = subprocess.run([str(python), *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session")
def seeing(tmp_path_factory) -> Path:
    """A tiny random Qwen2.5-VL."""
    folder = tmp_path_factory.mktemp("policies") / "tiny-vl"
    trained_here("-m", "solar_rl.train.tiny", folder)
    return folder


@pytest.fixture(scope="session")
def reading(tmp_path_factory, seeing) -> Path:
    """A tiny random Qwen2 that reads text only."""
    folder = tmp_path_factory.mktemp("policies") / "tiny-text"
    trained_here("-c", MAKE_READING, folder, seeing, CHATML)
    return folder


@pytest.fixture(scope="session")
def episodes():
    """Two demonstrations on the built-in phone, with their screenshots."""
    from solar_rl.builder import load_builder
    from solar_rl.config import SourceConfig

    options = {"episodes": 2, "buckets": {"short": 1.0}}
    builder = load_builder(SourceConfig(builder="phone", options=options))
    return [episode for shard in builder.shards() for episode in builder.read(shard)]
