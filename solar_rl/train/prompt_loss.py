"""Learn prompts beside answers: one forward pass scores both, and each keeps a loss of its own.

An answer is a few tokens, of which one or two say anything; a prompt has a hundred, and names in it come back in the
history and on the screen. A model from random weights learns to look names up from those long before it does from
answers. [ours; language modelling as an auxiliary loss is GPT's, Radford et al. 2018, section 3.2]
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import torch

SHARE = 0.25
"""Share of the prompts' tokens that is scored, drawn anew each time: the head is half the work of a small model. [ours]"""


class ScoresPrompts:
    """Stands for a model in TRL's loss: it scores prompts too, shows TRL the answers alone and keeps the rest.

    Args:
        model: The model as the trainer calls it, with TRL's fused head.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self.loss = torch.tensor(0.0)
        """Mean negative log-prob of the prompts' tokens, after a call."""

    def __call__(self, *, labels: torch.Tensor, **inputs: Any) -> Any:
        """Score (B, L) tokens; everything a token in the output is 0 where ``labels`` is -100."""
        answered = labels != -100
        drawn = (torch.rand(labels.shape, device=labels.device) < SHARE) & (inputs["attention_mask"] == 1)
        scored = inputs["input_ids"].masked_fill(~(answered | drawn), -100)
        outputs = self._model(**inputs, labels=scored)
        answers = answered[:, 1:]
        prompts = outputs.label_mask & ~answers
        self.loss = -(outputs.log_probs * prompts).sum() / prompts.sum().clamp(min=1)
        for field in fields(outputs):
            value = getattr(outputs, field.name)
            if isinstance(value, torch.Tensor) and value.shape == answers.shape:
                setattr(outputs, field.name, value * answers)
        return outputs
