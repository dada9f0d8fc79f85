"""Normalized score maps f(a)/Σf(a) with a homogeneous f: relu, L1, sum, square, and the constant.

    s = f(a)/Z, Z = Σf(a);   Jᵀg = (f'(a)/Z) ∘ (g − ⟨s, g⟩)

Only f' = f would be replicator dynamics. As σ(ca) = σ(a) for c > 0, logits are divided by max|a| first, so that a²
neither over- nor underflows.

Where Z = 0 the map is not defined. A row of relu without a positive logit, and an all-zero row of L1 and square, is
*dead*: weights 0, gradient 0, not admissible. The sum has a pole there, on both sides of which weights are unbounded
with opposite signs: NaN. Deviation: the paper's public code divides by Z + 1e-10, which gives the same dead rows,
moves the pole of the sum to Z = −1e-10 and makes rows sum to slightly less than one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from polariscope.scores import _stable as functions
from polariscope.scores._base import Array, Properties, ScoreMap, at_zero, covariance, hide


@dataclass(frozen=True)
class Homogeneous(ScoreMap):
    """s = f(a)/Σf(a).

    Args:
        f: (namespace, a) → f(a), homogeneous of some degree.
        slope: (namespace, a) → f'(a).
        pole: whether Z can vanish in passing (f changes sign), so that Z = 0 gives NaN and not a dead row.
    """

    f: Callable[[Any, Array], Array]
    slope: Callable[[Any, Array], Array]
    pole: bool = False

    def _weights(self, xp: Any, a: Array, visible: Array | None) -> Array:
        x = a / _scale(xp, a)
        return self.f(xp, x) / self._total(xp, x, visible)

    def _pullback(self, xp: Any, a: Array, s: Array, g: Array, visible: Array | None) -> Array:
        scale = _scale(xp, a)
        x = a / scale
        return self.slope(xp, x) / self._total(xp, x, visible) * covariance(xp, s, g) / scale

    def _kinks(self, xp: Any, a: Array, visible: Array | None) -> Array:
        return at_zero(a, self.properties)

    def _total(self, xp: Any, x: Array, visible: Array | None) -> Array:
        """Z over the visible keys; where it is 0, a divisor that gives 0 (dead and empty rows) or NaN (the pole)."""
        z = xp.sum(hide(xp, self.f(xp, x), visible), axis=-1, keepdims=True)
        safe = xp.where(z == 0, 1.0, z)
        if not self.pole:
            return safe
        at_pole = z == 0 if visible is None else (z == 0) & xp.any(visible, axis=-1, keepdims=True)
        return xp.where(at_pole, float("nan"), safe)


def _scale(xp: Any, a: Array) -> Array:
    """max|a| per row, 1 for a row of zeros; NaN and infinity become NaN in a / scale and so reach the whole row."""
    largest = xp.max(xp.abs(a), axis=-1, keepdims=True)
    return xp.where(largest == 0, 1.0, largest)


def _abs(xp: Any, a: Array) -> Array:
    return a * xp.sign(a)  # autodiff of abs at 0 is 1 in JAX and 0 in torch; this is 0 in both


def _sign(xp: Any, a: Array) -> Array:
    return xp.sign(a)


def _square(xp: Any, a: Array) -> Array:
    return a * a


def _twice(xp: Any, a: Array) -> Array:
    return 2.0 * a


def _constant(xp: Any, a: Array) -> Array:
    return xp.where(xp.isnan(a), a, 1.0)  # depends on a in form: NaN passes, autograd has a path, with gradient 0


def _zero(xp: Any, a: Array) -> Array:
    return xp.where(xp.isnan(a), a, 0.0)


_PAPER = "Varre, Rofin, Flammarion (2026), arXiv:2603.06248"

relu = Homogeneous(
    name="relu",
    summary="max(a, 0) / Σ max(a, 0)",
    properties=Properties(sums_to_one=True, non_negative=True),
    source=_PAPER,
    f=functions.relu,
    slope=functions.step,
)

l1 = Homogeneous(
    name="l1",
    summary="|a| / Σ |a|; blind to signs",
    properties=Properties(sums_to_one=True, non_negative=True),
    source=_PAPER,
    f=_abs,
    slope=_sign,
)

total = Homogeneous(
    name="sum",
    summary="a / Σ a; weights may be negative, pole at Σ a = 0",
    properties=Properties(sums_to_one=True, smooth=True),
    source=_PAPER,
    f=functions.identity,
    slope=functions.one,
    pole=True,
)

square = Homogeneous(
    name="square",
    summary="a² / Σ a²; blind to signs",
    properties=Properties(sums_to_one=True, non_negative=True, smooth=True),
    source=_PAPER,
    f=_square,
    slope=_twice,
)

uniform = Homogeneous(
    name="uniform",
    summary="1 / n, n the number of visible keys",
    properties=Properties(sums_to_one=True, non_negative=True, shift_invariant=True, full_support=True, smooth=True),
    source=_PAPER,
    f=_constant,
    slope=_zero,
)
