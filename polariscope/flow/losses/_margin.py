"""Losses of a margin: the links, the linear margin ⟨target, β⟩, and what a target must be."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from array_api_compat import array_namespace

from polariscope.errors import InputError
from polariscope.flow.losses._loss import Data, Link, Loss

SHORTEST = 1e-100
"""Least length of a target: its square, and what is divided by it, must be numbers."""


def log_softplus(x: Any) -> Any:
    """log log(1 + exp(x)) of a NumPy or JAX array, exact where exp(x) underflows: there it is x."""
    xp = array_namespace(x)
    small = x < -37.0  # below, log(1 + e^x) is e^x to the last bit
    return xp.where(small, x, xp.log(xp.logaddexp(xp.zeros_like(x), xp.where(small, xp.zeros_like(x), x))))


def softplus(x: Any) -> Any:
    """log(1 + exp(x)) of a NumPy or JAX array."""
    xp = array_namespace(x)
    return xp.logaddexp(xp.zeros_like(x), x)


def sigmoid(x: Any) -> Any:
    """1/(1 + exp(-x)) of a NumPy or JAX array, without overflow."""
    xp = array_namespace(x)
    return 0.5 * (1.0 + xp.tanh(0.5 * x))


LOGISTIC = Link(lambda m: log_softplus(-m), softplus, sigmoid)
"""f(m) = log(1 + e^-m), -f' = 1/(1 + e^m)."""
EXPONENTIAL = Link(lambda m: -m, lambda m: m, lambda m: m * 0.0 + 1.0)
"""f(m) = e^-m = -f'."""


def linear(beta: Any, data: Data) -> Any:
    """z = ⟨target, β⟩."""
    return jnp.vdot(data["target"], beta)


def check_target(data: Any, d: int) -> None:
    """Refuses the zero target, for which every predictor has the same loss, and lengths whose square is no number."""
    if not np.any(data["target"]):
        raise InputError(
            "target", got="the zero vector", expected="a direction to fit", fix="give at least one entry that is not 0"
        )
    with np.errstate(over="ignore"):
        size = np.hypot.reduce(data["target"])  # whose squares need not be numbers
    if not SHORTEST < size < 1 / SHORTEST:
        raise InputError(
            "length of the target",
            got=f"about {size:.3g}",
            expected=f"{SHORTEST:g} to {1 / SHORTEST:g}",
            fix="scale the target and V0",
        )


def linear_loss(name: str, value: Callable[[Any], Any], link: Link) -> Loss:
    """A loss f(⟨target, β⟩), from f as a JAX function and as a `Link`."""
    return Loss(
        name,
        lambda beta, data: value(linear(beta, data)),
        {"target": "d"},
        check_target,
        lambda beta, data: link.log_value(linear(beta, data)),
        linear,
        link,
        linear=True,
    )
