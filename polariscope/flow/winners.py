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
        if not among:
            return np.nan, np.nan, np.nan, 0
        test = binomtest(sum(w.by == by for w in among), len(among))
        interval = test.proportion_ci(confidence, method="wilson")
        return float(test.statistic), float(interval.low), float(interval.high), len(among)


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
    u = problem.V0.T @ problem.data["target"]
    first = [visible_leader(problem, v, SAME * float(np.abs(v).max())) for v in (u, start_weights(problem))]
    led = (how.winner == first[0], how.winner == first[1])
    by = {(True, True): "both", (True, False): "u", (False, True): "s", (False, False): "neither"}[led]
    if how.status not in ("ok", "converged"):
        by = "unsolved"
    elif how.winner < 0 or min(first) < 0:
        by = "tie"
    return Winner(problem.name, how, first[0], first[1], by)
