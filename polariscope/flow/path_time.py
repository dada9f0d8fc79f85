r"""The value model with the logistic loss, in path time.

All of V's motion is along the target β*, so only u = Vᵀβ* and a move, and both at the rate r = 1/(1 + e^z) of the loss.
In path time, dτ = r dt, the path does not know the loss. With û = u/‖β*‖ and τ̂ = ‖β*‖ τ it does not know ‖β*‖ either:

    dû/dτ̂ = s,    da/dτ̂ = Jᵀ û,    s = σ(a).

Integrated are D = û - τ̂ s and a, over x = log(1 + τ̂). The winner's û grows like τ̂ while its weight tends to 1, so D
stays bounded, and a moves like a multiple of x: a decade of τ̂ costs a few steps. Integrating û itself costs twelve a
decade.
"""

from typing import Any, NamedTuple

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array

from polariscope.flow.clock import POINTS
from polariscope.flow.maps import Maps

SOLVER = diffrax.Dopri8()
B, C = SOLVER.tableau.b_sol, np.append(0.0, SOLVER.tableau.c)
A = np.array([np.pad(row, (0, len(C) - len(row))) for row in ([], *SOLVER.tableau.a_lower)])
State = tuple[Array, Array]


class Steps(NamedTuple):
    """The accepted steps of one path, padded to a fixed number.

    Attributes:
        x: the knots, log(1 + τ̂), (m,).
        D, a: states there, (m, n).
        accepted: how many steps are real.
        result, stats: diffrax's.
    """

    x: Array
    D: Array
    a: Array
    accepted: Array
    result: Any
    stats: Any


def field(x: Any, state: State, args: tuple[Maps, Array, Array, Array]) -> State:
    """d(D, a)/dx = (1 + τ̂) (-τ̂ ds/dτ̂, da/dτ̂), without cancellation when one weight is close to 1.

    If the weights sum to one, Jᵀ1 = 0, so û may be measured from the winner's; if σ ignores shifts, J1 = 0, so da may.
    """
    maps, which, *_ = args
    D, a = state
    s = maps(which, a)
    u = D + jnp.expm1(x) * s
    winner = jnp.argmax(s)
    da = maps.vjp(which, a, u - jnp.where(maps.sums_to_one(which), u[winner], 0.0))
    _, ds = jax.jvp(lambda a: maps(which, a), (a,), (da - jnp.where(maps.shift_invariant(which), da[winner], 0.0),))
    return -jnp.expm1(x) * jnp.exp(x) * ds, jnp.exp(x) * da


def _far_enough(x: Any, y: State, args: tuple[Maps, Array, Array, Array], **_: Any) -> Array:
    """Whether t has passed the last time asked for, by the rough t ≈ e^z/‖β*‖².

    Late on dz/dτ = ‖β*‖², so this is right to a step or so; where it is not, the caller asks for more.
    """
    maps, which, norm, log_t = args
    D, a = y
    s = maps(which, a)
    return (x > 0) & (norm * jnp.vdot(D + jnp.expm1(x) * s, s) - 2 * jnp.log(norm) >= log_t)


def integrate(
    u0: Array, a0: Array, norm: Array, log_t: Array, which: Array, maps: Maps, rtol: float, max_steps: int
) -> Steps:
    """The path of one problem until log t is about ``log_t``.

    Args:
        u0: projections V0ᵀβ*, (n,). a0: logits, (n,). norm: ‖β*‖. log_t: the last time wanted, a scalar.
        which: index of the score map in ``maps``.
        rtol: tolerance of each step, relative and absolute.
        max_steps: accepted and rejected together.
    """
    last = jnp.clip(jnp.logaddexp(0.0, log_t + jnp.log(norm)), 1e-9, 690.0)  # t ≥ τ; at least one step
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(field),
        SOLVER,
        t0=0.0,
        t1=last,
        dt0=None,
        y0=(u0 / norm, a0),
        args=(maps, which, norm, log_t),
        saveat=diffrax.SaveAt(t0=True, steps=True),
        stepsize_controller=diffrax.PIDController(rtol=rtol, atol=rtol),
        max_steps=max_steps,
        event=diffrax.Event(_far_enough),
        throw=False,
    )
    assert solution.ts is not None
    assert solution.ys is not None
    count = solution.stats["num_accepted_steps"]
    D, a = solution.ys
    return Steps(solution.ts, D, a, count, solution.result._value, solution.stats)


def inside(x: Array, to: Array, D: Array, a: Array, which: Array, maps: Maps) -> State:
    """States at the inner Chebyshev points of one step, (points - 2, n) each, by a Dopri8 step from its knot to each.

    They are as accurate as the knots; diffrax's interpolant is of lower order and 10 to 100 times less so. The stages
    are a loop, which compiles faster than diffrax's own step.
    """
    args = (maps, which, jnp.ones(()), jnp.zeros(()))
    packed, unpack = ravel_pytree((D, a))

    def reach(end: Array) -> State:
        h = end - x

        def stage(slopes: Array, row: tuple[Array, Array, Array]) -> tuple[Array, None]:
            i, c, weights = row
            slope = field(x + c * h, unpack(packed + h * (weights @ slopes)), args)
            return slopes.at[i].set(ravel_pytree(slope)[0]), None

        empty = jnp.zeros((len(C), packed.size))
        slopes, _ = jax.lax.scan(stage, empty, (jnp.arange(len(C)), jnp.asarray(C), jnp.asarray(A)))
        return unpack(packed + h * (B @ slopes))

    return jax.vmap(reach)(x + (to - x) * POINTS[1:-1])
