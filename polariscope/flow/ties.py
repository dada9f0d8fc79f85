"""Exact ties: coordinates that start equal stay equal, which rounding must not undo."""

import numpy as np


def tie(u: np.ndarray, a: np.ndarray) -> np.ndarray:
    """u with entries made exactly equal where ``a`` is equal and u agrees to rounding.

    Columns of V0 that are equal give projections that may differ in the last bit; a flow would enlarge the difference
    exponentially and break a tie that is exact.
    """
    close = (a[:, None] == a) & (
        np.abs(u[:, None] - u) <= 4 * np.finfo(float).eps * max(1e-300, float(np.abs(u).max()))
    )
    return u[close.argmax(axis=1)]


def tied_lead(s: np.ndarray, u: np.ndarray, a: np.ndarray) -> list[int]:
    """Coordinates that share the lead in s and started tied, or an empty list if one leads alone."""
    leaders = np.flatnonzero(s == s.max())
    same = (u[leaders] == u[leaders[0]]) & (a[leaders] == a[leaders[0]])
    return leaders[same].tolist() if same.sum() > 1 else []


def leader(values: np.ndarray, tolerance: float = 0.0) -> np.ndarray:
    """The index of the largest entry on the last axis, (…,); -1 where another is within ``tolerance``, or for NaN."""
    if values.shape[-1] == 1:
        return np.where(np.isnan(values[..., 0]), -1, 0)
    top = np.partition(values, -2, axis=-1)
    alone = top[..., -1] - top[..., -2] > tolerance  # False for NaN, which sorts last
    return np.where(alone, values.argmax(axis=-1), -1)
