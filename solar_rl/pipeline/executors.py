"""Run ranks elsewhere: in processes of this machine, or on datatrove's executors, a Slurm array or a Ray cluster.

The only file that knows datatrove and ray. What was finished is told by our own units and notes, which are finer
than datatrove's completions: every rank is started, and one that is done ends at once.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from solar_rl.errors import CheckFailed, InputError, MissingExtra, SolarError
from solar_rl.pipeline.local import run_local
from solar_rl.pipeline.phases import (
    Job,
    Phase,
    Progress,
    Slate,
    Standing,
    logs,
    run_watched,
    slates,
    together,
)

if TYPE_CHECKING:
    from datatrove.executor.slurm import SlurmPipelineExecutor

_LOOK_EVERY = 0.2


def run_ranks(job: Job, phase: Phase, workers: int, progress: Progress) -> None:
    """Run a phase on several local or Ray workers and wait for it.

    Raises:
        SolarError: What stopped a rank.
        CheckFailed: A worker was killed.
    """
    for old in slates(job, phase).glob("*.json"):
        old.unlink()
    run = _run_ray if job.config.executor.type == "ray" else run_local
    failed: Exception | None = None
    try:
        run(job, phase, workers, progress)
    except Exception as error:
        failed = error
    ranks = Slate.read_all(slates(job, phase))
    progress(together(ranks))
    _raise_first(ranks)
    if isinstance(failed, SolarError):
        raise failed
    if failed or sum(rank.done for rank in ranks.values()) < workers:
        raise CheckFailed(
            "a worker failed", where=str(logs(job, phase)), hint="its log tells why"
        ) from failed


def submit(job: Job) -> list[str]:
    """Submit a build to Slurm: an array for each phase, and a last job that puts the dataset together.

    Returns:
        The ids of the jobs.

    Raises:
        InputError: There is no sbatch on this machine.
        CheckFailed: It refused; its own words stand above.
    """
    _require("datatrove", "--executor slurm")
    if shutil.which("sbatch") is None:
        raise InputError(
            "there is no sbatch on the PATH", where="--executor slurm", hint="run it on a login node"
        )
    *phases, last = _slurm_chain(job, _slurm_folder(job))
    _quiet()
    try:
        last.run()
    except subprocess.CalledProcessError as error:
        script = str(_slurm_folder(job) / "logs" / "sample" / "launch_script.slurm")
        raise CheckFailed(
            f"sbatch refused (exit {error.returncode})", hint=f"the script: {script}"
        ) from error
    return [str(each.job_id) for each in (*phases, last)]


def slurm_scripts(job: Job) -> str:
    """Return the batch scripts that ``submit`` would submit, one after the other; writes nothing."""
    _require("datatrove", "--executor slurm")
    with tempfile.TemporaryDirectory() as folder:
        scripts = []
        for each in _slurm_chain(job, Path(folder)):
            pickled = each.logging_dir.resolve_paths("executor.pik")
            run = f"srun  -l -n 1 launch_pickled_pipeline {pickled}"  # as datatrove spells it
            scripts.append(each.get_launch_file_contents(each.get_sbatch_args(each.tasks), run))
        return "\n".join(scripts).replace(folder, str(_slurm_folder(job)))


def _step(job: Job, phase: Phase | None) -> Any:
    """Return a step of datatrove's: a rank's share of a phase; None: put the dataset together."""
    from datatrove.pipeline.base import PipelineStep

    class Step(PipelineStep):  # type: ignore[misc]
        name = phase or "finish"
        type = "solar-rl"

        def run(self, data: Any = None, rank: int = 0, world_size: int = 1) -> Iterator[Any]:
            if phase is None:
                from solar_rl.pipeline import finish_submitted

                finish_submitted(job)
            else:
                run_watched(job, phase, rank, world_size)
            yield from data or ()

    return Step()


def _run_ray(job: Job, phase: Phase, workers: int, progress: Progress) -> None:
    _require("datatrove", "--executor ray")
    _require("ray", "--executor ray")
    import ray
    from datatrove.executor.ray import RayPipelineExecutor

    _quiet()
    given = job.config.executor
    if not ray.is_initialized():
        where: dict[str, Any] = {"address": given.address} if given.address else {"include_dashboard": False}
        ray.init(log_to_driver=False, configure_logging=False, **where)
    executor = RayPipelineExecutor(
        pipeline=[_step(job, phase)],
        tasks=workers,
        workers=workers,
        cpus_per_task=given.cpus_per_task,
        mem_per_cpu_gb=given.mem_per_cpu_gb,
        gpus_per_task=given.gpus_per_task,
        logging_dir=str(logs(job, phase)),
        skip_completed=False,
        log_first=False,
    )
    failed: list[BaseException] = []

    def run() -> None:
        try:
            executor.run()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)  # Ctrl-C must not wait for it
    thread.start()
    while thread.is_alive():
        thread.join(_LOOK_EVERY)
        progress(together(Slate.read_all(slates(job, phase))))
    if failed:
        raise failed[0]


def _slurm_folder(job: Job) -> Path:
    """Return where scripts and logs lie: beside the dataset, since the last job outlives the work folder."""
    return job.out.parent / f".{job.out.name}.slurm" / job.build_id


def _slurm_chain(job: Job, folder: Path) -> list[SlurmPipelineExecutor]:
    """Return the executors of both phases and of the last job, each waiting for the one before it."""
    from datatrove.executor.slurm import SlurmPipelineExecutor

    class Slurm(SlurmPipelineExecutor):  # type: ignore[misc]
        def launch_merge_stats(self) -> None:
            """Submit no job for datatrove's statistics: there are none."""

        def get_sbatch_args(self, max_array: int = 1) -> dict[str, Any]:
            """Leave out what nobody named: an option without a value would swallow the next one."""
            found = super().get_sbatch_args(max_array)
            return {name: value for name, value in found.items() if value is not None}

    given = job.config.executor
    chain: list[SlurmPipelineExecutor] = []
    for phase, tasks in (("sample", given.workers), ("write", given.workers), (None, 1)):
        name = phase or "finish"
        chain.append(
            Slurm(
                pipeline=[_step(job, phase)],  # type: ignore[arg-type]
                tasks=tasks,
                time=given.time,
                partition=given.partition,
                cpus_per_task=given.cpus_per_task,
                mem_per_cpu_gb=given.mem_per_cpu_gb,
                gpus_per_task=given.gpus_per_task if phase == "sample" else 0,
                job_name=f"solar-rl-{job.config.name}-{name}",
                qos=given.qos,
                env_command=given.setup or f"export PATH={Path(sys.executable).parent}:$PATH",
                sbatch_args=dict(given.sbatch),
                logging_dir=str(folder / "logs" / name),
                skip_completed=False,
                depends=chain[-1] if chain else None,
                requeue=False,
                mail_type="NONE",
            )
        )
    return chain


def _raise_first(ranks: dict[str, Standing]) -> None:
    """Raise what stopped the first rank that says so."""
    for name in sorted(ranks):
        error = ranks[name].error
        if error is not None:
            kind = {1: CheckFailed, 2: InputError}.get(int(error["exit_code"] or 3), SolarError)
            where, hint = (str(error[key]) if error[key] else None for key in ("where", "hint"))
            raise kind(str(error["message"]), where=where, hint=hint)


def _quiet() -> None:
    """Leave stderr to our own words: datatrove's go to its log files."""
    from loguru import logger

    logger.remove()


def _require(package: str, feature: str) -> None:
    if importlib.util.find_spec(package) is None:
        raise MissingExtra(feature, "scale")
