"""Gradient flow of any loss, score map and model, in ordinary time: one stretch at a time."""

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import diffrax
import jax
import jax.numpy as jnp
from jaxtyping import Array

from polariscope.flow.compiling import QUICK
from polariscope.flow.losses._loss import Loss
from polariscope.flow.maps import Maps
from polariscope.flow.models._model import Model

SOLVERS = {"explicit": diffrax.Dopri8(), "implicit": diffrax.Kvaerno5()}
Parameters = tuple[Array, Array]


class Observed(NamedTuple):
    """What is kept of a state: s, a, V's column norms and projections Vᵀβ* (n,), ℓ and log ℓ."""

    s: Array
    a: Array
    column_norms: Array
    u: Array
    objective: Array
    log_objective: Array


class Data(NamedTuple):
    """What a velocity depends on beside the parameters: the loss's data and the score map's index."""

    loss: Mapping[str, Any]
    which: Any


class Flow(NamedTuple):
    """A velocity field on (V, a), made of a model, score maps and a loss."""

    model: Model
    maps: Maps
    loss: Loss

    def weights(self, y: Parameters, data: Data) -> Array:
        """s = σ(logits)."""
        return self.maps(data.which, self.model.logits(*y))

    def objective(self, y: Parameters, data: Data) -> Array:
        """L(V, a)."""
        return self.loss.value(self.model.beta(y[0], self.weights(y, data)), data.loss)

    def velocity(self, t: Any, y: Parameters, data: Data) -> Parameters:
        """-∇L."""
        return jax.tree.map(jnp.negative, jax.grad(self.objective)(y, data))

    def observe(self, y: Parameters, data: Data) -> Observed:
        """What is kept of a state."""
        s = self.weights(y, data)
        beta = self.model.beta(y[0], s)
        value = self.loss.value(beta, data.loss)
        log = self.loss.log_value or (lambda beta, data: jnp.log(jnp.maximum(value, 0.0)))
        u = y[0].T @ data.loss["target"] if "target" in data.loss else jnp.full(s.shape, jnp.nan)
        return Observed(s, y[1], jnp.linalg.norm(y[0], axis=0), u, value, log(beta, data.loss))

    def way_left(self, y: Parameters, data: Data) -> Array:
        """How far the parameters will still move, if they are close to a minimum; infinite if they are not.

        Near a minimum the velocity v decays at the rate λ of the slowest direction left in it, λ = -⟨v, v̇⟩/⟨v, v⟩, and
        the way left is |v|/λ. Where decay is slower than exponential, as for the logistic loss, λ falls like 1/t and
        the way left does not shrink.
        """
        move = partial(self.velocity, None)
        v, acceleration = jax.jvp(lambda y: move(y, data), (y,), (move(y, data),))
        square, rate = _dot(v, v), -_dot(v, acceleration)
        return jnp.where(square == 0, 0.0, jnp.where(rate > 0, square**1.5 / jnp.where(rate > 0, rate, 1.0), jnp.inf))


def _dot(one: Parameters, other: Parameters) -> Array:
    return jnp.vdot(one[0], other[0]) + jnp.vdot(one[1], other[1])


@partial(jax.jit, static_argnames="flow", compiler_options=QUICK)
def observe(y: Parameters, data: Data, *, flow: Flow) -> tuple[Observed, Array]:
    """What is kept of a state, and how far it will still move."""
    return flow.observe(y, data), flow.way_left(y, data)


@partial(jax.jit, static_argnames=("flow", "solver", "max_steps"), compiler_options=QUICK)
def integrate(
    y: Parameters, t: float, end: float, data: Data, rtol: float, *, flow: Flow, solver: str, max_steps: int
) -> tuple[Array, Parameters, Mapping[str, Array]]:
    """The flow from (t, y) to ``end``, or until the steps are used up.

    Times are reached by ending there: interpolated values are 10 to 100 times less accurate than steps, and a program
    that saves and interpolates takes twice as long to compile.

    Args:
        y: parameters (V (d, n), a (n,)) at time t.
        rtol: tolerance of each step, relative and absolute.
        solver: a key of `SOLVERS`.

    Returns:
        the time reached, the parameters there, diffrax's statistics.
    """
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(flow.velocity),
        SOLVERS[solver],
        t0=t,
        t1=end,
        dt0=None,
        y0=y,
        args=data,
        stepsize_controller=diffrax.PIDController(rtol=rtol, atol=rtol),
        max_steps=max_steps,
        throw=False,
    )
    assert solution.ts is not None
    return solution.ts[0], jax.tree.map(lambda leaf: leaf[0], solution.ys), solution.stats
