"""Sparse score maps: sparsemax and entmax-1.5, exactly, by sorting.

    s = max(x − τ, 0)ᵖ, x = a/p, with the threshold τ for which Σs = 1;   p = 1 is sparsemax, p = 2 is entmax-1.5.

Key k has weight if and only if Σⱼ max(xⱼ − xₖ, 0)ᵖ < 1, which is tested on the sorted row with two running sums. On the
support the threshold is a formula; it is taken there anew, with centred sums, so that autodiff sees no sorting. With
q = max(x − τ, 0)ᵖ⁻¹, which for p = 1 is the indicator of the support,

    J = diag(q) − q qᵀ/Σq,   Jᵀg = q ∘ (g − ⟨q, g⟩/Σq).

Logits are measured from the largest visible one. No weight is left 1 below it, so everything at and beyond `FLOOR` is
moved there: squares do not overflow, and rounding cannot bring hidden keys back. Half precision is computed in single:
in bfloat16 256 + 1 = 256, and rows are longer.
"""

from dataclasses import dataclass
from typing import Any

from polariscope.scores import _stable as functions
from polariscope.scores._base import Array, Properties, ScoreMap, hide

FLOOR = -2.0
"""A value of x, measured from the largest, that is safely without weight."""


@dataclass(frozen=True)
class Sparse(ScoreMap):
    """s = max(a/p − τ, 0)ᵖ, the α-entmax with α = 1 + 1/p.

    Args:
        power: p, 1 or 2.
    """

    power: int

    def _weights(self, xp: Any, a: Array, visible: Array | None) -> Array:
        return xp.astype(self._roots(xp, a, visible) ** self.power, a.dtype)

    def _pullback(self, xp: Any, a: Array, s: Array, g: Array, visible: Array | None) -> Array:
        q = self._roots(xp, a, visible)
        if self.power == 1:
            q = xp.where(q > 0, 1.0, q)  # NaN stays NaN
        q = hide(xp, q, visible)
        total = xp.sum(q, axis=-1, keepdims=True)
        mean = xp.sum(q * g, axis=-1, keepdims=True) / xp.where(total == 0, 1.0, total)
        return xp.astype(q * (g - mean), a.dtype)

    def _kinks(self, xp: Any, a: Array, visible: Array | None) -> Array:
        return a[..., :0] if self.properties.smooth else self.power * self._distances(xp, a, visible)

    def _roots(self, xp: Any, a: Array, visible: Array | None) -> Array:
        """max(x − τ, 0)."""
        return functions.relu(xp, self._distances(xp, a, visible))

    def _distances(self, xp: Any, a: Array, visible: Array | None) -> Array:
        """x − τ, from below 0 for keys without weight; what stands at hidden keys means nothing."""
        x = (xp.astype(a, xp.float32) if xp.finfo(a.dtype).bits < 32 else a) / self.power
        shown = x
        if visible is not None:
            empty = ~xp.any(visible, axis=-1, keepdims=True)
            shown = hide(xp, x, visible | empty, fill=float("-inf"))
        x = x - xp.max(shown, axis=-1, keepdims=True)
        near = hide(xp, xp.where(x <= FLOOR, FLOOR, x), visible, fill=FLOOR)
        return x - self._threshold(xp, near, ~(near < self._smallest(xp, near)))

    def _smallest(self, xp: Any, x: Array) -> Array:
        """The smallest x that has weight, (…, 1), for rows whose largest is 0."""
        x = xp.sort(x, axis=-1, descending=True)
        k = xp.cumulative_sum(xp.ones_like(x), axis=-1)
        beyond = xp.cumulative_sum(x, axis=-1) - k * x  # Σ over the k largest of xⱼ − xₖ
        if self.power == 2:
            beyond = xp.cumulative_sum(x * x, axis=-1) - x * (2.0 * beyond + k * x)
        return xp.min(xp.where(beyond < 1, x, 0.0), axis=-1, keepdims=True)

    def _threshold(self, xp: Any, x: Array, support: Array) -> Array:
        """τ with Σ (x − τ)ᵖ = 1 over the support, (…, 1)."""
        count = xp.sum(xp.where(support, xp.ones_like(x), 0.0), axis=-1, keepdims=True)
        mean = xp.sum(xp.where(support, x, 0.0), axis=-1, keepdims=True) / count
        if self.power == 1:
            return mean - 1.0 / count
        centred = xp.where(support, x - mean, 0.0)
        # The root is at least 1/count: roots of weights that sum to one have a sum of at least one.
        return mean - xp.sqrt((1.0 - xp.sum(centred * centred, axis=-1, keepdims=True)) / count)


sparsemax = Sparse(
    name="sparsemax",
    summary="max(a − τ, 0) with Σ = 1: the closest distribution to a",
    properties=Properties(sums_to_one=True, non_negative=True, shift_invariant=True),
    source="Martins, Astudillo (2016), arXiv:1602.02068",
    power=1,
)

entmax_1_5 = Sparse(
    name="entmax-1.5",
    summary="max(a/2 − τ, 0)² with Σ = 1",
    properties=Properties(sums_to_one=True, non_negative=True, shift_invariant=True, smooth=True),
    source="Peters, Niculae, Martins (2019), arXiv:1905.05702",
    power=2,
)
