"""The guard in front of every metric of attention rows."""

import math
from typing import Any

from polariscope.errors import InputError
from polariscope.scores import ScoreMap, get
from polariscope.scores._base import Array, namespace

Scores = ScoreMap | str | None


def weights(s: Array) -> Any:
    """The array namespace of the weights s (…, n); InputError if they are not floating point or have no key."""
    return namespace("attention weights s", s)


def distributions(s: Array, scores: Scores) -> Any:
    """The array namespace of rows that are distributions, declared so by their score map or else checked as numbers."""
    xp = weights(s)
    if scores is None:
        _check_rows(xp, s)
        return xp
    m = get(scores)
    missing = [p for p in ("sums_to_one", "non_negative") if not getattr(m.properties, p)]
    if missing:
        raise InputError(
            "rows that are not distributions",
            got=f"weights of the score map {m.name!r}, which does not declare {' and '.join(missing)}",
            expected="rows that are non-negative and sum to one",
            fix="normalize them with metrics.shares and say so, or use max_weight, relative_max_weight, participation",
        )
    return xp


def concrete(condition: Array) -> bool:
    """The truth of a condition on values; InputError where values do not exist yet (inside jax.jit and the like)."""
    try:
        return bool(condition)
    except TypeError as problem:
        raise InputError(
            "a check of values",
            got="an array that is being traced",
            expected="numbers",
            fix="call it outside jit, or declare the rows with scores=NAME",
        ) from problem


def row_mass(xp: Any, s: Array, *, keepdims: bool = False) -> Array:
    """Σⱼ|sⱼ|, NaN for a row without weight: a share of nothing is undefined, not 0."""
    mass = xp.sum(xp.abs(s), axis=-1, keepdims=keepdims)
    return xp.where(mass == 0, math.nan, mass)


def _check_rows(xp: Any, s: Array) -> None:
    """Refuse negative weights and rows that sum neither to one nor to zero. NaN passes, and comes out as NaN."""
    total = xp.sum(s, axis=-1)
    error = xp.where(total == 0, 0.0, xp.abs(total - 1.0))
    tolerance = 1e-6 + 8 * float(xp.finfo(s.dtype).eps)
    for bad, got in ((s < 0, "a negative weight"), (error > tolerance, "a row that does not sum to one")):
        if concrete(xp.any(bad)):
            raise InputError(
                "rows that are not distributions",
                got=got,
                expected=f"non-negative rows with sum 1 (± {tolerance:.1g}), or all zero",
                fix="normalize them with metrics.shares, or declare the rows with scores=NAME",
            )
