"""How flows end: the coordinate that leads at last, when it takes the lead for good, and whether that is certain.

For softmax, the value model and a loss of the margin, a coordinate that leads both u and s does so for ever: in path
time u_w' - u_j' = ‖β*‖²(s_w - s_j) ≥ 0 and a_w' - a_j' = s_w(u_w - z) - s_j(u_j - z) ≥ 0. So a winner is certain once
it leads both. It is the part of Theorem 3.2 of Varre, Rofin, Flammarion (2026), arXiv:2603.06248, that needs no order
among the losers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polariscope.flow import path_engine
from polariscope.flow.ordinary_time import start_weights
from polariscope.flow.problem import Problem, read_problem
from polariscope.flow.result import Result
from polariscope.flow.solver import solve_many
from polariscope.flow.ties import leader
from polariscope.flow.times import untimed
from polariscope.flow.tracks import norm_of

RTOL = 1e-9
TIE = 10 * RTOL
"""Weights closer than this at the last time count as tied."""
SAME = 1e-12
"""Relative difference below which two coordinates start tied: rounding would decide between them."""
LOOKS, FAR_LOOKS, FINER = 31, 9, 10
"""Looks at a flow early and late, and between the two at which the winner is first seen to lead for good."""


@dataclass(frozen=True)
class Outcome:
    """How a flow ends.

    Attributes:
        winner: the coordinate with the largest weight at the last time; -1 for a tie, or a flow that did not get there.
        log_t: log t from which on it leads s, by linear interpolation between looks; -inf if it does at all t > 0, from
            a tie at t = 0 for instance, NaN without a winner.
        certain: whether the winner is known to win for ever: it leads u and s at the last time and the theorem above
            applies, or nothing moves any more.
        status: of the flow.
    """

    winner: int
    log_t: float
    certain: bool
    status: str


def outcomes(problems: Sequence[Mapping[str, Any]], log_t: Any = None) -> list[Outcome]:
    """How flows end. Arguments as `who_wins_many`; a target is not needed.

    A lead that is lost and won back between two looks goes unseen.
    """
    timed = [untimed(p) | {"log_t": looks(p) if log_t is None else log_t} for p in problems]
    read = [read_problem(p) for p in timed]
    results = solve_many(timed, rtol=RTOL)
    winners = [_final(*pair) for pair in zip(read, results, strict=True)]
    between = {i: _bracket(read[i], results[i], w) for i, w in enumerate(winners) if w >= 0}
    settled = {i: low for i, (low, _) in between.items()}
    unsettled = [i for i, (low, high) in between.items() if low < high]
    if unsettled:
        # All of them once more, most at one look: a list of the same length needs no new compilation.
        times = [_finer(*between[i]) if i in unsettled else one.log_t[:1] for i, one in enumerate(read)]
        finer = solve_many([p | {"log_t": t} for p, t in zip(timed, times, strict=True)], rtol=RTOL)
        settled |= {i: _crossing(read[i], finer[i], winners[i], between[i][0]) for i in unsettled}
    return [
        Outcome(w, settled.get(i, np.nan), w >= 0 and _certain(read[i], results[i], w), results[i].status)
        for i, w in enumerate(winners)
    ]


def looks(problem: Mapping[str, Any]) -> np.ndarray:
    """When to look at a flow, as log t.

    In path time from -6 to 24, then at equal ratios to 1000·max(1, ‖β*‖). In ordinary time at equal ratios over the
    four decades before the last time of the problem.
    """
    read = read_problem({"t": [1.0], **untimed(problem)})
    if not path_engine.serves(read):
        last = read_problem(problem).log_t[-1]
        return np.linspace(last - np.log(1e4), last, LOOKS)
    far = np.geomspace(24.0, 1e3 * max(1.0, norm_of(read)), FAR_LOOKS)
    return np.append(np.linspace(-6.0, 24.0, LOOKS)[:-1], far)


def _final(problem: Problem, result: Result) -> int:
    return winner_of(problem, result.s[-1]) if result.complete else -1


def winner_of(problem: Problem, s: np.ndarray) -> int:
    """The coordinate with the largest of the weights s (n,); -1 for a tie, with coordinates that started tied too."""
    winner = visible_leader(problem, s, TIE)
    return -1 if winner < 0 or tied_with(problem, winner) else winner


def tied_with(problem: Problem, winner: int) -> list[int]:
    """Visible coordinates that start as the winner does, but for rounding.

    Equal are their logits, what else the model has for a key and, in path time, u, else their columns of V.
    """
    needs, parameters = problem.model.needs, problem.parameters
    rows = [(problem.V0.T @ problem.data["target"]) if path_engine.serves(problem) else problem.V0.T]
    rows += [problem.model.logits(parameters), *(parameters[key] for key, shape in needs.items() if shape[0] == "n")]
    tables = [x.reshape(len(x), -1) for x in rows]
    same = [np.abs(x - x[winner]).max(axis=1) <= SAME * np.abs(x).max() for x in tables]
    return [i for i in np.flatnonzero(np.all([problem.where, *same], axis=0)).tolist() if i != winner]


def _lead(s: np.ndarray, winner: int) -> np.ndarray:
    """s_w - max of the others."""
    return s[..., winner] - np.delete(s, winner, axis=-1).max(axis=-1, initial=-np.inf)


def visible_leader(problem: Problem, values: np.ndarray, tolerance: float = 0.0) -> int:
    """The visible key with the largest of ``values`` (n,); -1 for a tie."""
    return int(leader(np.where(problem.where, values, -np.inf), tolerance))


def _bracket(problem: Problem, result: Result, winner: int) -> tuple[float, float]:
    """The last look at which the winner does not lead (-inf: the start) and the next; -inf twice if it always leads."""
    behind = np.flatnonzero(_lead(np.vstack([start_weights(problem), result.s]), winner) <= 0)
    if len(behind) == 0:
        return -np.inf, -np.inf
    looked = np.append(-np.inf, result.log_t)  # the start comes before the first look
    return float(looked[behind[-1]]), float(looked[behind[-1] + 1])


def _finer(low: float, high: float) -> np.ndarray:
    return np.linspace(max(low, high - 10.0), high, FINER)


def _crossing(problem: Problem, result: Result, winner: int, low: float) -> float:
    """log t at which the winner takes the lead between the looks of a result, which begin after ``low``.

    If it leads at all of them the first; but after the start (low = -inf) by interpolation in t from there, where it is
    behind, or tied: then it leads at all t > 0.
    """
    lead, log_t = _lead(result.s, winner), result.log_t
    behind = np.flatnonzero(lead <= 0)
    if len(behind) == 0 and low == -np.inf:
        first = _lead(start_weights(problem), winner)
        return float(log_t[0] + np.log(-first / (lead[0] - first))) if first < -SAME else -np.inf
    if len(behind) == 0 or behind[-1] == len(lead) - 1:
        return float(log_t[0 if len(behind) == 0 else -1])
    m = behind[-1]
    return float(log_t[m] - lead[m] * (log_t[m + 1] - log_t[m]) / (lead[m + 1] - lead[m]))


def _certain(problem: Problem, result: Result, winner: int) -> bool:
    if result.status == "converged":
        return True
    softmax = getattr(problem.scores, "name", "") == "softmax"
    return bool(
        softmax
        and path_engine.serves(problem)
        and result.u is not None
        and visible_leader(problem, result.u[-1]) == winner
    )
