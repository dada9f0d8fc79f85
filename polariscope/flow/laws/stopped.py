"""The square loss runs along the logistic path and stops at z = ‖β*‖²: longer targets polarize further."""

from typing import Any

import numpy as np

from polariscope.flow.checks import rate_constant, remainder
from polariscope.flow.laws._law import Law, Series, mapping, only_for
from polariscope.flow.laws.tails import lead_is_shared, split
from polariscope.flow.problem import Problem
from polariscope.flow.tracks import norm_of

LENGTHS = np.geomspace(30, 1000, 4)
END = 1e6


def series(problem: Problem, result: Any) -> Series | str:
    """1 - max s at the end, for targets made longer, beside 2(1 - 1/n)/‖β*‖²; beside 2/((1 + 1/N)g²) with the gaps."""
    from polariscope.flow.solver import solve_many

    direction = problem.data["target"] / norm_of(problem)
    ends = solve_many([mapping(problem, target=length * direction) for length in LENGTHS], t=[END])
    if lead_is_shared(ends[-1].s[-1]):
        return "coordinates that start tied share the lead"
    rest = np.array([remainder(end.s[-1]) for end in ends])
    refined = np.array([_refined(end, length) for end, length in zip(ends, LENGTHS, strict=True)])
    predicted = rate_constant(len(problem.a0), 1.0) / LENGTHS**2
    return Series(LENGTHS, rest, predicted, refined, np.log(LENGTHS), np.log(rest), -2.0)


def _refined(end: Any, length: float) -> float:
    _, losers, gaps = split(end, float(length))
    total = losers[-1].sum()
    return float(2 / ((1 + (losers[-1] ** 2).sum() / total**2) * (losers[-1] @ gaps[-1] / total) ** 2))


def _applies(problem: Problem) -> str:
    """The path is the logistic one only for V0 = 0."""
    why = only_for(scores=("softmax",), of=("square",))(problem)
    return why or ("V0 is not 0" if problem.V0.any() else "")


LAW = Law("stopped", "1 - max s at the end = 2(1 - 1/n)/‖β*‖² as ‖β*‖ → ∞, where = ‖β*‖", _applies, None, series)
