"""Samples (documents, seeds) as float64 in NumPy: what intervals and sums are made of."""

from typing import Any

import numpy as np

from polariscope.errors import InputError


def last_axis(samples: Any, axis: int) -> np.ndarray:
    """The samples in float64 with their axis last. Raises InputError for what is no array of numbers with that axis."""
    try:
        x = np.asarray(samples, dtype=np.float64)
    except (TypeError, ValueError, RuntimeError) as problem:
        fix = "detach tensors and move them to the CPU, drop what is not a number"
        raise InputError("samples", got=str(problem), expected="an array of numbers", fix=fix) from problem
    if not -x.ndim <= axis < x.ndim:
        fix = "put the documents or seeds on that axis"
        raise InputError("samples", got=f"shape {x.shape}", expected=f"an array with axis {axis}", fix=fix)
    return np.moveaxis(x, axis, -1)
