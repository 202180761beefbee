"""Whatever goes wrong: one clear line, main whole, and the same command again finishes the job."""

import os
import signal
import subprocess
import sys
import threading

import pytest
from loopback_hub import EXPIRED, READ_ONLY
from test_publish import REPO, files_of

from solar_rl.errors import CheckFailed, InputError, SolarError
from solar_rl.store.hub import dataset_release, publish_release


def main_is_whole_or_untouched(hub, folder) -> bool:
    """Tell whether main is one or the other, never between."""
    if ("datasets", REPO) not in hub.repos:
        return True
    return hub.files(REPO) in ({}, files_of(folder))


@pytest.fixture
def publish(hub, env, built, no_waiting):
    def publish_once():
        return publish_release(dataset_release(built), REPO)

    return publish_once


EVERY_REQUEST = {
    "whoami": r"GET /api/whoami",
    "create": r"POST /api/repos/create",
    "info": r"GET /api/datasets/owner/small/revision",
    "refs": r"GET .*/refs",
    "tree": r"GET .*/tree/",
    "preupload": r"POST .*/preupload/",
    "batch": r"POST .*/objects/batch",
    "upload": r"PUT /lfs/",
    "commit": r"POST .*/commit/",
    "tag": r"POST .*/tag/",
    "read back": r"(GET|HEAD) /datasets/.*/resolve/",
}


@pytest.mark.parametrize("request_", EVERY_REQUEST)
def test_a_busy_hub_is_asked_again(hub, built, publish, request_):
    faults = [hub.plant(EVERY_REQUEST[request_], status=status) for status in (429, 503)]
    publish()
    assert [fault.times for fault in faults] == [0, 0]
    assert hub.files(REPO, "v1.0.0") == files_of(built)
    assert len(hub.repo(REPO).commits) == 2


@pytest.mark.parametrize("request_", [name for name in EVERY_REQUEST if name != "read back"])
def test_a_line_that_is_cut_is_taken_up_again(hub, built, publish, request_):
    """First before the Hub did anything, then after it did it and only its answer was lost."""
    faults = [hub.plant(EVERY_REQUEST[request_], cut=cut) for cut in ("before", "after")]
    publish()
    assert [fault.times for fault in faults] == [0, 0]
    assert hub.files(REPO, "v1.0.0") == files_of(built)
    assert len(hub.repo(REPO).commits) == 2  # no second commit for one whose answer was lost


@pytest.mark.parametrize("request_", [name for name in EVERY_REQUEST if name not in ("read back", "create")])
def test_a_hub_that_stays_away_is_exit_1_and_the_next_run_finishes(hub, built, publish, request_):
    fault = hub.plant(EVERY_REQUEST[request_], times=1000, cut="before")
    with pytest.raises(CheckFailed, match=r"can't be reached.*again"):
        publish()
    assert main_is_whole_or_untouched(hub, built)
    assert REPO not in hub.repos or hub.repo(REPO).tags == {}
    fault.times = 0
    publish()
    assert hub.files(REPO, "v1.0.0") == files_of(built)


def test_what_was_uploaded_before_the_line_broke_is_not_sent_again(hub, built, publish):
    fault = hub.plant(r"PUT /lfs/", skip=5, times=1000, status=503)
    with pytest.raises(CheckFailed, match="503"):
        publish()
    assert hub.files(REPO) == {}
    already = set(hub.sent)
    assert len(already) == 5
    fault.times = 0
    publish()
    assert len(hub.sent) == len(set(hub.sent))  # nothing twice
    assert hub.files(REPO, "v1.0.0") == files_of(built)


def test_retry_after_is_obeyed(hub, publish, no_waiting):
    hub.plant(EVERY_REQUEST["commit"], status=429, headers={"Retry-After": "17"})
    hub.plant(EVERY_REQUEST["tag"], status=503, headers={"Retry-After": "Mon, 01 Jan 2001 00:00:00 GMT"})
    publish()
    assert no_waiting == [17.0, 0.0]


def test_a_hub_that_stays_busy_is_exit_1(hub, built, publish):
    hub.plant(EVERY_REQUEST["commit"], times=1000, status=503)
    with pytest.raises(CheckFailed, match=r"too busy or down \(status 503"):
        publish()
    assert hub.files(REPO) == {}


def test_somebody_elses_commit_in_between_is_a_conflict_and_the_next_run_wins(hub, built, publish):
    hub.create(REPO)
    hub.plant(EVERY_REQUEST["commit"], act=lambda: hub.commit(REPO, {"theirs.txt": b"x", "README.md": b"y"}))
    with pytest.raises(CheckFailed, match=r"somebody else committed.*nothing was published"):
        publish()
    assert hub.files(REPO) == {"theirs.txt": b"x", "README.md": b"y"}
    assert hub.repo(REPO).tags == {}
    publish()
    assert hub.files(REPO, "v1.0.0") == files_of(built) | {"theirs.txt": b"x"}


