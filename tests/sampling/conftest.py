"""Two tiny policies on disk: one that sees, one that reads."""

import pytest

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@pytest.fixture(scope="session")
def vision_policy(tmp_path_factory):
    pytest.importorskip("trl")
    from solar_rl.train.tiny import make_tiny_policy

    return make_tiny_policy(tmp_path_factory.mktemp("policies") / "tiny-vl")


@pytest.fixture(scope="session")
def text_policy(tmp_path_factory, vision_policy):
    transformers = pytest.importorskip("transformers")
    import torch

    tokenizer = transformers.AutoTokenizer.from_pretrained(vision_policy)
    tokenizer.chat_template = CHATML
    config = transformers.Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        model = transformers.Qwen2ForCausalLM(config)
    # What a released model may ship with, and what sampling must not obey.
    model.generation_config = transformers.GenerationConfig(
        do_sample=True, top_k=1, repetition_penalty=3.0, eos_token_id=tokenizer.eos_token_id
    )
    folder = tmp_path_factory.mktemp("policies") / "tiny-text"
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
