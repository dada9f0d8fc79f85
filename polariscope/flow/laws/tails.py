"""Normalized maps f(a)/Σf(a) with exponential tails, logistic loss: 1 - max s falls like 1/(log t)²."""

from functools import partial

import numpy as np

from polariscope.flow.checks import rate_constant, remainder
from polariscope.flow.laws._law import LINEAR, Law, Series, flow_at, only_for
from polariscope.flow.problem import Problem
from polariscope.flow.result import Result
from polariscope.flow.tracks import norm_of

LIMITS = {"softmax": 1.0, "elu-normalized": 0.0, "sigmoid-normalized": 0.0}
"""f'(a_w)/Σf at the winner, in the end."""


def late(problem: Problem) -> Result:
    """The flow from log t = 10² to 10⁸, in units of ‖β*‖ where that is more than 1, (61,) times."""
    return flow_at(problem, max(1.0, norm_of(problem)) * np.geomspace(1e2, 1e8, 61))


def split(result: Result, norm: float) -> tuple[int, np.ndarray, np.ndarray]:
    """The winner w at the last time, the other weights, (k, n - 1), and their gaps (u_w - u_j)/‖β*‖."""
    assert result.u is not None
    w = int(np.argmax(np.where(np.isnan(result.s[-1]), 0.0, result.s[-1])))
    return w, np.delete(result.s, w, axis=1), (result.u[:, [w]] - np.delete(result.u, w, axis=1)) / norm


def lead_is_shared(s: np.ndarray) -> bool:
    """Whether the two largest of s, (n,), are equal."""
    top = np.sort(s)[-2:]
    return bool(top[0] == top[-1]) and len(s) > 1


def series(problem: Problem, result: Result, limit: float) -> Series | str:
    """1 - max s beside c‖β*‖²/(log t)², and beside 2/((κ² + 1/N) g²) from the state.

    κ = f'(a_w)/Σf is read off the pullback: (Jᵀg)_w = -κ Σ_j s_j for g = 1 - e_w. N = (Σs_j)²/Σs_j² is the effective
    number of losers and g their mean gap.
    """
    if lead_is_shared(result.s[-1]):
        return "coordinates that start tied share the lead"
    norm, n = norm_of(problem), len(problem.a0)
    w, losers, gaps = split(result, norm)
    rest = remainder(result.s)
    others = np.where(np.arange(n) == w, 0.0, 1.0) + np.zeros_like(result.a)
    kappa = -problem.scores.vjp(result.a, others)[:, w] / rest
    number = losers.sum(axis=1) ** 2 / (losers**2).sum(axis=1)
    gap = (losers * gaps).sum(axis=1) / losers.sum(axis=1)
    predicted = rate_constant(n, limit) * (norm / result.log_t) ** 2
    refined = 2 / ((kappa**2 + 1 / number) * gap**2)
    note = f"{number[-1]:.4g} of {n - 1} losers count; κ = {kappa[-1]:.4g}"
    return Series(result.log_t, rest, predicted, refined, np.log(result.log_t), np.log(rest), -2.0, note)


def law(scores: str) -> Law:
    """The law of one of these maps."""
    constant = "2(1 - 1/n)" if LIMITS[scores] else "2(n - 1)"
    return Law(
        scores,
        f"1 - max s = {constant}‖β*‖²/(log t)² as t → ∞",
        only_for(scores=(scores,), of=LINEAR),
        late,
        partial(series, limit=LIMITS[scores]),
        loose=0.25,
    )


SOFTMAX, ELU, SIGMOID_NORMALIZED = (law(name) for name in LIMITS)
