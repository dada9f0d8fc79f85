"""Gradient flows of any loss, score map and model, in ordinary time: one stretch of many flows at a time."""

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from polariscope.flow.charts import Charts
from polariscope.flow.compiling import QUICK, each, one_and_many
from polariscope.flow.losses._loss import Loss
from polariscope.flow.models._model import Model
from polariscope.flow.problem import Problem

SOLVERS = {"explicit": diffrax.Dopri8(), "implicit": diffrax.Kvaerno5()}
PUSH = 1e-6
"""How far above the mean, relative to the largest, a payoff counts as pushing a key off the edge it rests on."""
FAINT = 1e-8
"""And absolutely, per size of V: what is below rounding errors of the state says nothing."""
STATISTICS = ("num_steps", "num_accepted_steps", "num_rejected_steps")
Trained = Mapping[str, Array]


class Observed(NamedTuple):
    """What is kept of a state: s, a, V's column norms and projections Vᵀβ* (n,), ℓ and log ℓ."""

    s: Any
    a: Any
    column_norms: Any
    u: Any
    objective: Any
    log_objective: Any


class Data(NamedTuple):
    """What a velocity depends on beside the trained parameters.

    Attributes:
        loss: the loss's data. fixed: parameters that are not trained. which: index of the score map.
        where: keys that have weight, or may get it, (n,). sign: of the logits on the smooth piece, (n,).
        edge: keys that rest on the edge of the piece, at a kink, (n,).
        alike: for every key the first one that starts as it does, (n,).
    """

    loss: Mapping[str, Any]
    fixed: Mapping[str, Any]
    which: Any
    where: Any
    sign: Any
    edge: Any
    alike: Any


class Flow(NamedTuple):
    """A velocity field on the trained parameters, made of a model, score maps and a loss.

    ``pieces``: whether score maps are taken piece by piece (`polariscope.flow.chart`), which needs a model whose
    logits move only by their own payoffs. ``tied``: whether some keys start alike, and are to stay so.
    """

    model: Model
    charts: Charts
    loss: Loss
    pieces: bool
    tied: bool = False

    def weights(self, y: Trained, data: Data) -> Array:
        """s = σ(logits)."""
        a = self.model.logits({**data.fixed, **y})
        if self.pieces:
            return self.charts.smooth(data.which, a, data.sign, data.where)
        return self.charts.whole(data.which, a, data.where)

    def objective(self, y: Trained, data: Data) -> Array:
        """L = ℓ(V s)."""
        return self.loss.value(y["V"] @ self.weights(y, data), data.loss)

    def velocity(self, t: Any, y: Trained, data: Data) -> Trained:
        """-∇L; keys that are alike move alike, to the last bit: rounding must not break a tie that is exact."""
        return self._mirrored(_velocity(self, y, data), data.alike) if self.tied else _velocity(self, y, data)

    def _mirrored(self, v: Trained, alike: Array) -> Trained:
        """With the tied model keys are alike only where a = 0 stays 0 (`polariscope.flow.ties.alike`)."""
        first = {"V": lambda x: x[:, alike]}
        for name, shape in self.model.needs.items():
            if shape[0] == "n":
                first[name] = lambda x: x[alike]
        if self.model.square:
            first["a"] = lambda x: jnp.where((alike == jnp.arange(len(alike))).all(), x, 0.0)
        return {name: first.get(name, lambda x: x)(x) for name, x in v.items()}

    def observe(self, y: Trained, data: Data) -> Observed:
        """What is kept of a state."""
        s = self.weights(y, data)
        beta = y["V"] @ s
        value = self.loss.value(beta, data.loss)
        log = self.loss.log_value or (lambda beta, data: jnp.log(jnp.maximum(value, 0.0)))
        u = y["V"].T @ data.loss["target"] if "target" in data.loss else jnp.full(s.shape, jnp.nan)
        a = self.model.shown({**data.fixed, **y})
        return Observed(s, a, jnp.linalg.norm(y["V"], axis=0), u, value, log(beta, data.loss))

    def gone(self, y: Trained, data: Data) -> Array:
        """How far each key is above the weight at which it drops out, (n,); infinite for those that do not."""
        above = self.weights(y, data) - self.charts.floor(data.which)
        return jnp.where(data.where, above, jnp.inf)

    def pushed(self, y: Trained, data: Data) -> Array:
        """Keys that rest on an edge and whose payoff would take them off it, boolean (n,)."""
        s = self.weights(y, data)
        payoff = -y["V"].T @ jax.grad(lambda beta: self.loss.value(beta, data.loss))(y["V"] @ s)
        above = payoff - self.charts.mean_payoff(data.which, s, payoff, data.where)
        least = PUSH * jnp.abs(payoff).max() + FAINT * (1.0 + jnp.abs(y["V"]).max())
        return data.edge & (above > least)

    def stop(self, t: Any, y: Trained, data: Data, **_: Any) -> Array:
        """Whether the smooth piece has ended."""
        return jnp.any(self.gone(y, data) < 0) | jnp.any(self.pushed(y, data))


