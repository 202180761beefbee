"""Fixtures of the training tests: a tiny policy and a small dataset, made once."""

import os

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")
pytest.importorskip("trl", reason="needs the train extra")


@pytest.fixture(scope="session")
def policy_folder(tmp_path_factory):
    from solar_rl.train.tiny import make_tiny_policy

    return make_tiny_policy(tmp_path_factory.mktemp("policy"), seed=3)


@pytest.fixture(scope="session")
def dataset(tmp_path_factory, policy_folder):
    from small_dataset import make_dataset

    return make_dataset(tmp_path_factory.mktemp("dataset"), policy_folder)


@pytest.fixture(autouse=True)
def one_thread():
    """Two busy cores: more threads only get in each other's way, and sums would depend on their number."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
