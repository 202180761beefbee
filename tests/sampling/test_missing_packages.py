"""What isn't installed is told before anything is looked for or loaded."""

import importlib.util

import pytest

from solar_rl.config import PromptConfig, VllmSampler
from solar_rl.errors import MissingExtra
from solar_rl.sampling import make_sampler, vllm


def test_vllm_is_asked_for_before_a_model_is_looked_for_on_the_hub(monkeypatch):
    find, looked = importlib.util.find_spec, []
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *a: None if name == "vllm" else find(name, *a)
    )
    monkeypatch.setattr(vllm, "load_reader", lambda *_, **__: looked.append(1))
    with pytest.raises(
        MissingExtra, match=r"sampling with vLLM needs the extra 'sample' \(pip install"
    ) as caught:
        make_sampler(VllmSampler(model="Some-Org/Model-7B"), PromptConfig())
    assert (caught.value.exit_code, looked) == (2, [])
