"""Elementwise score maps sⱼ = f(aⱼ): keys do not compete, so the Jacobian diag f'(a) has no mean-centring term."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from polariscope.errors import InputError
from polariscope.scores import _stable as functions
from polariscope.scores._base import Array, Properties, ScoreMap, at_zero


@dataclass(frozen=True)
class Elementwise(ScoreMap):
    """sⱼ = f(aⱼ), Jᵀg = f'(a) ∘ g.

    Args:
        f: (namespace, a) → f(a).
        slope: (namespace, a) → f'(a); 0 at the kink of relu.
    """

    f: Callable[[Any, Array], Array]
    slope: Callable[[Any, Array], Array]

    def _weights(self, xp: Any, a: Array, visible: Array | None) -> Array:
        return self.f(xp, a)

    def _pullback(self, xp: Any, a: Array, s: Array, g: Array, visible: Array | None) -> Array:
        return self.slope(xp, a) * g

    def _kinks(self, xp: Any, a: Array, visible: Array | None) -> Array:
        return at_zero(a, self.properties)


def _shifted(xp: Any, a: Array, bias: float) -> Array:
    return functions.sigmoid(xp, a + bias)


def _shifted_slope(xp: Any, a: Array, bias: float) -> Array:
    return functions.sigmoid(xp, a + bias) * functions.sigmoid(xp, -(a + bias))


def sigmoid_with_bias(bias: float) -> Elementwise:
    """The elementwise sigmoid 1/(1 + exp(−(a + b))) with a constant bias b.

    Args:
        bias: b. With b = −log n, n the (maximum) number of keys, a row of small logits sums to about n/(n + 1).

    Source: Ramapuram et al. (2024), Theory, Analysis, and Best Practices for Sigmoid Self-Attention, arXiv:2409.04431.
    """
    if not isinstance(bias, int | float) or not math.isfinite(bias):
        raise InputError("bias of the sigmoid", got=repr(bias), expected="a finite number", fix="try -math.log(n)")
    return Elementwise(
        name="sigmoid" if bias == 0 else f"sigmoid{bias:+g}",
        summary="1 / (1 + exp(−a)), elementwise" if bias == 0 else f"1 / (1 + exp(−(a {bias:+g}))), elementwise",
        properties=Properties(non_negative=True, full_support=True, smooth=True),
        source="Ramapuram et al. (2024), arXiv:2409.04431",
        f=partial(_shifted, bias=float(bias)),
        slope=partial(_shifted_slope, bias=float(bias)),
    )


sigmoid = sigmoid_with_bias(0.0)

relu_elementwise = Elementwise(
    name="relu-elementwise",
    summary="max(a, 0), elementwise",
    properties=Properties(non_negative=True),
    source="Wortsman et al. (2023), arXiv:2309.08586; their division by the sequence length left out",
    f=functions.relu,
    slope=functions.step,
)

identity = Elementwise(
    name="identity",
    summary="a itself: linear attention without a feature map",
    properties=Properties(smooth=True),
    source="Gu et al. (2024), arXiv:2410.10781 (their linear attention without normalization)",
    f=functions.identity,
    slope=functions.one,
)
