"""Times asked for, as t or as log t."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from polariscope.errors import InputError

LARGEST = 1e150
"""Largest log t: beyond it squares of the path time overflow."""


def read_times(raw: Mapping[str, Any], t: Any = None, log_t: Any = None) -> np.ndarray:
    """The times as log t, (k,), from the arguments if given, else from the keys ``t`` or ``log_t`` of a problem.

    Raises:
        InputError: for both or neither, negative t, times that do not increase, and what is not a finite number.
    """
    given = {"t": t, "log_t": log_t}
    if t is None and log_t is None:
        given = {"t": raw.get("t"), "log_t": raw.get("log_t")}
    named = [key for key, value in given.items() if value is not None]
    if len(named) != 1:
        raise InputError(
            "times",
            got=" and ".join(named) or "neither t nor log_t",
            expected="exactly one of t and log_t",
            fix="give one",
        )
    key = named[0]
    values = _numbers(given[key], key)
    if key == "log_t":
        if values[-1] > LARGEST:
            raise InputError("log_t", got=f"{values[-1]:g}", expected=f"at most {LARGEST:g}", fix="ask for less")
        return values
    if values[0] < 0:
        raise InputError("t", got=f"{values[0]:g}", expected="times from 0 on", fix="drop the negative times")
    with np.errstate(divide="ignore"):
        return np.log(values)


def _numbers(value: Any, key: str) -> np.ndarray:
    try:
        values = np.atleast_1d(np.array(value))
        if values.dtype.kind not in "iuf" and values.size:  # not booleans or words
            raise TypeError
        values = values.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(key, got=repr(value)[:80], expected="numbers", fix="write 1,10,100") from None
    if values.ndim != 1 or values.size == 0 or not np.isfinite(values).all():
        raise InputError(key, got=repr(value)[:80], expected="a list of finite numbers", fix="write 1,10,100")
    if np.any(np.diff(values) <= 0):
        raise InputError(key, got=repr(value)[:80], expected="times that increase", fix="sort them, each once")
    return values


def untimed(problem: Any) -> dict[str, Any]:
    """A problem without its times. Raises InputError for what is not a mapping."""
    if not isinstance(problem, Mapping):
        raise InputError("problem", got=type(problem).__name__, expected="an object as for solve", fix="see docs")
    return {key: value for key, value in problem.items() if key not in ("t", "log_t")}
