"""How the outcome of a flow depends on where it starts, by differentiation through the solver."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from polariscope.errors import InputError
from polariscope.flow import path_engine, path_time
from polariscope.flow.charts import Charts, declares_distribution
from polariscope.flow.differentiated import MAX_STEPS, RTOL, Inputs, chained, in_path_time, in_time, nodes
from polariscope.flow.ordinary_time import whole
from polariscope.flow.problem import Problem, read_problem
from polariscope.flow.result import Result
from polariscope.flow.solver import solve
from polariscope.flow.ties import leader
from polariscope.flow.tracks import track_of


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """Derivatives of the log-odds log(s_w/(1 - s_w)) of the winner w at a fixed time t, along the flow.

    Where the loss depends on the margin alone, paths from different starts are at different path times at the same t;
    the derivatives include that.

    Attributes:
        name: of the problem. log_t: log t, -inf for t = 0.
        winner: w, the coordinate with the largest weight at t. log_odds: its log-odds.
        parameters: ∂/∂ where the flow starts, by name and of its shape: V (d, n) and what the model needs.
        data: ∂/∂ what the loss needs, by key and of its shape (``target``, or X and y, or p). Those with respect to p
            are free: they include directions that leave the simplex.
        clock_error: by how much log t, from the quadrature that is differentiated, misses the time asked for; 0 for
            flows solved in ordinary time.
    """

    name: str
    log_t: float
    winner: int
    log_odds: float
    parameters: Mapping[str, np.ndarray]
    data: Mapping[str, np.ndarray]
    clock_error: float

    @property
    def V0(self) -> np.ndarray:
        """∂/∂V0, (d, n)."""
        return self.parameters["V"]

    @property
    def a0(self) -> np.ndarray:
        """∂/∂a0, (n,), of the models that have it."""
        return self.parameters["a"]


def sensitivity(problem: Mapping[str, Any], t: float | None = None, log_t: float | None = None) -> Sensitivity:
    """∂ log(s_w/(1 - s_w)) / ∂(start, data) at one time of gradient flow, w the coordinate that leads then.

    Args:
        problem: as for `solve`, with a score map whose rows are distributions, and n > 1.
        t, log_t: the time, instead of that in the problem; t ≥ 0.

    Accuracy: about eight digits. Where second derivatives of σ jump (elu-normalized) steps across a jump are not
    controlled for the derivative: errors of 3e-4 have been seen there, with a ``clock_error`` of 1e-7.

    Raises:
        InputError: as `solve`; for n = 1, score maps that do not declare distributions, more than one time, a tie for
            the lead, a winner with all of the weight, whose log-odds are infinite, and flows
            that do not get to t or cross a kink on the way.

    Example:
        >>> abs(sensitivity(flow.preset("logistic"), log_t=100.0).a0.sum()) < 1e-6  # softmax ignores shifts of a
        True

    Source: differentiation through the solver, backwards with recursive checkpoints, Kidger (2021), arXiv:2202.02435,
    section 5.1.
    The derivative of the clock is this package's.
    """
    read = read_problem(problem, t=t, log_t=log_t)
    _check(read)
    result = solve(problem, t=t, log_t=log_t, rtol=RTOL)
    if not result.complete:
        raise InputError(
            f"flow of {read.name}", got=result.message, expected="a flow that gets there", fix="ask for an earlier time"
        )
    if result.stats["kinks"]:
        when = result.stats["kinks"][0]["log_t"]
        raise InputError(
            f"flow of {read.name}", got=f"a kink at log t = {when:g}", expected="none before t", fix="ask for earlier"
        )
    winner = _winner(result.s[0])
    value, found, error = _derivatives(read, result, winner)
    parameters, data = jax.tree.map(np.asarray, found)
    return Sensitivity(read.name, float(read.log_t[0]), winner, float(value), parameters, data, error)


def _derivatives(problem: Problem, result: Result, winner: int) -> tuple[Any, Inputs, float]:
    """The log-odds, their derivatives, and the error of the clock."""
    end, inputs = problem.log_t[0], (dict(problem.parameters), dict(problem.data))
    with jax.enable_x64(True):
        if path_engine.serves(problem) and end > -np.inf:
            track = track_of(problem, len(problem.where))
            how = {"charts": Charts.of([problem.scores]), "link": problem.loss.link}
            leg = path_time.Leg(np.int32(0), track.where, track.norm, np.inf, np.inf)
            u = problem.V0.T @ problem.data["target"] / track.norm
            found, (value, reached) = in_path_time(
                u, problem.a0 - track.shift, track.norm, *nodes(problem, result), winner, leg, **how
            )
            return value, chained(problem, u, *map(np.asarray, found)), abs(float(reached) - end)
        flow, _, data = whole(problem)
        (value, steps), found = in_time(inputs, np.exp(end), winner, data, flow=flow, start=end == -np.inf)
        if int(steps) >= MAX_STEPS:
            raise InputError("time", got=f"log t = {end:g}", expected="a flow that is not stiff", fix="ask earlier")
        return value, found, 0.0


def _check(problem: Problem) -> None:
    if not declares_distribution(problem.scores):
        name = getattr(problem.scores, "name", "a function of one's own")
        raise InputError("scores", got=name, expected="a map whose rows are distributions", fix="use softmax")
    if problem.where.sum() < 2:
        raise InputError("keys", got="1", expected="at least 2, for the odds of one against the others", fix="add some")
    if len(problem.log_t) != 1:
        raise InputError("times", got=f"{len(problem.log_t)} of them", expected="one", fix="give t or log_t")


def _winner(s: np.ndarray) -> int:
    winner = int(leader(s, 10 * RTOL))
    if winner < 0:
        raise InputError(
            "winner", got="a tie for the largest weight", expected="one coordinate that leads", fix="change a0 or V0"
        )
    if not np.delete(s, winner).any():
        raise InputError("log-odds", got="infinite: one weight is 1", expected="less than 1", fix="ask earlier")
    return winner
