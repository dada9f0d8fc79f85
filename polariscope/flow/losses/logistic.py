"""Logistic loss of a margin."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from array_api_compat import array_namespace

from polariscope.errors import InputError
from polariscope.flow.losses._loss import Data, Loss

SHORTEST = 1e-100
"""Least length of a target: its square, and what is divided by it, must be numbers."""


def value(beta: Any, data: Data) -> Any:
    """ℓ(β) = log(1 + exp(-z)) with the margin z = ⟨target, β⟩."""
    return jax.nn.softplus(-jnp.vdot(data["target"], beta))


def log_softplus(x: Any) -> Any:
    """log log(1 + exp(x)) of a NumPy or JAX array, exact where exp(x) underflows: there it is x."""
    xp = array_namespace(x)
    small = x < -37.0  # below, log(1 + e^x) is e^x to the last bit
    return xp.where(small, x, xp.log(xp.logaddexp(xp.zeros_like(x), xp.where(small, xp.zeros_like(x), x))))


def log_value(beta: Any, data: Data) -> Any:
    """log ℓ(β); about -z for a large margin."""
    return log_softplus(-jnp.vdot(data["target"], beta))


def check(data: Any) -> None:
    """Refuses the zero target, for which every predictor has the same loss, and lengths whose square is no number."""
    if not np.any(data["target"]):
        raise InputError(
            "target", got="the zero vector", expected="a direction to fit", fix="give at least one entry that is not 0"
        )
    size = np.abs(data["target"]).max()
    if not SHORTEST < size < 1 / SHORTEST:
        raise InputError(
            "length of the target",
            got=f"about {size:.3g}",
            expected=f"{SHORTEST:g} to {1 / SHORTEST:g}",
            fix="scale the target and V0",
        )


LOSS = Loss("logistic", value, {"target": "d"}, check, log_value, clock="path")
