"""The blocks ``validity``, ``shaping`` and ``advantage``: from answers to rewards."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from solar_rl.config.base import Config


class ValidityConfig(Config):
    """When an action counts as right (docs/method.md, section 2). All values are ours."""

    preset: Literal["strict", "lenient"] = "strict"
    """strict: click_sigma 0.034 (s = 0.5 at 0.04); lenient: 0.119 (s = 0.5 at 0.14)."""
    click_sigma: float | None = Field(default=None, gt=0)
    """s0 of the Gaussian kernel, in the unit square (default: the preset's)."""
    click_threshold: float = Field(default=0.5, ge=0, le=1)
    """A point action is valid from this score on."""
    box_sigma: float = Field(default=0.5, gt=0)
    """Sigma of an axis is at least this times the box's side (the constant of GUI-G2)."""
    box_floor: float = Field(default=0.5, ge=0, le=1)
    """Score of a point inside the chosen box is at least this."""
    max_box_area: float = Field(default=0.25, gt=0, le=1)
    """A candidate box that covers this share of the screen or more is a container and isn't used."""
    text_threshold: float = Field(default=0.5, ge=0, le=1)
    """Typed text is valid from this token F1 on."""
    launch_threshold: float = Field(default=0.8, ge=0, le=1)
    """An app name is valid from this similarity on; 1.0 is the exact match."""

    verifier: str | None = None
    """Import string of a verifier that judges in the place of these rules (docs/verifier.md); default: the
    rules. Raise the dataset's version when the verifier changes: its code is not part of the build id."""

    @property
    def sigma0(self) -> float:
        """Return the kernel's s0: ``click_sigma`` if given, else the preset's."""
        return self.click_sigma or {"strict": 0.034, "lenient": 0.119}[self.preset]


class ShapingConfig(Config):
    """How rewards are aligned with the trajectory's return (docs/method.md, section 3)."""

    alignment: Literal["off", "paper", "prefix_mean", "segments"] = "segments"
    """off: base rewards; paper: sum = R_traj; prefix_mean: mean prefix reward = R_traj; segments (ours):
    the same for each stretch between breakdowns, nothing thrown away."""
    suffix: Literal["discard", "penalise"] = "discard"
    """What happens after t* in off, paper and prefix_mean: thrown away (the authors' text), or each invalid
    step gets -(1 - s) and a valid one 0 (the notes' text). segments has no suffix."""
    normalisation: Literal["none", "unit_mass"] = "none"
    """unit_mass: positive bases divided by their sum, negative by its absolute value (truncated modes)."""
    score_weight: float = Field(default=0.3, ge=0)
    """Weight of the mean score in R_traj. [ours]"""
    progress_weight: float = Field(default=0.3, ge=0)
    """Weight of min(1, K / N_ref) in R_traj. [ours]"""
    success_weight: float = Field(default=0.4, ge=0)
    """Weight of success in R_traj. [ours]"""

    @model_validator(mode="after")
    def _modes_fit(self) -> ShapingConfig:
        if self.alignment == "segments" and self.normalisation == "unit_mass":
            raise ValueError(
                "normalisation: unit_mass works with the truncated alignments only; "
                "use normalisation: none with segments, or alignment: paper / prefix_mean"
            )
        return self


class AdvantageConfig(Config):
    """How rewards are compared within their group (episode, step)."""

    scale: Literal["none", "std"] = "none"
    """Divide by the group's standard deviation, or not (default; method.md, section 4)."""
