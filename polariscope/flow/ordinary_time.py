"""Gradient flow of any loss, score map and model, in ordinary time."""

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import diffrax
import jax
import jax.numpy as jnp
from jaxtyping import Array

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
    """What a velocity depends on beside the parameters: the loss's data, the score map's index, a tolerance."""

    loss: Mapping[str, Array]
    which: Array
    near: Array


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

    def observe(self, t: Any, y: Parameters, data: Data) -> Observed:
        """What is kept of a state."""
        s = self.weights(y, data)
        beta = self.model.beta(y[0], s)
        value = self.loss.value(beta, data.loss)
        log = self.loss.log_value or (lambda beta, data: jnp.log(jnp.maximum(value, 0.0)))
        u = y[0].T @ data.loss["target"] if "target" in data.loss else jnp.full(s.shape, jnp.nan)
        return Observed(s, y[1], jnp.linalg.norm(y[0], axis=0), u, value, log(beta, data.loss))

    def converged(self, t: Any, y: Parameters, data: Data, **_: Any) -> Array:
        """Whether what is left of the motion is below ``near``.

        Near a minimum the velocity v decays at the rate λ of the slowest direction left in it, λ = -⟨v, v̇⟩/⟨v, v⟩, and
        the way left is |v|/λ. Where decay is slower than exponential, as for the logistic loss, λ falls like 1/t, and
        this never holds.
        """
        v, acceleration = jax.jvp(lambda y: self.velocity(t, y, data), (y,), (self.velocity(t, y, data),))
        square, rate = _dot(v, v), -_dot(v, acceleration)
        return (square == 0) | ((rate > 0) & (square**1.5 <= data.near * rate))


def _dot(one: Parameters, other: Parameters) -> Array:
    return jnp.vdot(one[0], other[0]) + jnp.vdot(one[1], other[1])


class Piece(NamedTuple):
    """Part of a flow: what was asked for, what was seen on the way, and where it ended (time, parameters, observed)."""

    asked: Observed
    seen: Observed
    end: Observed
    t: Array
    y: Parameters
    result: Any
    stats: Any


@partial(jax.jit, static_argnames=("model", "maps", "loss", "solver", "max_steps"))
def integrate(
    y: Parameters, t: Array, times: Array, grid: Array, data: Data, rtol: float,
    *, model: Model, maps: Maps, loss: Loss, solver: str, max_steps: int,
) -> Piece:  # fmt: skip
    """The flow from (t, y) to the last of ``times``, until it has converged or the steps are used up.

    Args:
        y: parameters (V (d, n), a (n,)) at time t.
        times: where steps end exactly, (k,), none before t. grid: where the path is interpolated for checks, (m,).
        rtol: tolerance of each step, relative and absolute.
        solver: a key of `SOLVERS`.
    """
    flow = Flow(model, maps, loss)
    controller = diffrax.ClipStepSizeController(diffrax.PIDController(rtol=rtol, atol=rtol), step_ts=times)
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(flow.velocity),
        SOLVERS[solver],
        t0=t,
        t1=times[-1],
        dt0=None,
        y0=y,
        args=data,
        saveat=diffrax.SaveAt(
            subs=[
                diffrax.SubSaveAt(ts=times, fn=flow.observe),
                diffrax.SubSaveAt(ts=grid, fn=flow.observe),
                diffrax.SubSaveAt(t1=True, fn=flow.observe),
                diffrax.SubSaveAt(t1=True),
            ]
        ),
        stepsize_controller=controller,
        max_steps=max_steps,
        event=diffrax.Event(flow.converged),
        throw=False,
    )
    assert solution.ts is not None
    assert solution.ys is not None
    asked, seen, *last = solution.ys
    end, y = jax.tree.map(lambda leaf: leaf[0], last)
    return Piece(asked, seen, end, solution.ts[2][0], y, solution.result._value, solution.stats)
