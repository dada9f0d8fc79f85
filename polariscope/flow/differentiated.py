r"""Log-odds differentiated through the solution of a flow.

In path time the time t at which x = log(1 + τ̂) is reached depends on the start as well. With the log-odds L, at fixed t

    dL/dθ = ∂L/∂θ - (∂L/∂x)/(∂ log t/∂x) · ∂ log t/∂θ,    log t = log ∫ exp φ dx - log ‖β*‖,    φ = g(z) + x,

with the log slowness g of the loss's link.

All of it comes out of one solution: the state at x, and φ at the nodes of a quadrature. It depends on 2n + 1 numbers,
u = Vᵀβ*, a and ‖β*‖, and is differentiated forwards; flows in ordinary time are differentiated backwards.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from numpy.polynomial import legendre

from polariscope.flow import path_time
from polariscope.flow.charts import Charts
from polariscope.flow.clock import FALLS
from polariscope.flow.compiling import QUICK
from polariscope.flow.losses._loss import Link
from polariscope.flow.ordinary_time import Data, Flow, Trained
from polariscope.flow.problem import Problem
from polariscope.flow.result import Result
from polariscope.flow.tracks import norm_of

SOLVER = diffrax.Dopri8(scan_kind="bounded")
"""For reverse mode. Stages in a loop of fixed length: it compiles in half the time that the default takes."""
RTOL = 1e-11
MAX_STEPS = 16384
EVEN = 12
"""Panels of equal size on the way to x, beside those placed by `FALLS`; each has ten nodes."""
NODES, WEIGHTS = legendre.leggauss(10)
Inputs = tuple[Mapping[str, Any], Mapping[str, Any]]
"""Parameters at the start and the data of the loss, by name."""


def log_odds(s: Array, winner: Any) -> Array:
    """log(s_w/(1 - s_w)), 1 - s_w as the sum of the others, which does not cancel."""
    return jnp.log(s[winner]) - jnp.log(jnp.sum(jnp.where(jnp.arange(len(s)) == winner, 0.0, s)))


@partial(jax.jit, static_argnames=("flow", "start"), compiler_options=QUICK)
def in_time(inputs: Inputs, t: Array, winner: Any, data: Data, *, flow: Flow, start: bool) -> Any:
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


def chained(problem: Problem, u: np.ndarray, by_u: np.ndarray, by_a: np.ndarray, by_norm: np.ndarray) -> Inputs:
    """Derivatives by V0, a0 and β* from those by û = V0ᵀβ*/‖β*‖, a0 and ‖β*‖."""
    norm, target = norm_of(problem), problem.data["target"]
    by_target = (problem.V0 @ by_u + (by_norm - by_u @ u / norm) * target) / norm
    return {"V": np.outer(target, by_u) / norm, "a": by_a}, {"target": by_target}


@partial(jax.jit, static_argnames=("charts", "link"), compiler_options=QUICK)
def in_path_time(
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


def nodes(problem: Problem, result: Result) -> tuple[np.ndarray, np.ndarray]:
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
    at = (ends[:-1, None] + half + half * NODES).ravel()
    return np.append(at, x), (half * WEIGHTS).ravel()
