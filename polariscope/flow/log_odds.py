r"""How the outcome of a flow depends on where it starts, by differentiation through the solver.

The value model with a loss of the margin is solved in path time, where the time t at which x = log(1 + τ̂) is reached
depends on the start as well. With the log-odds L, at fixed t

    dL/dθ = ∂L/∂θ - (∂L/∂x)/(∂ log t/∂x) · ∂ log t/∂θ,    log t = log ∫ exp φ dx - log ‖β*‖,    φ = g(z) + x,

with the log slowness g of the loss's link.

All of it comes out of one solution: the state at x, and φ at the nodes of a quadrature. It depends on 2n + 1 numbers,
u = Vᵀβ*, a and ‖β*‖, and is differentiated forwards; flows in ordinary time are differentiated backwards.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from numpy.polynomial import legendre

from polariscope.errors import InputError
from polariscope.flow import path_engine, path_time
from polariscope.flow.charts import Charts, declares_distribution
from polariscope.flow.clock import FALLS
from polariscope.flow.compiling import QUICK
from polariscope.flow.losses._loss import Link
from polariscope.flow.ordinary_time import Data, Flow, Trained, whole
from polariscope.flow.problem import Problem, read_problem
from polariscope.flow.result import Result
from polariscope.flow.solver import solve
from polariscope.flow.ties import leader
from polariscope.flow.tracks import norm_of, track_of

SOLVER = diffrax.Dopri8(scan_kind="bounded")
"""For reverse mode. Stages in a loop of fixed length: it compiles in half the time that the default takes."""
RTOL = 1e-11
MAX_STEPS = 16384
EVEN = 12
"""Panels of equal size on the way to x, beside those placed by `FALLS`; each has ten nodes."""
NODES, WEIGHTS = legendre.leggauss(10)
Inputs = tuple[Mapping[str, Any], Mapping[str, Any]]
"""Parameters at the start and the data of the loss, by name."""


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
            found, (value, reached) = _in_path_time(
                u, problem.a0, track.norm, *_nodes(problem, result), winner, leg, **how
            )
            return value, _chained(problem, u, *map(np.asarray, found)), abs(float(reached) - end)
        flow, _, data = whole(problem)
        (value, steps), found = _in_time(inputs, np.exp(end), winner, data, flow=flow, start=end == -np.inf)
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


def log_odds(s: Array, winner: Any) -> Array:
    """log(s_w/(1 - s_w)), 1 - s_w as the sum of the others, which does not cancel."""
    return jnp.log(s[winner]) - jnp.log(jnp.sum(jnp.where(jnp.arange(len(s)) == winner, 0.0, s)))


@partial(jax.jit, static_argnames=("flow", "start"), compiler_options=QUICK)
def _in_time(inputs: Inputs, t: Array, winner: Any, data: Data, *, flow: Flow, start: bool) -> Any:
    trained = ("V", *flow.model.trained)

    def value(inputs: Inputs) -> tuple[Array, Array]:
        parameters, loss = inputs
        now = data._replace(loss=loss, fixed={key: value for key, value in parameters.items() if key not in trained})
        y: Trained = {key: parameters[key] for key in trained}
        steps = jnp.int32(0)
        if not start:
            how = {"solver": SOLVER, "adjoint": diffrax.RecursiveCheckpointAdjoint()}
            solution = _solution(flow.velocity, y, now, diffrax.SaveAt(t1=True), 0.0, t, **how)
            y, steps = jax.tree.map(lambda leaf: leaf[0], solution.ys), solution.stats["num_steps"]
        return log_odds(flow.weights(y, now), winner), steps

    return jax.value_and_grad(value, has_aux=True)(inputs)


def _solution(
    field: Any, y: Any, args: Any, saves: diffrax.SaveAt, start: Any, end: Any, solver: Any, adjoint: Any
) -> diffrax.Solution:
    return diffrax.diffeqsolve(
        diffrax.ODETerm(field),
        solver,
        start,
        end,
        None,
        y,
        args,
        saveat=saves,
        stepsize_controller=diffrax.PIDController(rtol=RTOL, atol=RTOL),
        max_steps=MAX_STEPS,
        adjoint=adjoint,
        throw=False,
    )


def _seen(
    x: Array, state: Any, norm: Array, winner: Any, args: tuple[Charts, path_time.Leg], link: Link
) -> tuple[Array, Array]:
    """φ and L at a point of a path."""
    (D, q), (charts, leg) = state, args
    s = charts.weights(leg.which, q, leg.where)
    return link.log_slowness(norm * jnp.vdot(D + jnp.expm1(x) * s, s)) + x, log_odds(s, winner)


def _chained(problem: Problem, u: np.ndarray, by_u: np.ndarray, by_a: np.ndarray, by_norm: np.ndarray) -> Inputs:
    """Derivatives by V0, a0 and β* from those by û = V0ᵀβ*/‖β*‖, a0 and ‖β*‖."""
    norm, target = norm_of(problem), problem.data["target"]
    by_target = (problem.V0 @ by_u + (by_norm - by_u @ u / norm) * target) / norm
    return {"V": np.outer(target, by_u) / norm, "a": by_a}, {"target": by_target}


@partial(jax.jit, static_argnames=("charts", "link"), compiler_options=QUICK)
def _in_path_time(
    u: Array, a: Array, norm: Any, xs: Array, weights: Array, winner: Any, leg: path_time.Leg,
    *, charts: Charts, link: Link,
) -> Any:  # fmt: skip
    """Derivatives of L, and L and log t. ``xs`` are the nodes of the quadrature and, last, the point itself."""

    def value(u: Array, a: Array, norm: Array) -> tuple[Array, tuple[Array, Array]]:
        start, args = (u, charts.charts[0].enter(a)), (charts, leg)
        how = {"solver": diffrax.Dopri8(), "adjoint": diffrax.ForwardMode()}
        states = _solution(path_time.field, start, args, diffrax.SaveAt(ts=xs), 0.0, xs[-1], **how).ys
        look = partial(_seen, norm=norm, winner=winner, args=args, link=link)
        phi, value = jax.vmap(look)(xs, states)
        log_t = jax.scipy.special.logsumexp(phi[:-1], b=weights) - jnp.log(norm)
        last = (xs[-1], jax.tree.map(lambda leaf: leaf[-1], states))
        _, (_, slope) = jax.jvp(look, last, (jnp.ones(()), path_time.field(*last, args)))
        per_log_t = slope / jnp.exp(phi[-1] - jnp.log(norm) - log_t)
        fixed = jax.lax.stop_gradient
        return value[-1] - fixed(per_log_t) * (log_t - fixed(log_t)), (value[-1], log_t)

    return jax.jacfwd(value, argnums=(0, 1, 2), has_aux=True)(u, a, norm)


def _nodes(problem: Problem, result: Result) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre nodes from 0 to x, most of them where t passes, and x itself; and their weights, without x's."""
    assert result.tau is not None
    assert result.u is not None
    assert problem.loss.link is not None
    norm = norm_of(problem)
    x = np.log1p(norm * result.tau[0])
    phi = problem.loss.link.log_slowness(result.u[0] @ result.s[0]) + x
    width = np.exp(np.log(norm) + problem.log_t[0] - phi)  # dx/d log t
    ends = np.sort(np.append(np.linspace(0.0, x, EVEN + 1), np.maximum(x - width * FALLS, 0.0)))  # always as many
    half = np.diff(ends)[:, None] / 2
    nodes = (ends[:-1, None] + half + half * NODES).ravel()
    return np.append(nodes, x), (half * WEIGHTS).ravel()
