"""The engine for every other loss and model: ordinary time."""

from typing import Any


def serves(problem: Any) -> bool:
    """Not yet."""
    return False
