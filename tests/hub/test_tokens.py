"""A token never appears in what is printed, logged, written or raised."""

import logging
import traceback

import pytest
from loopback_hub import TOKEN
from test_faults import EVERY_REQUEST
from test_publish import REPO

from solar_rl.errors import CheckFailed, SolarError
from solar_rl.store.hub import dataset_release, publish_release
from solar_rl.store.hub.faults import no_token_shown, redact
from solar_rl.store.manifest import describe_files, read_manifest, write_manifest

ECHO = "you sent {auth}, and that is wrong"
"""A message that holds the header of the request, as a careless server might send it."""


@pytest.mark.parametrize("status", [400, 401, 412, 503])
@pytest.mark.parametrize("request_", ["whoami", "upload", "commit", "tag"])
def test_no_error_repeats_the_token_that_a_server_echoes(
    hub, env, built, no_waiting, caplog, capfd, request_, status
):
    caplog.set_level(logging.DEBUG, logger="huggingface_hub")
    hub.create(REPO)
    hub.plant(EVERY_REQUEST[request_], times=50, status=status, message=ECHO)
    with pytest.raises(SolarError) as caught:
        publish_release(dataset_release(built), REPO)
    shown = "".join(traceback.format_exception(caught.value))
    printed = capfd.readouterr()
    for text in (shown, str(caught.value), repr(caught.value), caplog.text, printed.out, printed.err):
        assert TOKEN not in text
    assert "\n" not in str(caught.value)


def test_an_exception_that_escapes_is_blotted_out_all_along_its_chain(env):
    def leak():
        try:
            raise ValueError(f"Illegal header value b'Bearer {TOKEN}'")
        except ValueError as error:
            raise KeyError(f"while sending {TOKEN}") from error

    with pytest.raises(KeyError) as caught, no_token_shown():
        leak()
    shown = "".join(traceback.format_exception(caught.value))
    assert TOKEN not in shown
    assert "***" in shown


def test_a_strange_token_is_refused_without_being_shown(hub, solar, built):
    """A token that can't be a header makes the HTTP library complain, with the header in its message."""
    secret = "hf_Stra\u00f1ge\u20acToken0123456789"
    done = solar("publish", built, "--repo", REPO, HF_TOKEN=secret, code=2)
    assert secret not in done.stdout + done.stderr
    assert "ge\\u20acToken" not in done.stderr


def test_nothing_printed_or_written_holds_the_token(hub, solar, built, tmp_path):
    """Also with the library's debug log on: everything printed and every file but the credentials."""
    outputs = []
    for words, code in (
        (("publish", built, "--repo", REPO, "--dry-run"), 0),
        (("publish", built, "--repo", REPO, "--json"), 0),
        (("query", f"hf://{REPO}@v1.0.0", "SELECT count(*) FROM rewards"), 0),
        (("query", "hf://owner/nothing", "SELECT 1"), 2),
    ):
        done = solar(*words, code=code, HF_DEBUG="1", HF_HUB_VERBOSITY="debug")
        outputs += [done.stdout, done.stderr]
    outputs += [p.read_text(errors="replace") for p in tmp_path.rglob("*") if p.is_file()]
    outputs += [p.read_text(errors="replace") for p in built.rglob("*") if p.is_file()]
    assert not [text for text in outputs if TOKEN in text]
    assert not [path for path, data in hub.files(REPO).items() if TOKEN.encode() in data]


@pytest.mark.parametrize("text", [TOKEN, "hf_" + "aB3" * 12])
def test_a_file_that_holds_a_token_is_never_published(hub, env, folder, text):
    (folder / "views.sql").write_text(f"-- key: {text}\n")
    manifest = read_manifest(folder)
    write_manifest(folder, manifest.model_copy(update={"files": tuple(describe_files(folder))}))
    with pytest.raises(CheckFailed, match=r"views\.sql.*holds an access token") as caught:
        publish_release(dataset_release(folder), REPO)
    assert text not in str(caught.value)
    assert hub.repos == {}


def test_redact_knows_the_usual_shapes(env):
    text = redact(f"a {TOKEN} b Bearer xyz c ?X-Amz-Signature=0a1b2c&d hf_other0123456789")
    assert text == "a *** b Bearer *** c ?X-Amz-Signature=***&d ***"
