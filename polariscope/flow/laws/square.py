"""The map a²/Σa², logistic loss: the losers fall like exp(-2τ²/Σa²)."""

import numpy as np

from polariscope.flow.laws._law import LINEAR, Law, Series, flow_at, only_for
from polariscope.flow.laws.tails import lead_is_shared, split
from polariscope.flow.problem import Problem
from polariscope.flow.result import Result
from polariscope.flow.tracks import norm_of


def late(problem: Problem) -> Result:
    """The flow to where the losers' weights are about 10⁻⁶⁰⁰ and their logits are numbers still."""
    last = 26 * np.linalg.norm(problem.a0) + 2 * len(problem.a0)
    return flow_at(problem, max(1.0, norm_of(problem)) * np.linspace(1, last, 201))


def log_weights(result: Result, w: int) -> np.ndarray:
    """log(s_j/s_w) = 2 log|a_j/a_w| of the losers, (k, n - 1); NaN where a_j is no normal number."""
    a = np.abs(result.a)
    known = np.where(a > np.finfo(float).tiny, a, np.nan)
    return 2 * np.log(np.delete(known, w, axis=1) / known[:, [w]])


def series(problem: Problem, result: Result) -> Series | str:
    """-log of the second weight beside 2(‖β*‖τ)²/Σa², and beside 2g²/Σa²."""
    if lead_is_shared(result.s[-1]):
        return "coordinates that start tied share the lead"
    assert result.tau is not None
    total, norm = np.sum(problem.a0**2), norm_of(problem)
    w, _, gaps = split(result, norm)
    second = int(np.argmin(gaps[-1]))
    y, gap, way = -log_weights(result, w)[:, second], gaps[:, second], norm * result.tau
    note = f"Σa² = {total:.4g}; (u_w - u_second)/‖β*‖ = ‖β*‖τ {gap[-1] - way[-1]:+.4g}"
    return Series(result.log_t, y, 2 * way**2 / total, 2 * gap**2 / total, gap**2, y, 2 / total, note)


LAW = Law(
    "square",
    "-log s_second = 2g²/Σa² + O(1), g = (u_w - u_second)/‖β*‖ = ‖β*‖τ + const, as t → ∞",
    only_for(scores=("square",), of=LINEAR),
    late,
    series,
)
