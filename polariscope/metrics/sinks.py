"""Attention sinks after Gu et al. (2024), When Attention Sink Emerges in Language Models, arXiv:2410.10781.

They print SinkRate in percent; here it is a fraction. Seven other numbers are called sink rate in public code; none of
them is this one.
"""

import math

from polariscope.errors import InputError
from polariscope.metrics._rows import concrete, weights
from polariscope.scores._base import Array, namespace


def column_means(A: Array, skip_rows: int = 0) -> Array:
    """The mean attention αₖ that key k gets from the queries that can see it, in a causal map.

        αₖ = Σ_{i ≥ k} A[i, k] / (T − k + 1),   k = 1 … T

    Args:
        A: causal attention maps (…, T, T), queries × keys, 0 above the diagonal. For weights that are not
            distributions, `shares` of them (Gu et al.'s proxy).
        skip_rows: leave out the first queries; 0 is Gu et al.'s definition, in which the first row (always 1 for
            softmax) is kept, so that α₁ ≥ 1/T.

    Returns:
        α (…, T). NaN for keys that no remaining query sees, which happens for none as long as skip_rows < T.

    Raises:
        InputError: for maps that are not square or not causal, and for skip_rows outside 0 … T − 1.

    The last columns are means of very few queries: a head that attends to itself alone has αₖ = 1/(T − k + 1).
    """
    xp = weights(A)
    T = A.shape[-1]
    if A.ndim < 2 or A.shape[-2] != T:
        raise InputError("attention map A", got=f"shape {tuple(A.shape)}", expected="(…, T, T)", fix="give whole maps")
    if not 0 <= skip_rows < T:
        raise InputError("skip_rows", got=skip_rows, expected=f"0 to {T - 1}", fix="leave a query to average over")
    if concrete(xp.any(xp.triu(A, k=1) != 0)):
        raise InputError(
            "attention map A",
            got="weight above the diagonal",
            expected="a causal map, queries × keys",
            fix="check the order of the axes; of other maps take the mean over queries",
        )
    queries = xp.flip(xp.cumulative_sum(xp.ones_like(A[..., 0, :]), axis=-1), axis=(-1,))
    seen = xp.where(queries > T - skip_rows, T - skip_rows, queries)
    return xp.sum(A[..., skip_rows:, :], axis=-2) / seen


def sink_rate(alpha: Array, eps: float = 0.3, axis: int | tuple[int, ...] | None = None) -> Array:
    """The fraction of αs above ε: the indicator first, then the mean.

        SinkRate(ε) = mean of 1{α > ε}

    Args:
        alpha: column means α of one key, `column_means(A)[..., k]`, for example (samples, layers, heads).
        eps: ε, the threshold; the comparison is strict. 0.3 is Gu et al.'s.
        axis: what to average over; None: everything, as Gu et al.; the axis of the samples: one rate per head.

    Returns:
        Fractions in [0, 1]. NaN if any α averaged over is NaN.

    Raises:
        InputError: for an ε outside 0 … 1 and for anything that is not a floating-point array.

    The rate falls with the length T, the faster the larger ε: never compare different T.
    """
    xp = namespace("column means α", alpha)
    if 0 in alpha.shape:
        raise InputError(
            "column means α", got=f"shape {tuple(alpha.shape)}", expected="some", fix="measure a text first"
        )
    if not 0 <= eps <= 1:
        raise InputError("threshold eps", got=eps, expected="a number from 0 to 1", fix="0.3 is the usual one")
    indicator = xp.where(alpha > eps, xp.ones_like(alpha), 0.0)
    return xp.mean(xp.where(xp.isnan(alpha), math.nan, indicator), axis=axis)
