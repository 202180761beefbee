"""What the request cache takes for the same model: the bytes of its folder, not its name."""

import os

import pytest

from solar_rl.config import DatasetConfig
from solar_rl.pipeline.hashes import FileHashes
from solar_rl.pipeline.keys import sampler_identity


def checkpoint(folder, weights):
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(weights)
    return folder


def identity(tmp_path, model, kind="vllm", **more):
    config = DatasetConfig(
        name="d", source={"builder": "phone"}, sampler={"type": kind, "model": str(model), **more}
    )
    return sampler_identity(config, FileHashes(tmp_path / "hashes"))


@pytest.mark.parametrize("kind", ["vllm", "transformers"])
def test_two_checkpoints_of_one_name_are_two_models_and_a_moved_one_is_the_same(tmp_path, kind):
    one = checkpoint(tmp_path / "a" / "checkpoint-8", b"1" * 64)
    other = checkpoint(tmp_path / "b" / "checkpoint-8", b"2" * 64)
    moved = checkpoint(tmp_path / "c" / "checkpoint-8", b"1" * 64)
    assert identity(tmp_path, one, kind) == identity(tmp_path, moved, kind) != identity(tmp_path, other, kind)


def test_a_checkpoint_that_was_written_over_is_another_model(tmp_path):
    folder = checkpoint(tmp_path / "checkpoint-8", b"1" * 64)
    before = identity(tmp_path, folder)
    weights = folder / "model.safetensors"
    stamp = weights.stat()
    weights.with_suffix(".new").write_bytes(b"2" * 64)
    weights.with_suffix(".new").replace(weights)
    os.utime(weights, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert identity(tmp_path, folder) != before


def test_settings_that_change_answers_make_another_model_and_others_do_not(tmp_path):
    folder = checkpoint(tmp_path / "checkpoint-8", b"1" * 64)
    base = identity(tmp_path, folder)
    assert identity(tmp_path, folder, n=3, gpu_memory=0.5, in_flight=9, enforce_eager=True) == base
    for change in (
        {"dtype": "float32"},
        {"temperature": 0.7},
        {"max_new_tokens": 9},
        {"stop_tokens": ("a",)},
    ):
        assert identity(tmp_path, folder, **change) != base


def test_a_server_is_known_by_its_models_name_and_not_by_its_address(tmp_path):
    at = [identity(tmp_path, "m", "openai", endpoints=(f"http://127.0.0.1:{port}/v1",)) for port in (1, 2)]
    assert at[0] == at[1] != identity(tmp_path, "other", "openai")
