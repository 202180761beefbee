"""Run a recipe script with FSDP2 over gloo: accelerate shards on GPUs alone, so CPU processes say they were some.

Usage: torchrun --nproc_per_node 2 sharded_worker.py SCRIPT ARGUMENTS
"""

import runpy
import sys

from accelerate import PartialState
from accelerate.utils import DistributedType

begin = PartialState.__init__


def pretend(self, *args, **kwargs) -> None:
    begin(self, *args, **kwargs)
    if self.distributed_type == DistributedType.MULTI_CPU:
        PartialState._shared_state["distributed_type"] = DistributedType.MULTI_GPU


PartialState.__init__ = pretend
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
