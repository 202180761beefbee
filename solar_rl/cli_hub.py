"""The verb of the command line that writes to the Hub: publish."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from solar_rl.cli_options import DryRun, Json


def publish(
    folder: Path,
    /,
    *,
    repo: str,
    type: Literal["dataset", "model"] | None = None,
    report: tuple[Path, ...] = (),
    private: Annotated[bool, Parameter(negative="")] = False,
    create: bool = True,
    tag: str | None = None,
    message: str | None = None,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Publish a built dataset or a trained model on the Hub: one commit, read back, then the tag.

    Files that the Hub has already aren't sent again, and those of the version before that are no longer part
    go in the same commit. A run that is cut off leaves `main` as it was or complete; the same command again
    sends what is missing. A tag never moves. The token comes from `hf auth login` or HF_TOKEN.

    Of a run's output folder the weights go up with a model card: which dataset version, recipe and code made them,
    and what they reach (`--report`). States to resume from, logs and the card that lies there are left out.

    Example: `solar-rl publish runs/phone-1.0.0 --repo me/phone --dry-run`

    Example: `solar-rl publish runs/phone_cpu/log_step --repo me/phone-policy --report out/report.json`

    Args:
        folder: A built dataset, or the output folder of a training run.
        repo: OWNER/NAME of the repository.
        type: dataset or model (default: what lies in the folder).
        report: Files report.json of `solar-rl evaluate`, whose figures go on a model's card.
        private: Make the repository private where it is created; refuse to publish in a public one.
        create: Create the repository where there is none.
        tag: Name of the version (default: v and the dataset's version; of a model: none).
        message: First line of the commit.
        dry_run: List what would be sent, and send nothing.
        json: Print the result as JSON.
    """
    from solar_rl import commands_hub

    commands_hub.publish(
        folder,
        repo,
        kind=type,
        reports=report,
        private=private,
        create=create,
        tag=tag,
        message=message,
        dry_run=dry_run,
        as_json=json,
    )
