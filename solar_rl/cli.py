"""The command line: one verb a function, everything heavy imported inside the verb.

Results go to stdout, progress and messages to stderr. Exit 0 done, 1 a check failed, 2 the user's input
is wrong, 3 our own fault.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn

from cyclopts import App, CycloptsError, Parameter, validators

from solar_rl import __version__
from solar_rl.cli_diff import diff
from solar_rl.cli_hub import publish
from solar_rl.cli_judging import calibrate, evaluate, parse
from solar_rl.cli_lab import lab
from solar_rl.cli_options import DryRun, Json, Out, Overrides, Rows
from solar_rl.cli_rounds import rounds
from solar_rl.cli_sampling import sample
from solar_rl.cli_sources import export, import_candidates, inspect
from solar_rl.cli_train import train
from solar_rl.errors import InputError, SolarError

app = App(
    name="solar-rl",
    help="Turn GUI demonstrations into shaped-reward datasets, ask them in SQL, and train on them.",
    version=__version__,
    help_format="markdown",
    suppress_keyboard_interrupt=False,
)
for verb in (
    sample,
    inspect,
    export,
    import_candidates,
    diff,
    parse,
    evaluate,
    calibrate,
    publish,
    train,
    rounds,
    lab,
):
    app.command(verb)


@app.command
def demo(
    *,
    out: Path = Path("demo"),
    train: bool = True,
    episodes: int = 48,
) -> None:
    """Run the whole main job on the built-in simulated phone: CPU only, nothing is downloaded.

    Builds a dataset, prints its statistics and one SQL query, writes report.html and runs two training
    stages on a tiny model (``--no-train`` stops before them).

    Example: `solar-rl demo --out demo`

    Args:
        out: Folder for everything the demo makes.
        train: Run the two training stages (needs the train extra).
        episodes: Demonstrations to generate.
    """
    from solar_rl.demo import run_demo

    run_demo(out, train=train, episodes=episodes)


@app.command
def build(
    dataset: str | None = None,
    /,
    *overrides: Overrides,
    out: Out = None,
    version: str | None = None,
    limit: int | None = None,
    executor: Literal["local", "slurm", "ray"] | None = None,
    workers: int | None = None,
    start_from: Annotated[Path | None, Parameter(name="--from")] = None,
    cache: Path | None = None,
    no_cache: Annotated[bool, Parameter(negative="")] = False,
    rehash: Annotated[bool, Parameter(negative="")] = False,
    mask: Annotated[bool, Parameter(negative="")] = False,
    fields: Annotated[bool, Parameter(negative="")] = False,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Build a dataset: read, sample, score, reconstruct, shape, write.

    Any field of the config can be set by its dotted name. A killed build goes on where it stopped when
    the same command is run again, and a changed config runs only the stages that it touches.

    Example: `solar-rl build phone --out runs/phone --shaping.alignment prefix_mean --sampler.n 4`

    Args:
        dataset: A dataset.yaml, or the name of a shipped one such as phone.
        overrides: Dotted config fields, such as --source.path /data/android_control.
        out: Folder of the dataset (default: runs/NAME-VERSION).
        version: Version of the dataset, instead of the one in the file.
        limit: Stop after this many good episodes.
        executor: Where it runs (docs/scale.md; default: the config's executor block, else local).
        workers: Workers; each takes whole shards of the source.
        start_from: A finished version with the same candidates to start from (default: found in and beside
            the folder).
        cache: Folder for answers of costly samplers and hashes of files (default: .solar-cache beside the
            dataset's folder).
        no_cache: Ask the sampler anew, and remember nothing of what it answers.
        mask: Replace e-mail addresses, phone numbers and access keys by stand-ins (docs/validate.md).
        rehash: Read every source file again instead of believing its size, time and inode.
        fields: Print every config field with its default and meaning, and do nothing.
        dry_run: Say what would be done, and do nothing.
        json: Print the result as JSON.
    """
    from solar_rl import commands

    if fields:
        commands.print_fields()
        return
    given = {"version": version and f"'{version}'", "source.limit": limit}
    given |= {"executor.type": executor, "executor.workers": workers, "privacy.mask": mask or None}
    commands.build(
        dataset,
        overrides,
        given,
        out,
        start_from=start_from,
        cache=cache,
        use_cache=not no_cache,
        trust_hashes=not rehash,
        dry_run=dry_run,
        as_json=json,
    )


