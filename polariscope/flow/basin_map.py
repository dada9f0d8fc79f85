"""Basins: which start lets which coordinate win, over a plane of starts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polariscope.errors import InputError
from polariscope.flow.arrays import array
from polariscope.flow.outcomes import outcomes
from polariscope.flow.problem import Problem, read_problem
from polariscope.flow.times import untimed

ALONG = ("gaps", "a", "u")


@dataclass(frozen=True, eq=False)
class Basins:
    """Winners over a grid of starts, m₁ by m₂.

    Attributes:
        axes: the coordinates (i, j) whose start varies.
        along: gaps | a | u.
        grid: the values along both axes, (m₁,) and (m₂,).
        winner: the coordinate that wins, (m₁, m₂); -1 for a tie, or a flow that did not get to the last time.
        log_t: log t from which on it leads s, (m₁, m₂); -inf if it does at all t > 0, NaN without a winner.
        certain: whether it is known to win for ever (see `outcomes.Outcome`), (m₁, m₂).
        status: of the flows, (m₁, m₂).
    """

    axes: tuple[int, int]
    along: str
    grid: tuple[np.ndarray, np.ndarray]
    winner: np.ndarray
    log_t: np.ndarray
    certain: np.ndarray
    status: np.ndarray

    @property
    def message(self) -> str:
        """How many cells have no winner, and how many winners are not certain, in a sentence."""
        solved = np.isin(self.status, ("ok", "converged"))
        ties, unsure = int((solved & (self.winner < 0)).sum()), int(((self.winner >= 0) & ~self.certain).sum())
        return (
            f"Of {self.winner.size} starts {ties} are ties and {int((~solved).sum())} were not solved to the end; "
            f"{unsure} winners lead at the last time but are not certain to win for ever."
        )


def basins(
    problem: Mapping[str, Any], axes: Sequence[int] = (0, 1), *, grid: Sequence[Any], along: str = "gaps",
    log_t: Any = None,
) -> Basins:  # fmt: skip
    """The winner of gradient flow for every start of a grid.

    Args:
        problem: as for `solve`; everything that does not vary starts as it says.
        axes: two coordinates, i and j.
        grid: two lists of numbers.
        along: "gaps", the grid holds a_i - a_j and u_i - u_j, with the means of the two kept; "a", it holds a_i and
            a_j; "u", it holds u_i and u_j. u = Vᵀβ* is changed by moving columns of V along the target β*.
        log_t: looks at the flows, increasing; by default those of `outcomes.looks`.

    Raises:
        InputError: as `solve`; for axes that are not two coordinates, grids that are not two lists of numbers, and
            gaps or u where the loss has no target.

    Example:
        >>> found = basins(flow.preset("logistic", n=3), (0, 1), grid=([-1.0, 1.0], [-1.0, 1.0]))
        >>> found.winner.shape
        (2, 2)
    """
    read = read_problem({"t": [1.0], **untimed(problem)})
    i, j = _axes(axes, len(read.a0))
    if along not in ALONG:
        raise InputError("along", got=repr(along), expected=", ".join(ALONG), fix="choose one of those")
    if along != "a" and "target" not in read.data:
        raise InputError("along", got=along, expected="a, for a loss without a target", fix="use along='a'")
    if len(grid) != 2:
        raise InputError("grid", got=f"{len(grid)} parts", expected="two lists of numbers", fix="give one per axis")
    first, second = (array(values, f"grid of axis {k}", 1) for k, values in enumerate(grid))
    starts = [dict(problem) | _start(read, i, j, along, x, y) for x in first for y in second]
    found = outcomes(starts, log_t)
    shape = (len(first), len(second))
    winner, settled, certain, status = (
        np.array([getattr(one, key) for one in found]).reshape(shape)
        for key in ("winner", "log_t", "certain", "status")
    )
    return Basins((i, j), along, (first, second), winner, settled, certain, status)


def _axes(axes: Sequence[int], n: int) -> tuple[int, int]:
    right = len(axes) == 2 and all(isinstance(k, int | np.integer) and 0 <= k < n for k in axes) and axes[0] != axes[1]
    if not right:
        raise InputError("axes", got=repr(axes), expected=f"two different coordinates, 0 to {n - 1}", fix="try (0, 1)")
    return int(axes[0]), int(axes[1])


def _start(problem: Problem, i: int, j: int, along: str, x: float, y: float) -> dict[str, np.ndarray]:
    """V0 and a0 of one start."""
    V0, a0 = problem.V0.copy(), problem.a0.copy()
    if along == "gaps":
        a0[i], a0[j] = _pair(a0[i], a0[j], x)
    elif along == "a":
        a0[i], a0[j] = x, y
    if along != "a":
        target = problem.data["target"]
        u = target @ V0
        wanted = _pair(u[i], u[j], y) if along == "gaps" else (x, y)
        for k, value in zip((i, j), wanted, strict=True):
            V0[:, k] += (value - u[k]) * target / (target @ target)
    return {"V0": V0, "a0": a0}


def _pair(one: float, other: float, gap: float) -> tuple[float, float]:
    """Two numbers with the mean of those given and this gap."""
    mean = (one + other) / 2
    return mean + gap / 2, mean - gap / 2
