"""The ``prompt`` block: how a step is put to a policy."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from solar_rl.config.base import Config


class PromptConfig(Config):
    """How a step is put to a policy."""

    format: str = "qwen25vl_mobile_use"
    """Output format that is asked for and parsed (contract: output formats)."""
    template: str | None = None
    """What goes into which message (docs/prompts.md): NAME/VERSION of a shipped template, a file of your own, or
    the text itself (default: the newest of the format; the manifest says which)."""
    level: Literal["high", "low"] = "high"
    """high: the goal alone; low: the step's instruction is given too."""
    history: Literal["expert", "candidate", "none"] = "expert"
    """Earlier actions in the prompt: the recorded ones, the candidate's own (sampling then goes step by step
    along the episode), or none."""
    after_mismatch: Literal["expert", "own"] = "expert"
    """With history candidate: what the history says of an action that was not valid. expert: the recorded one,
    as UI-S1 patches it; own: what the candidate did. The screens are the expert's either way. [ours]"""
    history_thoughts: bool = False
    """Show the thought before each earlier action: the recorded one, or the candidate's own."""
    history_steps: int | None = Field(default=None, ge=1)
    """At most this many earlier actions, the newest kept (default: all)."""
    screenshots: int = Field(default=1, ge=1, le=16)
    """Show the last so many screenshots, the current one included."""
    observation: Literal["image", "text", "both"] = "image"
    """What the policy sees of the screen: the screenshot, the accessibility tree as text, or both."""
    min_pixels: int = Field(default=3136, ge=784)
    """Smallest image area after smart_resize (Qwen2.5-VL's default: 56 * 56)."""
    max_pixels: int = Field(default=12_845_056, ge=784)
    """Largest image area after smart_resize (Qwen2.5-VL's default: 16384 * 28 * 28)."""

    @model_validator(mode="after")
    def _pixels_are_a_range(self) -> PromptConfig:
        if self.min_pixels > self.max_pixels:
            raise ValueError(f"min_pixels {self.min_pixels} is above max_pixels {self.max_pixels}")
        return self
