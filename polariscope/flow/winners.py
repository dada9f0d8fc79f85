"""Who wins: whether the leader of u, of s, or neither, over one start or many."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import binomtest

from polariscope.errors import InputError
from polariscope.flow.ordinary_time import start_weights
from polariscope.flow.outcomes import SAME, Outcome, outcomes, visible_leader
from polariscope.flow.problem import Problem, read_problem
from polariscope.flow.times import untimed


@dataclass(frozen=True)
class Winner:
    """Who wins a flow, and who led when it started.

    Attributes:
        name: of the problem. outcome: how it ends.
        u_leader, s_leader: the coordinates with the largest u and s at the start; -1 for a tie.
        by: "both", "u", "s" or "neither": which of the two the winner led at the start; "tie" where there is no winner
            or a leader is not unique; "unsolved" for a flow that did not get to the last time.
    """

    name: str
    outcome: Outcome
    u_leader: int
    s_leader: int
    by: str


@dataclass(frozen=True)
class WinnerStatistics:
    """Who wins, over many starts.

    Attributes:
        winners: one for each start.
        counts: starts by `Winner.by`.
        uncertain: starts with a winner that is not certain to win for ever.
    """

    winners: tuple[Winner, ...]
    counts: Mapping[str, int]
    uncertain: int

    def fraction(self, by: str, confidence: float = 0.95) -> tuple[float, float, float, int]:
        """The fraction of wins by the initial leader of "u", of "s" or of "neither", where those leaders differ.

        Returns:
            the fraction, the ends of its Wilson interval, and how many starts it is a fraction of; NaN if of none.

        Source: Wilson (1927), by SciPy.
        """
        among = [w for w in self.winners if w.by not in ("tie", "unsolved") and w.u_leader != w.s_leader]
        return *share(sum(w.by == by for w in among), len(among), confidence), len(among)


def share(count: int, total: int, confidence: float = 0.95) -> tuple[float, float, float]:
    """count/total and the ends of its Wilson interval; NaN of nothing."""
    if total == 0:
        return np.nan, np.nan, np.nan
    test = binomtest(count, total)
    interval = test.proportion_ci(confidence, method="wilson")
    return float(test.statistic), float(interval.low), float(interval.high)


def who_wins(problem: Mapping[str, Any], log_t: Any = None) -> Winner:
    """The winner of a flow, and whether it led u, s, both or neither at the start.

    Args:
        problem: as for `solve`, with a target.
        log_t: looks at the flow, increasing. By default those of `outcomes.looks`.

    Raises:
        InputError: as `solve`, and for losses without a target, where there is no u.

    Example:
        >>> who_wins(flow.preset("logistic", n=4, seed=1)).outcome.certain
        True
    """
    return who_wins_many([problem], log_t)[0]


def who_wins_many(problems: Iterable[Mapping[str, Any]], log_t: Any = None) -> list[Winner]:
    """`who_wins` for a list; problems of one shape are solved side by side."""
    problems = list(problems)
    read = [read_problem({"t": [1.0], **untimed(p)}) for p in problems]
    for one in read:
        if "target" not in one.data:
            raise InputError("loss", got=one.loss.name, expected="a loss with a target, for u = Vᵀβ*", fix="see losses")
    return [_winner(one, how) for one, how in zip(read, outcomes(problems, log_t), strict=True)]


def winner_statistics(problems: Iterable[Mapping[str, Any]], log_t: Any = None) -> WinnerStatistics:
    """`who_wins_many`, counted.

    Example:
        >>> starts = [flow.random_problem("logistic", n=4, seed=seed) for seed in range(50)]
        >>> winner_statistics(starts).fraction("s")[0] <= 1
        True
    """
    winners = tuple(who_wins_many(problems, log_t))
    uncertain = sum(w.outcome.winner >= 0 and not w.outcome.certain for w in winners)
    return WinnerStatistics(winners, dict(Counter(w.by for w in winners)), uncertain)


def _winner(problem: Problem, how: Outcome) -> Winner:
    u_leader, s_leader = initial_leaders(problem)
    assert u_leader is not None  # a target was asked for
    led = (how.winner == u_leader, how.winner == s_leader)
    by = {(True, True): "both", (True, False): "u", (False, True): "s", (False, False): "neither"}[led]
    if how.status not in ("ok", "converged"):
        by = "unsolved"
    elif how.winner < 0 or min(u_leader, s_leader) < 0:
        by = "tie"
    return Winner(problem.name, how, u_leader, s_leader, by)


def initial_leaders(problem: Problem) -> tuple[int | None, int]:
    """The coordinates with the largest u = Vᵀβ* and s at the start; -1 for a tie, but for rounding.

    β* is the target; for regression the least-squares solution. Without either there is no u: None.
    """
    if problem.loss.name == "regression":
        target = np.linalg.lstsq(problem.data["X"], problem.data["y"])[0]
    else:
        target = problem.data.get("target")
    return None if target is None else _first(problem, problem.V0.T @ target), _first(problem, start_weights(problem))


def _first(problem: Problem, values: np.ndarray) -> int:
    return visible_leader(problem, values, SAME * float(np.abs(values).max()))