@app.command
def shape(
    folder: Path,
    /,
    *overrides: Overrides,
    out: Out = None,
    version: str | None = None,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Shape the rewards again under another config: a new version in seconds, no sampling.

    Example: `solar-rl shape runs/phone-1.0.0 --shaping.alignment paper`

    Args:
        folder: A built dataset.
        overrides: Dotted fields of shaping and advantage.
        out: Folder of the new version (default: beside the old one).
        version: The new version (default: the next patch version).
        dry_run: Say what would be done, and do nothing.
        json: Print the result as JSON.
    """
    from solar_rl import commands

    commands.derive(folder, overrides, out, version, stage="shape", dry_run=dry_run, as_json=json)


@app.command
def score(
    folder: Path,
    /,
    *overrides: Overrides,
    out: Out = None,
    version: str | None = None,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Judge the stored candidates again under another validity config, then shape: no sampling.

    Example: `solar-rl score runs/phone-1.0.0 --validity.preset lenient`

    Args:
        folder: A built dataset.
        overrides: Dotted fields of validity, shaping and advantage.
        out: Folder of the new version (default: beside the old one).
        version: The new version (default: the next patch version).
        dry_run: Say what would be done, and do nothing.
        json: Print the result as JSON.
    """
    from solar_rl import commands

    commands.derive(folder, overrides, out, version, stage="score", dry_run=dry_run, as_json=json)


@app.command
def validate(
    dataset: str | None = None,
    /,
    *overrides: Overrides,
    builder: str | None = None,
    all_images: Annotated[bool, Parameter(name="--all", negative="")] = False,
    allow: tuple[Literal["email", "phone", "secret"], ...] = (),
    json: Json = False,
) -> None:
    """Check a dataset: schema, keys, hashes, every law, private strings; exit 1 and a list when one fails.

    With `--builder` it checks a builder on a small sample instead: what it says of itself, its episodes, that it
    reads the same every time, everywhere, and that damaged files become rejects (docs/builders.md).

    Example: `solar-rl validate runs/phone-1.0.0 --all`

    Example: `solar-rl validate --builder my_module:Taps my_sample`

    Args:
        dataset: Folder, OWNER/NAME or hf://datasets/OWNER/NAME; with --builder the sample.
        overrides: With --builder, fields of the source, such as --source.options.images FOLDER.
        builder: A builder's import string, module:Class, or the short name of a shipped one.
        all_images: Decode every image instead of a sample.
        allow: Kinds of private strings that texts may hold, beside those that the dataset's config allows
            (docs/validate.md).
        json: Print the checks as JSON.
    """
    from solar_rl import commands_sources

    commands_sources.validate(dataset, builder, overrides, all_images=all_images, allow=allow, as_json=json)


@app.command
def stats(dataset: str, name: str | None = None, /, *, rows: Rows | None = None, json: Json = False) -> None:
    """Print named statistics: where trajectories fail, validity, rewards, groups, truncation, ...

    Example: `solar-rl stats runs/phone-1.0.0 first_failure`

    Args:
        dataset: Folder, OWNER/NAME or hf://datasets/OWNER/NAME.
        name: One statistic (default: all).
        rows: Rows shown of each table (default: all of one statistic, 20 where all are printed).
        json: Print the tables as JSON.
    """
    from solar_rl import commands

    commands.stats(dataset, name, rows=rows, as_json=json)


@app.command
def query(
    dataset: str,
    sql: str,
    /,
    *,
    format: Literal["table", "json", "csv", "parquet"] = "table",
    out: Path | None = None,
    rows: Rows = 100,
    timeout: Annotated[float, Parameter(validator=validators.Number(gt=0))] = 60.0,
    memory: str = "4GB",
) -> None:
    """Ask a dataset in SQL (DuckDB, read-only): its tables and the views scored, failures, grpo_groups.

    Safe to give to strangers: it opens no file but the dataset's tables, writes none, loads no extension, and
    stops at its limits of time and memory.

    Example: `solar-rl query runs/phone-1.0.0 "SELECT failure_reason, count(*) n FROM failures GROUP BY 1"`

    Args:
        dataset: Folder, OWNER/NAME or hf://datasets/OWNER/NAME.
        sql: The query.
        format: table (at most --rows rows are shown), json, csv or parquet.
        out: File to write to (needed by parquet; default: stdout).
        rows: Rows shown as a table.
        timeout: Seconds after which the query is stopped.
        memory: Memory that it may take, such as 500MB or 16GB.
    """
    from solar_rl import commands_query

    commands_query.query(dataset, sql, format=format, out=out, rows=rows, timeout=timeout, memory=memory)


@app.command
def report(dataset: Path, /, *, dry_run: DryRun = False) -> None:
    """Write report.html: one self-contained page with plots and the best and worst episodes.

    Example: `solar-rl report runs/phone-1.0.0`

    Args:
        dataset: A built dataset.
        dry_run: Say what would be written, and do nothing.
    """
    from solar_rl import commands

    commands.report(dataset, dry_run=dry_run)


@app.command
def judge(
    cases: Path | None = None,
    /,
    *,
    protocol: str,
    about: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Judge neutral cases under a protocol and print one verdict a line, in the order of the cases.

    Each line is a JSON object: `case_id`, `screen_w`, `screen_h`, `expert` and `prediction` (AndroidControl's
    words and device pixels; null: an answer that can't be read) and `candidate_bboxes`. A line that is no
    whole case stops the work: exit 2 with its number, and nothing is printed.

    Example: `solar-rl judge CASES.jsonl --protocol agentcpm_eval_ac004`

    Args:
        cases: JSONL file (default: stdin).
        protocol: Name of a protocol (docs/protocols.md).
        about: Print the protocol's rule, its source and its known faults, and judge nothing.
    """
    import orjson

    from solar_rl.judging import judge_file
    from solar_rl.protocols import get_protocol

    if about:
        print(get_protocol(protocol).help)
        return
    for verdict in judge_file(cases, protocol):
        sys.stdout.write(orjson.dumps(verdict).decode() + "\n")


def main(argv: Sequence[str] | None = None) -> Any:
    """Run the command line and exit with the contract's codes."""
    if (sys.argv[1:] if argv is None else list(argv))[1:2] == [""]:  # Path would take it for this folder
        _fail(InputError("the first argument is empty", hint="a variable of the shell that isn't set?"))
    try:
        app(argv, exit_on_error=False, print_error=False)
    except CycloptsError as error:
        _fail(InputError(str(error), hint="see --help"))
    except SolarError as error:
        _fail(error)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except OSError as error:  # no such folder, no right to write, disk full: the user's to mend
        if error.filename is None:
            _fail_on_damage(argv)
        _fail(InputError(error.strerror or str(error), where=str(error.filename or "") or None))
    except KeyboardInterrupt:
        print("solar-rl: interrupted; run the same command again to go on", file=sys.stderr)
        sys.exit(130)
    except Exception:
        _fail_on_damage(argv)
        import traceback

        traceback.print_exc()
        print(
            "solar-rl: this is a fault of solar-rl itself; please report it with the lines above",
            file=sys.stderr,
        )
        sys.exit(3)


def _fail_on_damage(argv: Sequence[str] | None) -> None:
    """Say so where a dataset that the command names isn't what its manifest says: that explains any failure."""
    from solar_rl.store.manifest import MANIFEST, damaged_files, read_manifest

    for word in argv if argv is not None else sys.argv[1:]:
        folder = Path(word.rpartition("=")[2])
        if (folder / MANIFEST).is_file() and (found := damaged_files(folder, read_manifest(folder))):
            files = f"{found[0]} and {len(found) - 1} more are" if found[1:] else f"{found[0]} is"
            hint = "`solar-rl validate` lists all that is wrong; the same build again makes it anew"
            _fail(InputError(f"{files} damaged: not what the manifest says", where=str(folder), hint=hint))


def _fail(error: SolarError) -> NoReturn:
    from solar_rl.text import visible

    print(visible(f"solar-rl: {error}"), file=sys.stderr)
    sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
