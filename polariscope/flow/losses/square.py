"""Square loss."""

from typing import Any

import jax.numpy as jnp

from polariscope.flow.losses._loss import Data, Loss


def value(beta: Any, data: Data) -> Any:
    """ℓ(β) = ½‖β - target‖²."""
    return 0.5 * jnp.sum((beta - data["target"]) ** 2)


LOSS = Loss("square", value, {"target": "d"})
