"""The elementwise sigmoid, logistic loss: every weight tends to 1, and nothing polarizes."""

import numpy as np
from scipy.special import expit

from polariscope.flow.laws._law import LINEAR, Law, Series, only_for
from polariscope.flow.laws.tails import late
from polariscope.flow.problem import Problem
from polariscope.flow.result import Result
from polariscope.flow.tracks import norm_of


def weights(problem: Problem, result: Result) -> Series | str:
    """The mean of 1 - s_i, without cancellation, beside 2n²‖β*‖²/(log t)² and beside the mean of 2‖β*‖²/u_i²."""
    assert result.u is not None
    norm, n = norm_of(problem), len(problem.a0)
    missing = expit(-result.a).mean(axis=1)
    predicted = 2 * (n * norm / result.log_t) ** 2
    refined = (2 * (norm / result.u) ** 2).mean(axis=1)
    return Series(result.log_t, missing, predicted, refined, np.log(result.log_t), np.log(missing), -2.0)


def entropy(problem: Problem, result: Result) -> Series | str:
    """log n - H of s/Σs, without cancellation, beside half the variance of 2‖β*‖²/u_i²."""
    assert result.u is not None
    missing = expit(-result.a)
    mean = missing.mean(axis=1, keepdims=True)
    x = (mean - missing) / (1 - mean)
    deficit = np.where(np.abs(x) < 1e-4, x**2 / 2 - x**3 / 6, (1 + x) * np.log1p(x) - x).mean(axis=1)
    if not deficit[-1]:
        return "the coordinates start equal and stay equal"
    predicted = np.var(2 * (norm_of(problem) / result.u) ** 2, axis=1) / 2
    return Series(result.log_t, deficit, predicted, None, np.log(result.log_t), np.log(deficit), -6.0)


_APPLIES = only_for(scores=("sigmoid",), of=LINEAR)
WEIGHTS = Law("sigmoid", "1 - s_i = 2n²‖β*‖²/(log t)² for every i as t → ∞", _APPLIES, late, weights)
ENTROPY = Law(
    "sigmoid-entropy", "log n - H(s/Σs) = ½ Var(2‖β*‖²/u_i²), of the order (log t)⁻⁶", _APPLIES, late, entropy
)
