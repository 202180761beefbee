"""The lab: does the method work, measured in closed loop? Anybody can rerun it on two CPU cores.

Everything goes through the product's own pipeline: the phone builder, the transformers sampler, dataset versions,
the recipes of ``phone_cpu``, ``recipes/grpo.py`` and ``recipes/sft.py``, and the evaluation of recorded steps and
closed loop. A run has a folder; a killed run goes on where it was.
"""

from solar_rl.lab.plan import Plan, load_plan

__all__ = ["Plan", "load_plan"]
