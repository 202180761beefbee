"""The ``executor`` block: where a build runs. Nothing here changes a byte of what is built."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from solar_rl.config.base import Config


class ExecutorConfig(Config):
    """Where a build runs, and on how many workers."""

    type: Literal["local", "slurm", "ray"] = "local"
    """local: processes of this machine; slurm: a batch array; ray: a Ray cluster."""
    workers: int = Field(default=1, ge=1)
    """Workers; each owns whole shards of the source, so more than it has shards are of no use."""
    partition: str | None = None
    """slurm: partition."""
    time: str = "24:00:00"
    """slurm: longest time a worker may take."""
    qos: str | None = None
    """slurm: quality of service."""
    cpus_per_task: int = Field(default=1, ge=1)
    """slurm, ray: cores a worker."""
    mem_per_cpu_gb: int = Field(default=4, ge=1)
    """slurm, ray: memory a core in GB."""
    gpus_per_task: int = Field(default=0, ge=0)
    """slurm, ray: GPUs a worker."""
    setup: str | None = None
    """slurm: shell line that each job runs first (default: activate this very environment)."""
    sbatch: dict[str, str] = {}
    """slurm: further options of sbatch, such as {account: mine}."""
    address: str | None = None
    """ray: address of a running cluster (default: start one on this machine)."""
