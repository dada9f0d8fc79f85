"""Discrete optimizers of L(V, a), through optax: a table of them, and their runs at several step sizes side by side."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array

from polariscope.errors import InputError
from polariscope.flow.compiling import QUICK
from polariscope.flow.ordinary_time import Data, Flow, Trained, whole
from polariscope.flow.problem import Problem
from polariscope.registry import Registry


@dataclass(frozen=True)
class Optimizer:
    """An optimizer, and what its steps are worth in time.

    Args:
        name: for tables and messages.
        make: from the step size η (a JAX scalar) to an optax transformation. Compared by identity in compilations.
        clock: the time that passes in one step, in units of η. It is 1/(1 - μ) for momentum μ, 1 for all others.
        summary: one line.
        source: author, year, arXiv number.
    """

    name: str
    make: Callable[[Any], Any]
    clock: float = 1.0
    summary: str = ""
    source: str = ""


def heavy_ball(momentum: float = 0.9, nesterov: bool = False) -> Optimizer:
    """m ← μm + g, θ ← θ - ηm; with ``nesterov`` θ ← θ - η(g + μm).

    For η → 0 at fixed μ both follow gradient flow at the time ηk/(1 - μ).

    Args:
        momentum: μ, from 0 to less than 1.
        nesterov: whether to step with the gradient and the momentum after it.

    Raises:
        InputError: for μ outside [0, 1).

    Source: Kovachki, Stuart (2021), arXiv:1906.04285.
    """
    if not 0 <= momentum < 1:
        raise InputError("momentum", got=repr(momentum), expected="0 to less than 1", fix="try 0.9")
    kind = "Nesterov momentum" if nesterov else "heavy ball"
    return Optimizer(
        name="nesterov" if nesterov else "heavy-ball",
        make=partial(optax.sgd, momentum=momentum, nesterov=nesterov),
        clock=1 / (1 - momentum),
        summary=f"{kind} with μ = {momentum:g}",
        source="Kovachki, Stuart (2021), arXiv:1906.04285",
    )


REGISTRY = Registry("optimizer", {})
for _one in (
    Optimizer("gd", optax.sgd, summary="gradient descent, θ ← θ - ηg"),
    heavy_ball(0.9),
    heavy_ball(0.9, nesterov=True),
    Optimizer(
        "adam",
        optax.adam,
        summary="Adam with β₁ = 0.9, β₂ = 0.999, ε = 1e-8",
        source="Kingma, Ba (2014), arXiv:1412.6980",
    ),
    Optimizer(
        "adamw",
        partial(optax.adamw, weight_decay=1e-2),
        summary="Adam with decoupled weight decay 0.01",
        source="Loshchilov, Hutter (2017), arXiv:1711.05101",
    ),
    Optimizer(
        "sign",
        optax.sign_sgd,
        summary="sign descent, θ ← θ - η sign(g)",
        source="Bernstein et al. (2018), arXiv:1802.04434",
    ),
):
    REGISTRY.add(_one.name, _one, _one.summary)


def get(optimizer: str | Optimizer | Callable[[Any], Any]) -> Optimizer:
    """The optimizer of that name; an `Optimizer` as it is; a function from η to an optax transformation, wrapped.

    Raises:
        InputError: for an unknown name, with the nearest known ones.
    """
    if isinstance(optimizer, Optimizer):
        return optimizer
    if callable(optimizer):
        return Optimizer(getattr(optimizer, "__name__", "custom"), optimizer)
    return REGISTRY.get(optimizer)


class Run(NamedTuple):
    """What is kept of runs at e step sizes, at m steps.

    Attributes:
        s: attention weights, (e, m, n).
        objective: L, (e, m).
        size: the largest absolute value of a parameter, (e, m).
    """

    s: Array
    objective: Array
    size: Array


def run(problem: Problem, optimizer: Optimizer, step_sizes: np.ndarray, k: np.ndarray) -> Run:
    """The optimizer from the start at the numbers of steps ``k`` (m,), for every step size (e,)."""
    flow, y, data = whole(problem)
    # optax mixes integers and floats, which strict type promotion refuses.
    with jax.enable_x64(True), jax.numpy_dtype_promotion("standard"):
        gaps = np.diff(k, prepend=0)
        found = _run(y, data, step_sizes, gaps, flow=flow, optimizer=optimizer)
        return jax.tree.map(np.asarray, found)


@partial(jax.jit, static_argnames=("flow", "optimizer"), compiler_options=QUICK)
def _run(y: Trained, data: Data, step_sizes: Array, gaps: Array, *, flow: Flow, optimizer: Optimizer) -> Run:
    def alone(step_size: Array) -> Run:
        transform = optimizer.make(step_size)

        def step(_: Any, carry: Any) -> Any:
            y, memory = carry
            updates, memory = transform.update(jax.grad(flow.objective)(y, data), memory, y)
            return optax.apply_updates(y, updates), memory

        def save(carry: Any, gap: Array) -> tuple[Any, Run]:
            carry = jax.lax.fori_loop(0, gap, step, carry)
            return carry, _seen(carry[0], data, flow)

        return jax.lax.scan(save, (y, transform.init(y)), gaps)[1]

    return jax.vmap(alone)(step_sizes)


def _seen(y: Trained, data: Data, flow: Flow) -> Run:
    size = jnp.stack([jnp.abs(value).max() for value in y.values()]).max()
    return Run(flow.weights(y, data), flow.objective(y, data), size)
