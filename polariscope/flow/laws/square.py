"""The map a²/Σa², logistic loss: the losers fall like exp(-2τ²/Σa²)."""

import numpy as np

from polariscope.flow.laws._law import Law, Series, flow_at, only_for
from polariscope.flow.laws.tails import lead_is_shared, split
from polariscope.flow.path_engine import norm_of
from polariscope.flow.problem import Problem
from polariscope.flow.result import Result


def late(problem: Problem) -> Result:
    """The flow from as good as t = 0 to about ‖β*‖τ = 40 √Σa², closely spaced."""
    last = 40 * np.linalg.norm(problem.a0) + 2 * len(problem.a0)
    log_t = max(1.0, norm_of(problem)) * np.linspace(-5, last, 801)
    return flow_at(problem, np.append(-40.0, log_t))


RELIABLE = 1e-12
"""Weights above it are known to some digits; below, a is lost in the absolute tolerance of the steps."""


def log_weights(problem: Problem, result: Result) -> np.ndarray:
    """log(s_j/s_w) of the losers, (k, n - 1): from s, and where s is too small by Hermite quadrature of
    log(s_j/s_w)' = -4g_j/Σa² from there on.

    The gaps g_j = (u_w - u_j)/‖β*‖ are known to full relative accuracy, with their slopes s_w - s_j, when the weights
    have long been too small to be numbers. The quadrature is of fourth order in the spacing of the times.
    """
    assert result.tau is not None
    norm = norm_of(problem)
    w, losers, gaps = split(result, norm)
    slopes = result.s[:, [w]] - losers
    h = norm * np.diff(result.tau)[:, None]
    pieces = h / 2 * (gaps[1:] + gaps[:-1]) + h**2 / 12 * (slopes[:-1] - slopes[1:])
    integral = np.concatenate([np.zeros_like(gaps[:1]), np.cumsum(pieces, axis=0)])
    logs = -4 / np.sum(problem.a0**2) * integral
    with np.errstate(divide="ignore"):
        measured = np.log(np.abs(losers)) - np.log(result.s[:, [w]])
    known = np.minimum.accumulate(losers > RELIABLE, axis=0)
    last = known.sum(axis=0) - 1
    each = np.arange(losers.shape[1])
    return np.where(known, measured, logs - logs[last, each] + measured[last, each])


def series(problem: Problem, result: Result) -> Series | str:
    """-log of the second weight beside 2(‖β*‖τ)²/Σa², and beside 2g²/Σa²."""
    reached = np.isfinite(result.s).all(axis=1)
    if not reached.all():  # explicit steps give out late on, where the decay of the losers is stiff
        result = type(result)(
            **{**vars(result), **{k: getattr(result, k)[reached] for k in ("log_t", "tau", "s", "u")}}
        )
    if lead_is_shared(result.s[-1]):
        return "coordinates that start tied share the lead"
    assert result.tau is not None
    total, norm = np.sum(problem.a0**2), norm_of(problem)
    _, _, gaps = split(result, norm)
    logs = log_weights(problem, result)
    second = int(np.argmax(logs[-1]))
    y, gap = -logs[:, second], gaps[:, second]
    predicted, refined = 2 * (norm * result.tau) ** 2 / total, 2 * gap**2 / total
    note = f"Σa² = {total:.4g}; (u_w - u_second)/‖β*‖ = ‖β*‖τ {gap[-1] - norm * result.tau[-1]:+.4g}"
    return Series(result.log_t, y, predicted, refined, gap**2, y, 2 / total, note)


LAW = Law(
    "square",
    "-log s_second = 2g²/Σa² + O(1), g = (u_w - u_second)/‖β*‖ = ‖β*‖τ + const, as t → ∞",
    only_for(scores=("square",), of=("logistic",)),
    late,
    series,
)
