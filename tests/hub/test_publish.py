"""Publishing sends what changed in one commit, reads it back, tags it, and never moves a tag."""

import json
import shutil

import pytest
from lawful_dataset import tables, write_small_dataset

from solar_rl.errors import CheckFailed, InputError
from solar_rl.store.hub import dataset_release, folder_release, plan_release, publish_release
from solar_rl.store.hub.names import require_tag
from solar_rl.store.manifest import describe_files, read_manifest, write_manifest

REPO = "owner/small"


def files_of(folder):
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def next_version(folder, to, version="1.1.0", change="views.sql"):
    """Copy a dataset under a new version with one changed text, one file less and one more."""
    shutil.copytree(folder, to)
    (to / change).write_text("-- changed\n")
    (to / "rejects.jsonl").unlink()
    (to / "notes.md").write_text("new\n")
    manifest = read_manifest(to).model_copy(update={"version": version})
    write_manifest(to, manifest.model_copy(update={"files": tuple(describe_files(to))}))
    return to


def test_one_commit_holds_every_byte_and_then_the_tag(hub, env, built):
    done = publish_release(dataset_release(built), REPO)
    repo = hub.repo(REPO)
    assert hub.files(REPO) == hub.files(REPO, "v1.0.0") == files_of(built)
    assert [commit.title for commit in repo.commits.values()] == ["initial commit", done_title(built)]
    assert repo.tags == {"v1.0.0": done.commit} == {"v1.0.0": repo.branches["main"]}
    assert (done.created, done.changed, done.unchanged, done.deleted) == (True, True, 0, ())
    assert set(done.sent) == set(files_of(built))
    assert done.url == f"{hub.url}/datasets/{REPO}/tree/v1.0.0"


def done_title(folder):
    manifest = read_manifest(folder)
    return f"Publish small 1.0.0 (build {manifest.build_id[:12]})"


def test_the_same_again_sends_nothing(hub, env, built):
    first = publish_release(dataset_release(built), REPO)
    sent, commits = list(hub.sent), dict(hub.repo(REPO).commits)
    again = publish_release(dataset_release(built), REPO)
    assert (again.changed, again.commit, again.sent) == (False, first.commit, ())
    assert hub.sent == sent
    assert hub.repo(REPO).commits == commits


def test_a_new_version_sends_only_what_changed_and_drops_what_is_no_longer_part(hub, env, built, tmp_path):
    publish_release(dataset_release(built), REPO)
    hub.commit(REPO, {"LICENSE": b"ours", "data/steps/stray-00000-of-00001.parquet": b"left over"})
    sent = list(hub.sent)
    newer = next_version(built, tmp_path / "newer")
    done = publish_release(dataset_release(newer), REPO)
    assert hub.files(REPO) == files_of(newer) | {"LICENSE": b"ours"}
    assert set(done.sent) == {"views.sql", "notes.md", "manifest.json"}
    assert set(done.deleted) == {"rejects.jsonl", "data/steps/stray-00000-of-00001.parquet"}
    assert done.strangers == ("LICENSE",)
    assert hub.sent == sent  # no table was sent again
    assert hub.files(REPO, "v1.0.0") == files_of(built)  # the old version is what it was
    assert len(hub.repo(REPO).commits) == 4


def test_a_version_with_other_bytes_is_refused(hub, env, built, tmp_path):
    publish_release(dataset_release(built), REPO)
    before = dict(hub.repo(REPO).commits)
    other = next_version(built, tmp_path / "other", version="1.0.0")
    with pytest.raises(InputError, match=r"v1\.0\.0 is published already, with other bytes.*never moves"):
        publish_release(dataset_release(other), REPO)
    assert hub.repo(REPO).commits == before


def test_an_old_version_is_still_nothing_to_do_after_newer_ones(hub, env, built, tmp_path):
    publish_release(dataset_release(built), REPO)
    publish_release(dataset_release(next_version(built, tmp_path / "newer")), REPO)
    assert not publish_release(dataset_release(built), REPO).changed


def test_a_dry_run_lists_and_changes_nothing(hub, env, built, tmp_path):
    plan = plan_release(dataset_release(built), REPO)
    assert {entry.path for entry in plan.send} == set(files_of(built))
    assert plan.bytes_to_send == sum(map(len, files_of(built).values()))
    assert not plan.exists
    assert hub.repos == {}
    publish_release(dataset_release(built), REPO)
    before = dict(hub.repo(REPO).commits)
    plan = plan_release(dataset_release(next_version(built, tmp_path / "newer")), REPO)
    said = plan.as_dict()
    assert {each["path"] for each in said["send"]} == {"manifest.json", "notes.md", "views.sql"}
    assert (said["tag"], said["create"], said["nothing_to_do"]) == ("v1.1.0", False, False)
    assert (said["unchanged"], said["delete"]) == (len(files_of(built)) - 3, ["rejects.jsonl"])
    assert set(plan.replaced) == {"manifest.json", "views.sql"}
    assert hub.repo(REPO).commits == before
    assert plan_release(dataset_release(built), REPO).done


def test_a_private_repository(hub, env, built):
    publish_release(dataset_release(built), REPO, private=True)
    assert hub.repo(REPO).private
    hub.create("owner/open")
    with pytest.raises(InputError, match="public and --private"):
        publish_release(dataset_release(built), "owner/open", private=True)
    assert hub.files("owner/open") == {}


def test_a_missing_repository_is_made_only_where_that_is_wanted(hub, env, built):
    with pytest.raises(InputError, match="no such dataset repository"):
        publish_release(dataset_release(built), REPO, create=False)
    assert hub.repos == {}


