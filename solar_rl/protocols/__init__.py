"""Every way to judge an answer: ours, and those of the peers, reproduced with their faults.

A protocol reads neutral rows (``neutral.py``) and gives verdicts (``base.py``). To add one, write a module with
a ``PROTOCOL`` and name it here.
"""

from __future__ import annotations

from difflib import get_close_matches

from solar_rl.errors import InputError
from solar_rl.protocols import (
    agentcpm_eval,
    agentcpm_rft,
    gui_odyssey_official,
    guir1_eval,
    guir1_reward,
    infigui_eval,
    osatlas_ac,
    solar,
    uir1_reward,
    uis1_eval,
    uis1_eval_asshipped,
    uis1_train,
)
from solar_rl.protocols.base import VERDICT, Protocol, Rules
from solar_rl.protocols.neutral import NEUTRAL, neutral_frame

_ALL = (
    solar.PROTOCOL,
    uis1_eval.PROTOCOL,
    uis1_eval_asshipped.PROTOCOL,
    *agentcpm_eval.PROTOCOLS,
    osatlas_ac.PROTOCOL,
    gui_odyssey_official.PROTOCOL,
    guir1_eval.PROTOCOL,
    infigui_eval.PROTOCOL,
    uis1_train.PROTOCOL,
    agentcpm_rft.PROTOCOL,
    guir1_reward.PROTOCOL,
    uir1_reward.PROTOCOL,
)
PROTOCOLS: dict[str, Protocol] = {protocol.name: protocol for protocol in _ALL}
"""Every protocol by name: ours first, then the evaluations, then the training rewards."""


def get_protocol(name: str) -> Protocol:
    """Return the protocol of that name.

    Raises:
        InputError: There is none.
    """
    if name in PROTOCOLS:
        return PROTOCOLS[name]
    near = get_close_matches(name, PROTOCOLS, n=1)
    hint = f"did you mean {near[0]}?" if near else f"one of {', '.join(PROTOCOLS)}"
    raise InputError(f"unknown protocol {name!r}", hint=hint)


__all__ = ["NEUTRAL", "PROTOCOLS", "VERDICT", "Protocol", "Rules", "get_protocol", "neutral_frame"]
