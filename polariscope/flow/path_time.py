r"""The value model with a loss of the margin ⟨β*, β⟩, in path time.

All of V's motion is along the target β*, so only u = Vᵀβ* and a move, and both at the rate r = -f'(z) of the loss f. In
path time, dτ = r dt, the path does not know the loss. With û = u/‖β*‖ and τ̂ = ‖β*‖ τ it does not know ‖β*‖ either:

    dû/dτ̂ = s,    da/dτ̂ = Jᵀ û,    s = σ(a).

Integrated are D = û - τ̂ s and the coordinates q of a (`polariscope.flow.charts`), over x = log(1 + τ̂). The winner's û
grows like τ̂ while its weight tends to 1, so D stays bounded, and q moves like a multiple of x: a decade of τ̂ costs a
few steps. Integrating û itself costs twelve a decade.
"""

from functools import partial
from typing import Any, NamedTuple

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array

from polariscope.flow.charts import Charts
from polariscope.flow.clock import POINTS

SOLVER = diffrax.Dopri8()
B, C = SOLVER.tableau.b_sol, np.append(0.0, SOLVER.tableau.c)
A = np.array([np.pad(row, (0, len(C) - len(row))) for row in ([], *SOLVER.tableau.a_lower)])
State = tuple[Array, Array]
FURTHEST = 690.0
"""Largest x: beyond it τ̂ is no number."""


class Leg(NamedTuple):
    """A smooth piece of a path: the chart, the keys that take part, ‖β*‖, and where to stop.

    ``margin`` is the last margin wanted; ``furthest`` the last x.
    """

    which: Any
    where: Any
    norm: Any
    margin: Any
    furthest: Any


class Taken(NamedTuple):
    """The accepted steps of one path, padded to a fixed number.

    Attributes:
        x: the knots, log(1 + τ̂), (m,).
        D, q: states there, (m, n).
        accepted: how many steps are real.
        result, stats: diffrax's.
    """

    x: Array
    D: Array
    q: Array
    accepted: Array
    result: Any
    stats: Any


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
    winner = jnp.argmax(s)
    dq = charts.velocity(
        leg.which, q, u - jnp.where(charts.declares(leg.which, "sums_to_one"), u[winner], 0.0), leg.where
    )
    turn = dq - jnp.where(charts.declares(leg.which, "shift_invariant"), dq[winner], 0.0)
    _, ds = jax.jvp(lambda q: charts.weights(leg.which, q, leg.where), (q,), (turn,))
    return -jnp.expm1(x) * jnp.exp(x) * ds, jnp.exp(x) * dq


def _stop(x: Any, y: State, args: tuple[Charts, Leg], **_: Any) -> Array:
    """Whether the margin wanted is passed, or a key whose chart is kinked has lost its weight."""
    charts, leg = args
    return _stopped(charts, leg, x, *y)


@partial(jax.jit, static_argnums=0)
def _stopped(charts: Charts, leg: Leg, x: Any, D: Array, q: Array) -> Array:
    s = charts.weights(leg.which, q, leg.where)
    far = leg.norm * jnp.vdot(D + jnp.expm1(x) * s, s) >= leg.margin
    return far | jnp.any(leg.where & (s <= charts.floor(leg.which)))


def integrate(x: Array, D: Array, q: Array, leg: Leg, rtol: float, charts: Charts, max_steps: int) -> Taken:
    """One path from (x, D, q) until it is to stop, after one step at least.

    Args:
        D, q: state at x, (n,).
        rtol: tolerance of each step, relative and absolute.
        max_steps: accepted and rejected together.
    """
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(field),
        SOLVER,
        t0=x,
        t1=leg.furthest,
        dt0=None,
        y0=(D, q),
        args=(charts, leg),
        saveat=diffrax.SaveAt(t0=True, steps=True),
        stepsize_controller=diffrax.PIDController(rtol=rtol, atol=rtol),
        max_steps=max_steps,
        event=diffrax.Event(lambda t, y, args, **more: (t > x) & _stop(t, y, args, **more)),
        throw=False,
    )
    assert solution.ts is not None
    assert solution.ys is not None
    count = solution.stats["num_accepted_steps"]
    D, q = solution.ys
    return Taken(solution.ts, D, q, count, solution.result._value, solution.stats)


def inside(x: Array, to: Array, D: Array, q: Array, leg: Leg, charts: Charts) -> State:
    """States at the inner Chebyshev points of one step, (points - 2, n) each, by a Dopri8 step from its knot to each.

    They are as accurate as the knots; diffrax's interpolant is of lower order and 10 to 100 times less so. The stages
    are a loop, which compiles faster than diffrax's own step.
    """
    packed, unpack = ravel_pytree((D, q))

    def reach(end: Array) -> State:
        h = end - x

        def stage(slopes: Array, row: tuple[Array, Array, Array]) -> tuple[Array, None]:
            i, c, weights = row
            slope = field(x + c * h, unpack(packed + h * (weights @ slopes)), (charts, leg))
            return slopes.at[i].set(ravel_pytree(slope)[0]), None

        empty = jnp.zeros((len(C), packed.size))
        slopes, _ = jax.lax.scan(stage, empty, (jnp.arange(len(C)), jnp.asarray(C), jnp.asarray(A)))
        return unpack(packed + h * (B @ slopes))

    return jax.vmap(reach)(x + (to - x) * POINTS[1:-1])
