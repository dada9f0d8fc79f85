"""Score maps that are a softmax of a transformed logit: s = softmax(h(a)), h increasing, that is f/Σf with f = exp h.

Taking f in the log domain keeps rows exact where f itself under- or overflows. With h' the slope of h,

    Jᵀg = h'(a) ∘ s ∘ (g − ⟨s, g⟩).

With a null option, of h = 0 and value 0, the weights of the keys sum to less than one and Jᵀg has the same form. The
null option counts when the largest h is taken out: shifting by the largest key alone and then adding a literal 1, as
some code does, is another map, which ignores shifts.

Deviation: the reference code divides by Σf + ε (1e-9 or 1e-8 in networks); we have no ε, so rows sum to one also when
every f is far below it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from array_api_compat import is_torch_namespace

from polariscope.scores import _stable as functions
from polariscope.scores._base import Array, Properties, ScoreMap, covariance, hide


@dataclass(frozen=True)
class Exponential(ScoreMap):
    """s = softmax(h(a)).

    Args:
        h: (namespace, a) → h(a), finite for finite a.
        slope: (namespace, a) → h'(a).
        null: whether there is one more option, always visible, of h = 0, whose weight is left out.
    """

    h: Callable[[Any, Array], Array]
    slope: Callable[[Any, Array], Array]
    null: bool = False

    def _weights(self, xp: Any, a: Array, visible: Array | None) -> Array:
        x = self.h(xp, a)
        if self.null:
            x = hide(xp, x, visible, fill=float("-inf"))
            return _softmax(xp, xp.concat([x, xp.zeros_like(x[..., :1])], axis=-1))[..., :-1]
        if visible is not None:
            # A row without a visible key stays finite here, so that no −∞ − (−∞) enters the backward pass.
            empty = ~xp.any(visible, axis=-1, keepdims=True)
            x = hide(xp, x, visible | empty, fill=float("-inf"))
        return _softmax(xp, x)

    def _pullback(self, xp: Any, a: Array, s: Array, g: Array, visible: Array | None) -> Array:
        return self.slope(xp, a) * s * covariance(xp, s, g)


def _softmax(xp: Any, x: Array) -> Array:
    if is_torch_namespace(xp):
        return xp.softmax(x, dim=-1)  # the same numbers from one fused kernel: training and probing live on it
    e = xp.exp(x - xp.max(x, axis=-1, keepdims=True))
    return e / xp.sum(e, axis=-1, keepdims=True)


def _sigmoid_of_minus(xp: Any, a: Array) -> Array:
    return functions.sigmoid(xp, -a)


_NORMALIZED = Properties(sums_to_one=True, non_negative=True, full_support=True, smooth=True)

softmax = Exponential(
    name="softmax",
    summary="exp(a) / Σ exp(a)",
    properties=Properties(sums_to_one=True, non_negative=True, shift_invariant=True, full_support=True, smooth=True),
    source="Vaswani et al. (2017), arXiv:1706.03762",
    h=functions.identity,
    slope=functions.one,
)

softmax_off_by_one = Exponential(
    name="softmax-off-by-one",
    summary="exp(a) / (1 + Σ exp(a))",
    properties=Properties(non_negative=True, full_support=True, smooth=True),
    source="Miller (2023), Attention Is Off By One; the zero sink of Xiao et al. (2023), arXiv:2309.17453",
    h=functions.identity,
    slope=functions.one,
    null=True,
)

sigmoid_normalized = Exponential(
    name="sigmoid-normalized",
    summary="sigmoid(a) / Σ sigmoid(a)",
    properties=_NORMALIZED,
    source="Gu et al. (2024), arXiv:2410.10781; their ε = 1e-8 on the sum left out",
    h=functions.log_sigmoid,
    slope=_sigmoid_of_minus,
)

elu_normalized = Exponential(
    name="elu-normalized",
    summary="(elu(a) + 1) / Σ (elu(a) + 1)",
    properties=_NORMALIZED,
    source="Gu et al. (2024), arXiv:2410.10781; their ε = 1e-8 on the sum left out, elu + 1 without cancellation",
    h=functions.log_elu_plus_one,
    slope=functions.log_elu_plus_one_slope,
)
