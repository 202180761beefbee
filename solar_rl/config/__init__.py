"""Describe a dataset build: frozen pydantic models whose field docs are the help.

A dataset.yaml is read into ``DatasetConfig``, one block a file of this folder. Unknown keys are errors with a
suggestion. ``digest`` hashes what changes results and leaves out what only changes speed.
"""

from solar_rl.config.base import SPEED_ONLY, Config
from solar_rl.config.dataset import DatasetConfig
from solar_rl.config.executor import ExecutorConfig
from solar_rl.config.loading import (
    field_docs,
    load_dataset_config,
    override,
    put_sampler,
    read_sampler,
    set_dotted,
    validate_config,
)
from solar_rl.config.privacy import PrivacyConfig
from solar_rl.config.prompt import PromptConfig
from solar_rl.config.rewards import AdvantageConfig, ShapingConfig, ValidityConfig
from solar_rl.config.sampler import (
    AnySampler,
    OpenAISampler,
    RecordedSampler,
    Sampler,
    ScriptedSampler,
    TransformersSampler,
    VllmSampler,
)
from solar_rl.config.source import SourceConfig

__all__ = [
    "SPEED_ONLY",
    "AdvantageConfig",
    "AnySampler",
    "Config",
    "DatasetConfig",
    "ExecutorConfig",
    "OpenAISampler",
    "PrivacyConfig",
    "PromptConfig",
    "RecordedSampler",
    "Sampler",
    "ScriptedSampler",
    "ShapingConfig",
    "SourceConfig",
    "TransformersSampler",
    "ValidityConfig",
    "VllmSampler",
    "field_docs",
    "load_dataset_config",
    "override",
    "put_sampler",
    "read_sampler",
    "set_dotted",
    "validate_config",
]
