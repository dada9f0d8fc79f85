"""Training runs: one loop for every task, results in a folder, several runs at once."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polariscope.train._many import run_many
    from polariscope.train._result import RunResult, load
    from polariscope.train._run import run
    from polariscope.train._settings import RunSettings

__all__ = ["RunResult", "RunSettings", "load", "run", "run_many"]

_HOMES = {"RunResult": "_result", "RunSettings": "_settings", "load": "_result", "run": "_run", "run_many": "_many"}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"polariscope.train.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'polariscope.train' has no attribute {name!r}")
