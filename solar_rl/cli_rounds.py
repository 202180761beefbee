"""The verb ``rounds`` of the command line: sample, build, train, evaluate, again."""

from __future__ import annotations

from solar_rl.cli_options import DryRun, Json, Out, Overrides


def rounds(
    recipe: str,
    /,
    *overrides: Overrides,
    out: Out = None,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Run rounds: sample with the newest policy, build a dataset version, train, evaluate held out, again.

    Each round's dataset is version 1.R.0 in a folder of its own. A killed run goes on where it stopped when the
    same command is run again. At the end a table tells of each round what was sampled, how far the policy moved
    from its sampler, and the held-out goal progress (docs/rounds.md).

    Example: `solar-rl rounds phone_cpu/rounds_tiny --rounds 3`

    Args:
        recipe: A rounds YAML, or the name of a shipped one.
        overrides: Fields of it, such as --rounds 20 or --build.sampler.n 4.
        out: Folder of the run (default: runs/rounds/NAME).
        dry_run: Print every stage with its command, and do nothing.
        json: Print the record of the rounds as JSON.
    """
    from solar_rl import commands_rounds

    commands_rounds.rounds(recipe, overrides, out, dry_run=dry_run, as_json=json)
