"""Kullback-Leibler divergence from a distribution to the predicted one."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from polariscope.errors import InputError
from polariscope.flow.losses._loss import Data, Loss


def value(beta: Any, data: Data) -> Any:
    """ℓ(β) = KL(p ‖ softmax(β)) = Σ pᵢ (log pᵢ - log softmax(β)ᵢ), in nats; terms with pᵢ = 0 are 0."""
    p = data["p"]
    return jnp.sum(jax.scipy.special.xlogy(p, p)) - jnp.vdot(p, jax.nn.log_softmax(beta))


def check(data: Any, d: int) -> None:
    """Refuses a p that is not a distribution (sum 1 to 1e-9, nothing negative)."""
    p = data["p"]
    if np.any(p < 0) or abs(p.sum() - 1) > 1e-9:
        raise InputError(
            "p",
            got=f"entries from {p.min():g} to {p.max():g} with sum {p.sum():.12g}",
            expected="a distribution: nothing negative, sum 1",
            fix="divide p by its sum",
        )


LOSS = Loss("kl", value, {"p": "d"}, check)
