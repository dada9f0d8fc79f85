"""Exact ties: coordinates that start equal stay equal, which rounding must not undo."""

import numpy as np

from polariscope.flow.charts import declares
from polariscope.flow.problem import Problem

SAME = 1e-14
"""Relative difference of weights that are equal but for rounding."""


def tie(u: np.ndarray, a: np.ndarray) -> np.ndarray:
    """u with entries made exactly equal where ``a`` is equal and u agrees to rounding.

    Columns of V0 that are equal give projections that may differ in the last bit; a flow would enlarge the difference
    exponentially and break a tie that is exact.
    """
    if len(set(a.tolist())) == len(a):
        return u
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


def alike(problem: Problem) -> np.ndarray:
    """For every key the first key that the start cannot tell from it, (n,); the key itself where there is none.

    Alike are keys with equal columns of V, and equal rows of the parameters that belong to keys. The rows of U make the
    logits of the tied model, so its keys are alike only if a = 0 and all columns are equal; then a never moves if σ
    ignores shifts.
    """
    model, keys = problem.model, np.arange(len(problem.where))
    if model.square:
        still = not problem.a0.any() and declares(problem.scores, "shift_invariant")
        return np.zeros_like(keys) if still and (problem.V0[:, :1] == problem.V0).all() else keys
    rows = [problem.V0.T, problem.where[:, None]]
    own = [name for name, shape in model.needs.items() if shape[0] == "n"]
    rows += [problem.parameters[name].reshape(len(keys), -1) for name in own]
    _, first, group = np.unique(np.concatenate(rows, axis=1), axis=0, return_index=True, return_inverse=True)
    return first[group.ravel()]


def shared_lead(problem: Problem, s: np.ndarray) -> list[int]:
    """Keys that share the largest of the weights s (n,) because they start alike, or an empty list."""
    first = alike(problem)
    leaders = np.flatnonzero(s >= s.max() * (1 - SAME))
    found = leaders[first[leaders] == first[leaders[0]]] if len(leaders) else leaders
    return found.tolist() if len(found) > 1 else []
