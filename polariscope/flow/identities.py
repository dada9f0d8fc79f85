"""Identities of the velocity at a state: automatic differentiation of L against closed forms.

Source: Varre, Rofin, Flammarion (2026), arXiv:2603.06248.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from polariscope.errors import InputError
from polariscope.flow.compiling import QUICK
from polariscope.flow.losses._loss import Loss
from polariscope.flow.problem import Problem, read_problem


def objective(V: Array, a: Array, data: Mapping[str, Array], scores: Any, loss: Loss) -> Array:
    """L(V, a) = ℓ(V σ(a))."""
    return loss.value(V @ scores(a), data)


def replicator_residual(problem: Mapping[str, Any] | Problem) -> float:
    """How far the velocity at (V0, a0) is from replicator form with the payoff π = -Vᵀ∇ℓ(β):

        ȧ = s ∘ (π - ⟨s, π⟩),    ṡ = s ∘ (ȧ - ⟨s, ȧ⟩),

    that is ṡ = J Jᵀ π for softmax, where J = diag(s) - s sᵀ.

    Args:
        problem: of the value model, with any loss and any score map; its times are not used.

    Returns:
        the larger of the two relative differences, max|difference| / max|velocity|; 0 where nothing moves.

    Raises:
        InputError: as `read_problem`.
    """
    return _residual(problem, _replicator)


def predictor_residual(problem: Mapping[str, Any] | Problem, power: int = 2) -> float:
    """How far β̇ at (V0, a0) is from -(‖s‖² I + V C(s)² Vᵀ) ∇ℓ(β), relative to max|β̇|.

    Args:
        problem: as in `replicator_residual`.
        power: of C(s). A line of the source's Appendix D prints 1; 2 is right for softmax.
    """
    return _residual(problem, partial(_predictor, power=power))


def _residual(problem: Mapping[str, Any] | Problem, form: Any) -> float:
    p = problem if isinstance(problem, Problem) else read_problem({"t": [1.0], **problem})
    if p.model.name != "value":
        raise InputError("model", got=p.model.name, expected="value", fix="these are identities of the value model")
    with jax.enable_x64(True):
        found = form(p.V0, p.a0, dict(p.data), scores=p.scores, loss=p.loss)
        return float(max(_relative(one, other) for one, other in found))


def _relative(one: Array, other: Array) -> Array:
    scale = jnp.maximum(jnp.abs(one).max(), jnp.abs(other).max())
    return jnp.abs(one - other).max() / jnp.where(scale > 0, scale, 1.0)


def _velocity(V: Array, a: Array, data: Mapping[str, Array], **parts: Any) -> tuple[Array, Array]:
    """(V̇, ȧ) = -∇L by automatic differentiation."""
    gradient = jax.grad(partial(objective, **parts), argnums=(0, 1))(V, a, data)
    return -gradient[0], -gradient[1]


@partial(jax.jit, static_argnames=("scores", "loss"), compiler_options=QUICK)
def _replicator(V: Array, a: Array, data: Mapping[str, Array], scores: Any, loss: Loss) -> list[tuple[Array, Array]]:
    _, moved = _velocity(V, a, data, scores=scores, loss=loss)
    s, s_moved = jax.jvp(scores, (a,), (moved,))
    payoff = -V.T @ jax.grad(loss.value)(V @ s, data)
    a_form = s * (payoff - jnp.vdot(s, payoff))
    return [(moved, a_form), (s_moved, s * (a_form - jnp.vdot(s, a_form)))]


@partial(jax.jit, static_argnames=("scores", "loss", "power"), compiler_options=QUICK)
def _predictor(
    V: Array, a: Array, data: Mapping[str, Array], scores: Any, loss: Loss, power: int
) -> list[tuple[Array, Array]]:
    moved = _velocity(V, a, data, scores=scores, loss=loss)
    _, beta_moved = jax.jvp(lambda V, a: V @ scores(a), (V, a), moved)
    s = scores(a)
    gradient = jax.grad(loss.value)(V @ s, data)
    covariance = jnp.diag(s) - jnp.outer(s, s)
    shift = V @ jnp.linalg.matrix_power(covariance, power) @ V.T @ gradient
    return [(beta_moved, -jnp.vdot(s, s) * gradient - shift)]