def whole(problem: Problem) -> tuple[Flow, Trained, Data]:
    """One problem with its score map as it is, kinks and all: the flow, the start of what is trained, and the data."""
    names = ("V", *problem.model.trained)
    flow = Flow(problem.model, Charts.of([problem.scores]), problem.loss, pieces=False)
    y: dict[str, Any] = {key: problem.parameters[key] for key in names}
    fixed = {key: value for key, value in problem.parameters.items() if key not in names}
    none = np.zeros(len(problem.where), bool)
    return (
        flow,
        y,
        Data(dict(problem.data), fixed, np.int32(0), problem.where, np.sign(problem.a0), none, np.arange(len(none))),
    )


def start_weights(problem: Problem) -> np.ndarray:
    """s at the start, (n,)."""
    flow, y, data = whole(problem)
    with jax.enable_x64(True):
        return np.asarray(flow.weights(y, data))


@partial(jax.jit, static_argnums=0)  # traced once for the many places where it is called
def _velocity(flow: Flow, y: Trained, data: Data) -> Trained:
    return jax.tree.map(jnp.negative, jax.grad(flow.objective)(y, data))


@partial(jax.jit, static_argnames="flow", compiler_options=QUICK)
def observe(y: Trained, data: Data, *, flow: Flow) -> tuple[Observed, Trained]:
    """What is kept of states, and their velocities; every argument has a leading axis of flows."""
    return jax.vmap(lambda y, data: (flow.observe(y, data), flow.velocity(None, y, data)))(y, data)


@partial(jax.jit, static_argnames="flow", compiler_options=QUICK)
def edges(y: Trained, data: Data, *, flow: Flow) -> tuple[Array, Array]:
    """`Flow.gone` and `Flow.pushed` of states."""
    return jax.vmap(lambda y, data: (flow.gone(y, data), flow.pushed(y, data)))(y, data)


def integrate(
    y: Trained, t: np.ndarray, end: np.ndarray, data: Data, rtol: float, *, together: bool, **how: Any
) -> tuple[np.ndarray, Trained, Mapping[str, np.ndarray]]:
    """Flows from (t, y) to ``end``, which may be before t, or until the steps are used up or a smooth piece has ended.

    Times are reached by ending there: interpolated values are 10 to 100 times less accurate than steps, and a program
    that saves and interpolates takes twice as long to compile.

    Args:
        y: trained parameters at times t (b,), each with a leading axis of b flows, as ``end`` and ``data``.
        rtol: tolerance of each step, relative and absolute.
        together: side by side, or in turn those that have a way to go.
        how: flow; solver, a key of `SOLVERS`; max_steps; watch, whether to stop at the step in which a smooth piece
            ends.

    Returns:
        the times reached, the parameters there, those of diffrax's statistics named in `STATISTICS`.
    """
    if together:
        return each(_one, _many, (y, t, end, data), rtol, together=True, **how)
    rows = np.flatnonzero(end != t)
    if not len(rows):
        return t, y, dict.fromkeys(STATISTICS, np.zeros(len(t), int))
    moving = jax.tree.map(lambda v: np.asarray(v)[rows], (y, t, end, data))
    found = each(_one, _many, moving, rtol, together=False, **how)

    def put(old: Any, new: np.ndarray) -> np.ndarray:
        old = np.array(old)
        old[rows] = new
        return old

    return jax.tree.map(put, (t, y, dict.fromkeys(STATISTICS, np.zeros(len(t), int))), found)


def _first_step(flow: Flow, y: Trained, t: Array, end: Array, data: Data, rtol: float) -> Array:
    """A step from t towards ``end`` in which y moves by about a hundredth of its size, each entry taken at least as 1.

    Usual choices are in units of t: at t = 10¹⁷ they give steps that do not change t any more.
    """

    def size(tree: Trained) -> Array:
        scaled = jax.tree.map(lambda v, own: v / (1.0 + jnp.abs(own)), tree, y)
        return jnp.sqrt(sum(jnp.sum(v * v) for v in jax.tree.leaves(scaled)))

    speed = size(flow.velocity(t, y, data))
    far = jnp.abs(end - t)
    step = jnp.where(speed > 0, 0.01 / jnp.where(speed > 0, speed, 1.0), far)
    return jnp.sign(end - t) * jnp.minimum(far, jnp.maximum(step, rtol * jnp.abs(t)))


def _solve(
    y: Trained, t: Array, end: Array, data: Data, rtol: float, flow: Flow, solver: str, max_steps: int, watch: bool
) -> tuple[Array, Trained, Mapping[str, Array]]:
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(flow.velocity),
        SOLVERS[solver],
        t0=t,
        t1=end,
        dt0=_first_step(flow, y, t, end, data, rtol),
        y0=y,
        args=data,
        stepsize_controller=diffrax.PIDController(rtol=rtol, atol=rtol),
        max_steps=max_steps,
        event=diffrax.Event(flow.stop) if watch else None,
        throw=False,
    )
    assert solution.ts is not None
    statistics = {key: solution.stats[key] for key in STATISTICS}
    return solution.ts[0], jax.tree.map(lambda leaf: leaf[0], solution.ys), statistics


_one, _many = one_and_many(_solve, ("flow", "solver", "max_steps", "watch"))
