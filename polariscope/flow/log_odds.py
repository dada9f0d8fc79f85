r"""How the outcome of a flow depends on where it starts, by reverse-mode differentiation through the solver.

The value model with a loss of the margin is solved in path time, where the time t at which x = log(1 + τ̂) is reached
depends on the start as well. With the log-odds L, at fixed t

    dL/dθ = ∂L/∂θ - (∂L/∂x)/(∂ log t/∂x) · ∂ log t/∂θ,    log t = log ∫ exp φ dx - log ‖β*‖,    φ = log(1 + e^z) + x.

All of it comes out of one solution: the state at x, and φ at the nodes of a quadrature.
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
from polariscope.flow.clock import FALLS
from polariscope.flow.compiling import QUICK
from polariscope.flow.maps import Maps, declares_distribution
from polariscope.flow.ordinary_time import Data, Flow
from polariscope.flow.problem import Problem, read_problem
from polariscope.flow.result import Result
from polariscope.flow.solver import solve
from polariscope.flow.ties import leader

SOLVER = diffrax.Dopri8(scan_kind="bounded")
"""Stages in a loop of fixed length: reverse mode compiles in half the time that its default takes."""
RTOL = 1e-11
MAX_STEPS = 16384
EVEN = 12
"""Panels of equal size on the way to x, beside those placed by `FALLS`; each has ten nodes."""
NODES, WEIGHTS = legendre.leggauss(10)
Parameters = tuple[Any, Any, Mapping[str, Any]]


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """Derivatives of the log-odds log(s_w/(1 - s_w)) of the winner w at a fixed time t, along the flow.

    Where the loss depends on the margin alone, paths from different starts are at different path times at the same t;
    the derivatives include that.

    Attributes:
        name: of the problem. log_t: log t, -inf for t = 0.
        winner: w, the coordinate with the largest weight at t. log_odds: its log-odds.
        V0: ∂/∂V0, (d, n). a0: ∂/∂a0, (n,).
        data: ∂/∂ what the loss needs, by key and of its shape (``target``, or X and y, or p). Those with respect to p
            are free: they include directions that leave the simplex.
        clock_error: by how much log t, from the quadrature that is differentiated, misses the time asked for; 0 for
            flows solved in ordinary time.
    """

    name: str
    log_t: float
    winner: int
    log_odds: float
    V0: np.ndarray
    a0: np.ndarray
    data: Mapping[str, np.ndarray]
    clock_error: float


def sensitivity(problem: Mapping[str, Any], t: float | None = None, log_t: float | None = None) -> Sensitivity:
    """∂ log(s_w/(1 - s_w)) / ∂(V0, a0, data) at one time of gradient flow, w the coordinate that leads then.

    Args:
        problem: as for `solve`, with a score map whose rows are distributions, and n > 1.
        t, log_t: the time, instead of that in the problem; t ≥ 0.

    Accuracy: about eight digits. Where second derivatives of σ jump (elu-normalized, relu, l1) steps across a jump are
    not controlled for the derivative: errors of 3e-4 have been seen there, with a ``clock_error`` of 1e-7.

    Raises:
        InputError: as `solve`; for n = 1, score maps that do not declare distributions, more than one time, a tie for
            the lead, a winner with all of the weight, whose log-odds are infinite, and flows that do not get to t.

    Example:
        >>> abs(sensitivity(flow.preset("logistic"), log_t=100.0).a0.sum()) < 1e-6  # softmax ignores shifts of a
        True

    Source: reverse mode through the solver with recursive checkpoints, Kidger (2021), arXiv:2202.02435, section 5.1.
    The derivative of the clock is this package's.
    """
    read = read_problem(problem, t=t, log_t=log_t)
    _check(read)
    result = solve(problem, t=t, log_t=log_t, rtol=RTOL)
    if not result.complete:
        raise InputError(
            f"flow of {read.name}", got=result.message, expected="a flow that gets there", fix="ask for an earlier time"
        )
    winner = _winner(result.s[0])
    end = read.log_t[0]
    parts: dict[str, Any] = {"winner": winner, "maps": Maps((read.scores,))}
    with jax.enable_x64(True):
        parameters = (read.V0, read.a0, dict(read.data))
        if path_engine.serves(read) and end > -np.inf:
            (value, reached), found = _in_path_time(parameters, *_nodes(read, result), **parts)
            error = abs(float(reached) - end)
        else:
            flow = Flow(read.model, parts["maps"], read.loss)
            (value, steps), found = _in_time(parameters, np.exp(end), winner=winner, flow=flow, start=end == -np.inf)
            error = 0.0
            if int(steps) >= MAX_STEPS:
                raise InputError("time", got=f"log t = {end:g}", expected="a flow that is not stiff", fix="ask earlier")
    V0, a0, data = jax.tree.map(np.asarray, found)
    return Sensitivity(read.name, float(end), winner, float(value), V0, a0, data, error)


def _check(problem: Problem) -> None:
    if not declares_distribution(problem.scores):
        name = getattr(problem.scores, "name", "a function of one's own")
        raise InputError("scores", got=name, expected="a map whose rows are distributions", fix="use softmax")
    if len(problem.a0) < 2:
        raise InputError("n", got="1", expected="at least 2, for the odds of one against the others", fix="add columns")
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
def _in_time(parameters: Parameters, t: Array, *, winner: Any, flow: Flow, start: bool) -> Any:
    def value(parameters: Parameters) -> tuple[Array, Array]:
        V0, a0, loss = parameters
        y, data, steps = (V0, a0), Data(loss, jnp.int32(0)), jnp.int32(0)
        if not start:
            solution = _solution(flow.velocity, y, data, diffrax.SaveAt(t1=True), 0.0, t)
            y, steps = jax.tree.map(lambda leaf: leaf[0], solution.ys), solution.stats["num_steps"]
        return log_odds(flow.weights(y, data), winner), steps

    return jax.value_and_grad(value, has_aux=True)(parameters)


def _solution(field: Any, y: Any, args: Any, saves: diffrax.SaveAt, start: Any, end: Any) -> diffrax.Solution:
    return diffrax.diffeqsolve(
        diffrax.ODETerm(field),
        SOLVER,
        start,
        end,
        None,
        y,
        args,
        saveat=saves,
        stepsize_controller=diffrax.PIDController(rtol=RTOL, atol=RTOL),
        max_steps=MAX_STEPS,
        throw=False,
    )


def _seen(x: Array, state: Any, norm: Array, maps: Maps, winner: Any) -> tuple[Array, Array]:
    """φ and L at a point of a path."""
    D, a = state
    s = maps(jnp.int32(0), a)
    return jnp.logaddexp(0.0, norm * jnp.vdot(D + jnp.expm1(x) * s, s)) + x, log_odds(s, winner)


@partial(jax.jit, static_argnames="maps", compiler_options=QUICK)
def _in_path_time(parameters: Parameters, xs: Array, weights: Array, *, winner: Any, maps: Maps) -> Any:
    """L, log t and the derivatives of L. ``xs`` are the nodes of the quadrature and, last, the point itself."""

    def value(parameters: Parameters) -> tuple[Array, Array]:
        V0, a0, data = parameters
        norm = jnp.linalg.norm(data["target"])
        args = (maps, jnp.int32(0), norm, jnp.zeros(()))
        start = (V0.T @ data["target"] / norm, a0)
        states = _solution(path_time.field, start, args, diffrax.SaveAt(ts=xs), 0.0, xs[-1]).ys
        look = partial(_seen, norm=norm, maps=maps, winner=winner)
        phi, value = jax.vmap(look)(xs, states)
        log_t = jax.scipy.special.logsumexp(phi[:-1], b=weights) - jnp.log(norm)
        last = (xs[-1], jax.tree.map(lambda leaf: leaf[-1], states))
        _, (_, slope) = jax.jvp(look, last, (jnp.ones(()), path_time.field(*last, args)))
        per_log_t = slope / jnp.exp(phi[-1] - jnp.log(norm) - log_t)
        fixed = jax.lax.stop_gradient
        return value[-1] - fixed(per_log_t) * (log_t - fixed(log_t)), log_t

    return jax.value_and_grad(value, has_aux=True)(parameters)


def _nodes(problem: Problem, result: Result) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre nodes from 0 to x, most of them where t passes, and x itself; and their weights, without x's."""
    assert result.tau is not None
    assert result.u is not None
    norm = path_engine.norm_of(problem)
    x = np.log1p(norm * result.tau[0])
    phi = np.logaddexp(0.0, result.u[0] @ result.s[0]) + x
    width = np.exp(np.log(norm) + problem.log_t[0] - phi)  # dx/d log t
    ends = np.sort(np.append(np.linspace(0.0, x, EVEN + 1), np.maximum(x - width * FALLS, 0.0)))  # always as many
    half = np.diff(ends)[:, None] / 2
    nodes = (ends[:-1, None] + half + half * NODES).ravel()
    return np.append(nodes, x), (half * WEIGHTS).ravel()
