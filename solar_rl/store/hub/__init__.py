"""Talk to the Hub: publish a folder as one commit, and read a dataset back table by table.

The only package that imports ``huggingface_hub``, and only when something is asked of the Hub.
"""

from __future__ import annotations

from solar_rl.store.hub.names import parse_repo
from solar_rl.store.hub.plan import Plan, Release
from solar_rl.store.hub.publish import (
    Published,
    dataset_release,
    folder_release,
    plan_release,
    publish_release,
)
from solar_rl.store.hub.reading import Snapshot, open_snapshot

__all__ = [
    "Plan",
    "Published",
    "Release",
    "Snapshot",
    "dataset_release",
    "folder_release",
    "open_snapshot",
    "parse_repo",
    "plan_release",
    "publish_release",
]
