"""The arms: recipes of the family ``phone_cpu`` on one sampled dataset, of which shaped versions differ."""

from __future__ import annotations

from typing import Any, NamedTuple


class Arm(NamedTuple):
    """One way to train from the same start, on the same samples.

    Args:
        title: What tables call it.
        recipe: A shipped recipe.
        alignment: Which version of the dataset it reads.
        keys: What it says otherwise than its recipe.
        first: A recipe that takes the first share of the updates (``courses.ATOMIC_SHARE``): two stages.
    """

    title: str
    recipe: str
    alignment: str = "segments"
    keys: dict[str, Any] = {}
    first: str | None = None


LAB_ARMS: dict[str, Arm] = {
    "sparse": Arm("sparse success", "phone_cpu/baseline_sparse"),
    "sparse_rtraj": Arm("sparse R_traj, std", "phone_cpu/baseline_sparse_rtraj"),
    "step_local": Arm("step_local", "phone_cpu/baseline_step_local"),
    "ui_s1": Arm("UI-S1 style", "phone_cpu/baseline_ui_s1"),
    "sft": Arm("SFT", "phone_cpu/baseline_sft"),
    "solar_paper": Arm("SOLAR, paper", "phone_cpu/stage2_trajectory", "paper"),
    "solar_prefix_mean": Arm("SOLAR, prefix_mean", "phone_cpu/stage2_trajectory", "prefix_mean"),
    "solar_segments": Arm("SOLAR, segments", "phone_cpu/stage2_trajectory", "segments"),
    "log_step": Arm("log_step", "phone_cpu/log_step"),
    "solar_log": Arm("SOLAR, segments + log_success", "phone_cpu/solar_log"),
    "step_local_anchor": Arm("step_local + expert anchor", "phone_cpu/baseline_step_local_anchor"),
}
"""The eleven arms of the lab."""
_ATOMIC = "phone_cpu/stage1_atomic"
ARMS: dict[str, Arm] = LAB_ARMS | {
    "log_step_anchor": Arm("log_step + expert anchor", "phone_cpu/log_step_anchor"),
    "two_stage_sparse": Arm("atomic, then sparse", "phone_cpu/baseline_sparse", first=_ATOMIC),
    "two_stage_paper": Arm("atomic, then SOLAR paper", "phone_cpu/stage2_trajectory", "paper", first=_ATOMIC),
    "two_stage_segments": Arm("atomic, then SOLAR segments", "phone_cpu/stage2_trajectory", first=_ATOMIC),
    "two_stage_log_step": Arm("atomic, then log_step", "phone_cpu/log_step", first=_ATOMIC),
}
"""All arms: those of the lab, and those of its sweeps."""
BASELINES = ("sparse", "step_local", "sft", "step_local_anchor")
"""What a claim must beat."""
ALIGNMENTS = ("segments", "prefix_mean", "paper")
"""Versions of the dataset, the one that is sampled first."""
