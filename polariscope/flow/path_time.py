r"""The value model with a loss of the margin ⟨β*, β⟩, in path time.

All of V's motion is along the target β*, so only u = Vᵀβ* and a move, and both at the rate r = -f'(z) of the loss f. In
path time, dτ = r dt, the path does not know the loss. With û = u/‖β*‖ and τ̂ = ‖β*‖ τ it does not know ‖β*‖ either:

    dû/dτ̂ = s,    da/dτ̂ = Jᵀ û,    s = σ(a).

Integrated are D = û - τ̂ s and the coordinates q of a (`polariscope.flow.chart`), over x = log(1 + τ̂). The winner's û
grows like τ̂ while its weight tends to 1, so D stays bounded, and q moves like a multiple of x: a decade of τ̂ costs a
few steps. Integrating û itself costs twelve a decade.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from polariscope.flow.charts import Charts
from polariscope.flow.clock import POINTS

TABLEAU = diffrax.Dopri8().tableau
STAGES = 13
"""The last one of the tableau is the first of the next step."""
C = np.append(0.0, TABLEAU.c)[:STAGES]
A = np.array([np.pad(row, (0, STAGES - len(row))) for row in ([], *TABLEAU.a_lower[: STAGES - 1])])
B, ERROR = TABLEAU.b_sol[:STAGES], TABLEAU.b_error[:STAGES]
ORDER = 8
SAFETY, SHRINK, GROW = 0.8, 0.2, 10.0
State = tuple[Array, Array]
FURTHEST = 690.0
"""Largest x: beyond it τ̂ is no number."""


class Leg(NamedTuple):
    """A smooth piece of a path: the chart, the keys that take part, ‖β*‖, and where to stop.

    ``where`` is None if all keys do, and stay. ``margin`` is the last margin wanted; ``furthest`` the last x.
    """

    which: Any
    where: Any
    norm: Any
    margin: Any
    furthest: Any


class Attempts(NamedTuple):
    """The steps that paths tried, side by side: m of them for b paths.

    Attributes:
        count: how many were tried by the longest path; what is beyond has no meaning.
        x, y: where each led, (m, b), and D and q there, one after the other, (m, 2n, b). Rejected steps lead nowhere.
        accepted: whether each step was, (m, b). tried: by each path, (b,).
        h: the step each path would try next, (b,). going: whether it has not come to its stop, (b,).
    """

    count: Any
    x: Any
    y: Any
    accepted: Any
    tried: Any
    h: Any
    going: Any


def field(x: Any, state: State, args: tuple[Charts, Leg]) -> State:
    """d(D, q)/dx = (1 + τ̂) (-τ̂ ds/dτ̂, dq/dτ̂), without cancellation when one weight is close to 1.

    If the weights sum to one, Jᵀ1 = 0, so û may be measured from the winner's; if σ ignores shifts, J1 = 0, so dq may.
    """
    charts, leg = args
    return _field(charts, leg, x, *state)


@partial(jax.jit, static_argnums=0)  # traced once for the many places where it is called
def _field(charts: Charts, leg: Leg, x: Any, D: Array, q: Array) -> State:
    s = charts.weights(leg.which, q, leg.where)
    u = D + jnp.expm1(x) * s
    winner = s == jnp.max(s)
    dq = charts.velocity(
        leg.which, q, u - jnp.where(charts.declares(leg.which, "sums_to_one"), _of(winner, u), 0.0), leg.where
    )
    turn = dq - jnp.where(charts.declares(leg.which, "shift_invariant"), _of(winner, dq), 0.0)
    _, ds = jax.jvp(lambda q: charts.weights(leg.which, q, leg.where), (q,), (turn,))
    return -jnp.expm1(x) * (jnp.exp(x) * ds), jnp.exp(x) * dq  # e^2x is no number from x = 355 on


def _of(winner: Array, values: Array) -> Array:
    """The value of the winner, the largest if several are tied. Faster for many flows than an index."""
    return jnp.max(jnp.where(winner, values, -jnp.inf))


@partial(jax.jit, static_argnums=0)
def _stopped(charts: Charts, leg: Leg, x: Any, D: Array, q: Array) -> Array:
    """Whether the margin wanted is passed, or a key whose chart is kinked has lost its weight."""
    s = charts.weights(leg.which, q, leg.where)
    far = leg.norm * jnp.vdot(D + jnp.expm1(x) * s, s) >= leg.margin
    if leg.where is None:
        return far
    return far | jnp.any(leg.where & (s <= charts.floor(leg.which)))


def integrate(x: Array, D: Array, q: Array, h: Array, leg: Leg, rtol: float, charts: Charts, steps: int) -> Attempts:
    """Paths from (x, D, q) until each is to stop, after one step at least.

    Dormand and Prince's method of order 8 as in diffrax, but with flows on the last axis, where sums over keys are
    sums of rows; every attempt is kept at one place for all. This takes a third of the time of diffrax's own loop.

    Args:
        x: where paths start, (b,). D, q: states there, (b, n). h: first step tried, (b,). leg: of each, (b, …).
        rtol: tolerance of each step, relative and absolute.
        steps: accepted and rejected together.
    """
    slope = _slopes(leg, charts)
    parts = 2.0 * (D.shape[1] if leg.where is None else jnp.maximum(leg.where.sum(1, dtype=D.dtype), 1.0))

    def stop(x: Array, y: Array) -> Array:
        D, q = _halves(y)
        return jax.vmap(partial(_stopped, charts))(leg, x, D.T, q.T)

    def attempt(taken: Attempts) -> Attempts:
        before = jnp.maximum(taken.count - 1, 0)
        at, y = (jnp.where(taken.count > 0, v[before], first) for v, first in ((taken.x, x), (taken.y, y0)))
        h = jnp.minimum(taken.h, leg.furthest - at)
        new, error = _step(slope, at, y, h)
        size = jnp.maximum(jnp.abs(y), jnp.abs(new))
        ratio = jnp.sqrt(jnp.sum((error / (rtol + rtol * size)) ** 2, axis=0) / parts)
        good = ratio <= 1
        factor = jnp.clip(SAFETY * ratio ** (-1 / ORDER), jnp.where(good, 1.0, SHRINK), jnp.where(good, GROW, 1.0))
        accepted = good & taken.going
        at, y = jnp.where(accepted, at + h, at), jnp.where(accepted, new, y)
        ended = accepted & (stop(at, y) | (at >= leg.furthest))
        return Attempts(
            taken.count + 1,
            taken.x.at[taken.count].set(at),
            taken.y.at[taken.count].set(y),
            taken.accepted.at[taken.count].set(accepted),
            taken.tried + taken.going.astype(int),
            jnp.where(taken.going, h * jnp.where(jnp.isnan(factor), SHRINK, factor), taken.h),
            taken.going & ~ended,
        )

    y0 = jnp.concatenate([D.T, q.T])
    going = jnp.ones(x.shape, bool)
    xs, ys, accepted = (jnp.zeros((steps, *v.shape), v.dtype) for v in (x, y0, going))
    start = Attempts(0, xs, ys, accepted, jnp.zeros(x.shape, int), h, going)
    return jax.lax.while_loop(lambda taken: (taken.count < steps) & taken.going.any(), attempt, start)


def _slopes(leg: Leg, charts: Charts) -> Callable[[Array, Array], Array]:
    """The velocities of flows on the last axis, (2n, b), as a function of x (b,) and their states."""
    masked = leg.where is not None
    legs = leg._replace(where=leg.where.T if masked else None)

    def slope(x: Array, y: Array, leg: Leg) -> Array:
        return jnp.concatenate(field(x, _halves(y), (charts, leg)))

    every = jax.vmap(slope, (0, -1, Leg(0, -1 if masked else None, 0, 0, 0)), -1)
    return lambda x, y: every(x, y, legs)


def _halves(y: Array) -> State:
    """D and q."""
    return y[: len(y) // 2], y[len(y) // 2 :]


def _step(slope: Any, x: Array, y: Array, h: Array) -> tuple[Array, Array]:
    """The state one step on, and its error. The stages are a loop, which compiles faster than their sequence."""

    def stage(slopes: Array, row: tuple[Array, Array, Array]) -> tuple[Array, None]:
        i, c, weights = row
        return slopes.at[i].set(slope(x + c * h, y + h * jnp.tensordot(weights, slopes, 1))), None

    stages = (jnp.arange(STAGES), jnp.asarray(C), jnp.asarray(A))
    slopes, _ = jax.lax.scan(stage, jnp.zeros((STAGES, *y.shape)), stages)
    return y + h * jnp.tensordot(jnp.asarray(B), slopes, 1), h * jnp.tensordot(jnp.asarray(ERROR), slopes, 1)


def inside(x: Array, to: Array, D: Array, q: Array, leg: Leg, charts: Charts) -> State:
    """States at the inner Chebyshev points of m steps, (m, points - 2, n) each, by a step from its knot to each.

    They are as accurate as the knots; interpolants of the method are of lower order and 10 to 100 times less so.
    """
    points = len(POINTS) - 2
    x, to, y, leg = jax.tree.map(partial(jnp.repeat, repeats=points, axis=0), (x, to, jnp.hstack([D, q]), leg))
    y, _ = _step(_slopes(leg, charts), x, y.T, (to - x) * jnp.tile(POINTS[1:-1], len(D)))
    D, q = _halves(y)
    return D.T.reshape(-1, points, len(D)), q.T.reshape(-1, points, len(q))
