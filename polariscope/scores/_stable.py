"""Scalar functions on the array API that neither overflow nor cancel, and whose autodiff is exact at 0.

Each branch of a ``where`` gets an argument that is safe for it. ``-|a|`` and ``min(a, 0)`` are written as ``where``
too: autodiff of ``abs``, ``minimum`` and ``maximum`` at the tie gives half or none of the derivative. Comparisons are
arranged so that NaN falls into the branch that returns it.
"""

from typing import Any

from polariscope.scores._base import Array


def identity(xp: Any, a: Array) -> Array:
    """a."""
    return a


def one(xp: Any, a: Array) -> Array:
    """1, the derivative of the identity."""
    return xp.ones_like(a)


def sigmoid(xp: Any, a: Array) -> Array:
    """1/(1 + e^−a), with full relative precision for large negative a."""
    positive = a >= 0
    e = xp.exp(xp.where(positive, -a, a))
    return xp.where(positive, 1.0, e) / (1.0 + e)


def log_sigmoid(xp: Any, a: Array) -> Array:
    """log sigmoid(a) = min(a, 0) − log(1 + e^−|a|)."""
    positive = a >= 0
    return xp.where(positive, 0.0, a) - xp.log1p(xp.exp(xp.where(positive, -a, a)))


def log_elu_plus_one(xp: Any, a: Array) -> Array:
    """log(elu(a) + 1): log(1 + a) for a > 0, else a itself; elu(a) + 1 computed literally cancels below −15."""
    positive = a > 0
    return xp.where(positive, xp.log1p(xp.where(positive, a, 0.0)), a)


def log_elu_plus_one_slope(xp: Any, a: Array) -> Array:
    """d/da log(elu(a) + 1): 1/(1 + a) for a > 0, else 1."""
    return 1.0 / (1.0 + xp.where(a > 0, a, xp.zeros_like(a)))


def relu(xp: Any, a: Array) -> Array:
    """max(a, 0), with derivative 0 at 0."""
    return xp.where(a <= 0, 0.0, a)


def step(xp: Any, a: Array) -> Array:
    """1 for a > 0, else 0: the derivative of relu."""
    return xp.where(a > 0, xp.ones_like(a), 0.0)
