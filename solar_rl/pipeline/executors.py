"""Run ranks elsewhere, on datatrove's executors: processes of this machine, a Slurm array, a Ray cluster.

The only file that knows datatrove and ray. What was finished is told by our own units and notes, which are finer
than datatrove's completions: every rank is started, and one that is done ends at once.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from solar_rl.errors import CheckFailed, InputError, MissingExtra, SolarError
from solar_rl.pipeline.phases import COUNTS, Job, Phase, Slate, Standing, run_watched, slates

if TYPE_CHECKING:
    from datatrove.executor.slurm import SlurmPipelineExecutor

Progress = Callable[[Standing], None]
"""Called now and then with what all ranks together have done."""
_LOOK_EVERY = 0.2
_LOADED_ONCE = [__name__, "datatrove.executor.local", "pyarrow.parquet", "PIL.Image"]
"""What local workers of both phases need: loaded by the process that they are forked from, not by each of them."""


def get_ready() -> None:
    """Start the process that local workers are forked from; it loads their modules while this one looks at the source."""
    if importlib.util.find_spec("datatrove") is None:
        return  # told once workers are asked for
    import multiprocess
    from multiprocess.forkserver import ensure_running

    multiprocess.set_forkserver_preload(_LOADED_ONCE)
    ensure_running()


def run_ranks(job: Job, phase: Phase, workers: int, progress: Progress) -> None:
    """Run a phase on several local or Ray workers and wait for it.

    Raises:
        SolarError: What stopped a rank.
        CheckFailed: A worker was killed.
    """
    _require("datatrove", "several workers")
    for old in slates(job, phase).glob("*.json"):
        old.unlink()
    start = _ray_run if job.config.executor.type == "ray" else _local_run
    run = start(job, phase, workers)
    _quiet()
    failed: list[BaseException] = []

    def watched() -> None:
        try:
            run()
        except BaseException as error:
            failed.append(error)

    # in a thread: datatrove waits for ever where a worker of its pool is killed
    thread = threading.Thread(target=watched, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(_LOOK_EVERY)
        ranks = Slate.read_all(slates(job, phase))
        progress(_together(ranks))
        if job.config.executor.type == "local" and thread.is_alive():
            _refuse_killed(ranks, job, phase)
    ranks = Slate.read_all(slates(job, phase))
    progress(_together(ranks))
    _raise_first(ranks)
    if failed and not isinstance(failed[0], Exception):
        raise failed[0]
    if failed or sum(rank.done for rank in ranks.values()) < workers:
        raise CheckFailed("a worker failed", where=str(_logs(job, phase)), hint="its log tells why") from (
            failed[0] if failed else None
        )


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


def _local_run(job: Job, phase: Phase, workers: int) -> Callable[[], Any]:
    from datatrove.executor.local import LocalPipelineExecutor

    get_ready()
    logs = _logs(job, phase)

    class Local(LocalPipelineExecutor):  # type: ignore[misc]
        def _run_for_rank(self, rank: int, local_rank: int = 0, node_rank: int = -1) -> Any:
            # datatrove talks on stderr; so may libraries
            with (logs / f"rank-{rank:05d}.err").open("a") as file, contextlib.redirect_stderr(file):
                try:
                    return super()._run_for_rank(rank, local_rank, node_rank)
                finally:
                    _quiet()

    executor = Local(
        pipeline=[_step(job, phase)],
        tasks=workers,
        workers=workers,
        logging_dir=str(logs),
        skip_completed=False,
    )
    return executor.run  # type: ignore[no-any-return]


def _logs(job: Job, phase: Phase) -> Path:
    folder = job.stage.parent / "logs" / phase
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _ray_run(job: Job, phase: Phase, workers: int) -> Callable[[], Any]:
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
        logging_dir=str(_logs(job, phase)),
        skip_completed=False,
        log_first=False,
    )
    return executor.run  # type: ignore[no-any-return]


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


def _together(ranks: dict[str, Standing]) -> Standing:
    found = ranks.values()
    counts = {name: sum(getattr(rank, name) for rank in found) for name in COUNTS}
    return Standing(os.getpid(), **counts, done=all(rank.done for rank in found))


def _raise_first(ranks: dict[str, Standing]) -> None:
    """Raise what stopped the first rank that says so."""
    for name in sorted(ranks):
        error = ranks[name].error
        if error is not None:
            kind = {1: CheckFailed, 2: InputError}.get(int(error["exit_code"] or 3), SolarError)
            where, hint = (str(error[key]) if error[key] else None for key in ("where", "hint"))
            raise kind(str(error["message"]), where=where, hint=hint)


def _refuse_killed(ranks: dict[str, Standing], job: Job, phase: Phase) -> None:
    for name, rank in ranks.items():
        if rank.done or rank.error or _alive(rank.pid):
            continue
        time.sleep(_LOOK_EVERY)  # it may have said its last word meanwhile
        now = Slate.read_all(slates(job, phase))
        if any(each.error for each in now.values()):
            return  # one tells what stopped it, and the pool ended the others
        if now[name] == rank:
            import multiprocess

            for child in multiprocess.active_children():
                child.terminate()
            raise CheckFailed(
                f"worker {int(name)} (process {rank.pid}) was killed",
                where=str(job.out),
                hint="out of memory? use fewer workers; run the same command again to go on",
            )


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"


def _quiet() -> None:
    """Leave stderr to our own words: datatrove's go to its log files."""
    from loguru import logger

    logger.remove()


def _require(package: str, feature: str) -> None:
    if importlib.util.find_spec(package) is None:
        raise MissingExtra(feature, "scale")
