"""Least-squares regression."""

from typing import Any

import jax.numpy as jnp

from polariscope.flow.losses._loss import Data, Loss


def value(beta: Any, data: Data) -> Any:
    """ℓ(β) = ‖y - Xβ‖², without a factor ½, so that its gradient is 2Xᵀ(Xβ - y)."""
    return jnp.sum((data["y"] - data["X"] @ beta) ** 2)


LOSS = Loss("regression", value, {"X": "md", "y": "m"})
