"""Training reads a dataset of the Hub as it reads a folder, at one commit."""

import pytest
from huggingface_hub import constants
from lawful_dataset import tables, write_small_dataset
from test_publish import REPO

from solar_rl.errors import InputError
from solar_rl.store.hub import dataset_release, publish_release

pytest.importorskip("trl", reason="needs the train extra")
pytestmark = pytest.mark.train


@pytest.fixture
def published(hub, env, tmp_path, monkeypatch):
    # tests/train, when it runs in the same process, has said that nothing may be downloaded
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    built = write_small_dataset(tmp_path / "made", tables(6))
    publish_release(dataset_release(built), REPO)
    return built


@pytest.mark.parametrize("name", [REPO, f"hf://datasets/{REPO}@v1.0.0", f"{REPO}@v1.0.0"])
def test_rows_are_those_of_the_folder(published, name):
    from solar_rl.train.data import Crediting, load_replay

    crediting = Crediting(credit="step_local", anchor="none")
    ours, theirs = load_replay(published, crediting), load_replay(name, crediting)
    assert theirs.rows.to_dict() == ours.rows.to_dict()
    assert theirs.counts == ours.counts
    indices = range(len(ours.contexts))
    assert [theirs.contexts.messages(k) for k in indices] == [ours.contexts.messages(k) for k in indices]
    assert [theirs.contexts.encoded(k) for k in indices] == [ours.contexts.encoded(k) for k in indices]


def test_a_revision_that_does_not_exist_is_refused(published):
    from solar_rl.train.data import load_replay

    with pytest.raises(InputError, match="v9"):
        load_replay(REPO, revision="v9.0.0")
    with pytest.raises(InputError, match="v9"):
        load_replay(f"hf://datasets/{REPO}@v9.0.0")