@pytest.mark.parametrize("name", ["small", "owner/", "a/b/c", "owner/small@v1", "owner/sm all", "../x"])
def test_a_wrong_name_is_refused_before_anything(hub, env, built, name):
    with pytest.raises(InputError, match="OWNER/NAME"):
        publish_release(dataset_release(built), name)
    assert hub.seen == []


# --- what lies in the folder ---------------------------------------------------------------------------


def test_a_file_changed_after_the_manifest_is_named(hub, env, folder):
    release = dataset_release(folder)
    path = folder / "data/rewards/train-00000-of-00001.parquet"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(CheckFailed, match=r"rewards/train.*changed since the manifest"):
        publish_release(release, REPO)
    assert hub.repos == {}


def test_a_missing_and_an_unlisted_file_are_named(hub, env, folder):
    (folder / "extra.txt").write_text("x")
    with pytest.raises(CheckFailed, match=r"extra\.txt.*doesn't list"):
        dataset_release(folder)
    (folder / "extra.txt").unlink()
    (folder / "views.sql").unlink()
    with pytest.raises(CheckFailed, match=r"views\.sql.*missing"):
        publish_release(dataset_release(folder), REPO)


def test_an_unfinished_build_is_refused(env, folder):
    (folder / "manifest.json").unlink()
    with pytest.raises(InputError, match="unfinished build"):
        dataset_release(folder)


def test_a_file_that_changes_while_it_is_sent_is_never_committed(hub, env, folder):
    path = folder / "data/rewards/train-00000-of-00001.parquet"
    changed = path.read_bytes() + b"more"
    hub.create(REPO)
    # the last moment before the library reads the files to send them
    hub.plant(r"POST .*/preupload/", act=lambda: path.write_bytes(changed))
    with pytest.raises(CheckFailed, match="changed while it was being sent"):
        publish_release(dataset_release(folder), REPO)
    assert hub.files(REPO) == {}
    assert hub.repo(REPO).tags == {}


def test_a_small_file_that_changes_before_the_commit_is_never_tagged(hub, env, folder):
    hub.create(REPO)
    hub.plant(r"POST /api/validate-yaml", act=lambda: (folder / "views.sql").write_text("-- other"))
    with pytest.raises(CheckFailed, match="read back"):
        publish_release(dataset_release(folder), REPO)
    assert hub.repo(REPO).tags == {}


# --- any folder, such as a checkpoint ------------------------------------------------------------------


def test_a_checkpoint_folder_is_published_the_same_way(hub, env, tmp_path):
    folder = tmp_path / "checkpoint"
    (folder / "sub").mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(b"weights")
    (folder / "README.md").write_text("---\nlicense: mit\n---\n# card\n")
    (folder / "sub/config.json").write_text("{}")
    (folder / ".hidden").write_text("no")
    hub.create("owner/model", "models")
    hub.commit("owner/model", {"old.bin": b"old"}, "models")
    done = publish_release(folder_release(folder, "Publish a checkpoint", tag="v1"), "owner/model")
    assert set(hub.files("owner/model", "v1", "models")) == {
        "model.safetensors",
        "README.md",
        "sub/config.json",
    }
    assert done.deleted == ("old.bin",)
    assert done.url == f"{hub.url}/owner/model/tree/v1"
    with pytest.raises(InputError, match="no file"):
        folder_release(tmp_path / "nothing", "x")


# --- the command line ----------------------------------------------------------------------------------


def test_the_verb_says_what_it_would_do_and_what_it_did(hub, solar, built):
    plan = solar("publish", built, "--repo", REPO, "--dry-run").stdout
    assert "would create the repository owner/small" in plan
    assert "send" in plan.splitlines()[1]
    assert hub.repos == {}
    told = solar("publish", built, "--repo", REPO, "--tag", "first", "--message", "Hello", "--private").stdout
    assert "created the repository owner/small" in told
    assert "tagged first" in told
    repo = hub.repo(REPO)
    assert repo.commits[repo.tags["first"]].title == "Hello"
    assert repo.private
    again = json.loads(solar("publish", built, "--repo", REPO, "--tag", "first", "--json").stdout)
    assert (again["changed"], again["commit"]) == (False, repo.tags["first"])


def test_two_versions_side_by_side_read_as_they_were_built(hub, env, tmp_path):
    folders = {}
    for version, episodes in (("1.0.0", 3), ("2.0.0", 5)):
        folder = write_small_dataset(tmp_path / version, tables(episodes))
        manifest = read_manifest(folder).model_copy(update={"version": version})
        write_manifest(folder, manifest)
        publish_release(dataset_release(folder), REPO)
        folders[f"v{version}"] = folder
    for tag, folder in folders.items():
        assert hub.files(REPO, tag) == files_of(folder)


@pytest.mark.parametrize(
    "tag",
    [
        "bad tag",
        "../x",
        "v1..0",
        "-v1",
        "v1.lock",
        "v1/",
        "a//b",
        "v~1",
        "@",
        "v1.",
        "x@{0}",
        "a/.b",
        ".v1",
        "é*",
    ],
)
def test_a_tag_that_git_refuses_is_refused_here(tag):
    with pytest.raises(InputError, match="a tag can't be named"):
        require_tag(tag)


def test_the_verb_refuses_such_a_tag_with_nothing_sent(hub, solar, built):
    run = solar("publish", built, "--repo", REPO, "--tag=bad tag", code=2)
    assert "a tag can't be named 'bad tag'" in run.stderr
    assert hub.repos == {}
