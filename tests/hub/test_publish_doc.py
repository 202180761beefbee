"""The snippets of docs/publish.md run as they stand, against the loopback Hub."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

from solar_rl.store.hub import dataset_release, publish_release

PAGE = (Path(__file__).parent.parent.parent / "docs/publish.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_its_commands_and_its_python_run(hub, env, built, tmp_path):
    """ "you" is the loopback's only owner; all Python blocks run as one program."""
    publish_release(dataset_release(built), "owner/phone")
    checkpoint = tmp_path / "runs/grpo/checkpoint-200"
    checkpoint.mkdir(parents=True)
    (checkpoint / "model.safetensors").write_bytes(b"weights")
    code = "\n".join(blocks("python")).replace("you/", "owner/")
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    assert hub.repo("owner/phone").tags["v1.0.0"] in done.stdout
    assert hub.files("owner/phone-policy", "step-200", "models") == {"model.safetensors": b"weights"}


def test_its_verbs_and_options_exist(built):
    """Every command of the page parses; what they do is tested elsewhere."""
    from solar_rl.cli import app

    lines = [line for block in blocks("sh") for line in block.splitlines() if line.startswith("solar-rl")]
    assert len(lines) == 6
    for line in lines:
        words = shlex.split(line, comments=True)[1:]
        command, _, unused, _ = app.parse_known_args(words)
        assert unused == [], line
        assert command.__name__ == words[0]
