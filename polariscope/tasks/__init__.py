"""Synthetic tasks: what a small transformer is trained on, and what is measured on it afterwards."""

import importlib
from typing import TYPE_CHECKING, Any

from polariscope.registry import Registry

if TYPE_CHECKING:
    from polariscope.tasks._base import Batch, Task
    from polariscope.tasks.classification import Classification
    from polariscope.tasks.streams import stream

__all__ = ["REGISTRY", "Batch", "Classification", "Task", "stream"]

REGISTRY = Registry(
    "task",
    {
        "classification": (
            "polariscope.tasks.classification:Classification",
            "name the group that ten distinct tokens belong to, at a CLS token that stands last",
        ),
    },
)

_HOMES = {"Batch": "_base", "Task": "_base", "Classification": "classification", "stream": "streams"}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"polariscope.tasks.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'polariscope.tasks' has no attribute {name!r}")