def test_a_tag_that_somebody_sets_meanwhile_never_moves(hub, built, publish):
    hub.create(REPO)
    theirs = hub.repo(REPO).branches["main"]
    hub.plant(EVERY_REQUEST["tag"], act=lambda: hub.repo(REPO).tags.update({"v1.0.0": theirs}))
    with pytest.raises(InputError, match=r"v1\.0\.0 exists already, at another commit"):
        publish()
    assert hub.repo(REPO).tags == {"v1.0.0": theirs}
    with pytest.raises(InputError, match="with other bytes"):
        publish()


def test_two_publishers_at_once_make_one_version(hub, env, built):
    """Both may win (the second finds the first's commit), or one is told to run again; never a mixture."""
    errors = []

    def publish_quietly():
        try:
            publish_release(dataset_release(built), REPO)
        except SolarError as error:
            errors.append(error)

    hub.create(REPO)
    threads = [threading.Thread(target=publish_quietly) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(errors) < 3
    assert hub.files(REPO) == hub.files(REPO, "v1.0.0") == files_of(built)
    assert len(hub.repo(REPO).commits) == 2


def test_what_the_hub_keeps_otherwise_is_never_tagged(hub, built, publish):
    """A Hub that loses or changes a file: read back, and no tag."""

    def lose():
        repo = hub.repo(REPO)
        tree = repo.commits[repo.branches["main"]].tree
        tree["views.sql"] = hub.store("views.sql", b"-- other")

    # after the commit the tree is listed once more: the second time that it is listed
    hub.plant(EVERY_REQUEST["tree"], skip=1, act=lose)
    with pytest.raises(CheckFailed, match=r"read back.*views\.sql.*no tag"):
        publish()
    assert hub.repo(REPO).tags == {}
    publish()
    assert hub.files(REPO, "v1.0.0") == files_of(built)


# --- tokens and rights ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("token", "words"),
    [
        (EXPIRED, "doesn't accept this token"),
        (READ_ONLY, "no right to do that"),
        ("", "needs an access token"),
    ],
)
def test_a_token_that_is_not_good_enough(hub, publish, monkeypatch, token, words):
    monkeypatch.setenv("HF_TOKEN", token)
    with pytest.raises(InputError, match=words):
        publish()
    assert hub.repos == {}


def test_a_token_that_expires_in_the_middle(hub, built, publish):
    hub.plant(EVERY_REQUEST["commit"], status=401)
    with pytest.raises(InputError, match="it may have expired"):
        publish()
    assert hub.files(REPO) == {}
    publish()
    assert hub.files(REPO, "v1.0.0") == files_of(built)


def test_somebody_elses_name(hub, env, built):
    with pytest.raises(InputError, match="no right"):
        publish_release(dataset_release(built), "stranger/small")
    assert hub.repos == {}


def test_a_refusal_is_passed_on_in_words(hub, publish):
    hub.plant(EVERY_REQUEST["commit"], status=400, message="the card is no good")
    with pytest.raises(InputError, match="the card is no good"):
        publish()


# --- killed --------------------------------------------------------------------------------------------


SELDOM = [pytest.param(m, marks=pytest.mark.slow) for m in ("create", "preupload", "read back", "tag after")]


@pytest.mark.parametrize("moment", ["upload", "commit before", "commit after", "tag before", *SELDOM])
def test_killed_at_any_moment_the_next_run_finishes(hub, env, built, moment):
    """SIGKILL while the Hub handles a request; "after": the Hub still did what it was asked."""
    name, _, when = moment.partition(" ") if moment != "read back" else (moment, "", "")
    command = [sys.executable, "-m", "solar_rl.cli", "publish", str(built), "--repo", REPO]
    child: list[subprocess.Popen] = []
    started = threading.Event()

    def kill():
        started.wait()
        os.kill(child[0].pid, signal.SIGKILL)
        child[0].wait()

    skip = 3 if name == "upload" else 0
    fault = hub.plant(EVERY_REQUEST[name], skip=skip, act=kill, cut="after" if when == "after" else "before")
    child.append(subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
    started.set()
    assert child[0].wait(60) == -signal.SIGKILL
    assert fault.times == 0
    assert main_is_whole_or_untouched(hub, built)
    publish_release(dataset_release(built), REPO)
    assert hub.files(REPO, "v1.0.0") == files_of(built)
    assert len(hub.repo(REPO).commits) == 2
