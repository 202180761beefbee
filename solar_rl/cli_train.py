"""The verb ``train`` of the command line: run a recipe, or say what it would take."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter, validators

from solar_rl.cli_options import DryRun, Json, Overrides

Count = Annotated[int, Parameter(validator=validators.Number(gte=1))]


def train(
    recipe: str,
    /,
    *extra: Overrides,
    processes: Count | None = None,
    accelerate: str | None = None,
    machines: Count = 1,
    rank: Annotated[int, Parameter(validator=validators.Number(gte=0))] = 0,
    host: str | None = None,
    dry_run: DryRun = False,
    plan: Annotated[bool, Parameter(negative="")] = False,
    context: Count | None = None,
    json: Json = False,
) -> None:
    """Run a training recipe; prints the command that it runs.

    Example: `solar-rl train phone_cpu/stage1_atomic --dataset runs/phone-1.0.0 --max_steps 10`

    Example: `solar-rl train qwen2_5_vl_7b/stage1_atomic --dataset runs/solar_mix-1.0.0 --accelerate fsdp2`

    Example: `solar-rl train qwen2_5_vl_7b/stage1_atomic --plan --processes 8 --gradient_accumulation_steps 32`

    Args:
        recipe: A recipe YAML, or the name of a shipped one.
        extra: Fields of the recipe, such as --learning_rate 1e-6; they win over the file.
        processes: Number of processes on all machines together (default: one a GPU, or one).
        accelerate: How GPUs share the work: ddp, fsdp2, zero2, zero3, multi_node, or a config file of
            accelerate's (default: ddp).
        machines: Number of machines; run the same command on each.
        rank: Number of this machine, from 0.
        host: HOST:PORT of the first machine.
        dry_run: Print the command, and don't run it.
        plan: Print how much memory a GPU needs, by arithmetic, and don't run anything.
        context: With --plan, tokens of prompt and answer (default: by the pixel limit of the dataset or, before
            it is built, of the recipe; else the paper's 6,144).
        json: With --plan, print JSON.
    """
    if plan:
        from solar_rl import commands_train

        commands_train.plan(recipe, extra, processes=processes, context=context, as_json=json)
        return
    from solar_rl.train.launch import Machines, launch

    place = Machines(machines, rank, host)
    code = launch(recipe, extra, dry_run=dry_run, processes=processes, accelerate=accelerate, machines=place)
    if code:
        raise SystemExit(code)
