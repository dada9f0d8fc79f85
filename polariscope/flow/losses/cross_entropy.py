r"""Cross-entropy over the entries of β as classes, for one labelled example.

    ℓ(β) = -log softmax(β)_c = log(1 + e^-m),    m = β_c - log Σ_{j≠c} exp βⱼ,

the logistic loss of a margin that is not linear. For two classes m = β_c - βⱼ.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from polariscope.errors import InputError
from polariscope.flow.losses._loss import Data, Loss
from polariscope.flow.losses._margin import LOGISTIC


def margin(beta: Any, data: Data) -> Any:
    """m(β): how far the right class is above the others together."""
    right = jnp.arange(len(beta), dtype=beta.dtype) == data["label"]
    others = jax.scipy.special.logsumexp(jnp.where(right, -jnp.inf, beta))
    return jnp.sum(jnp.where(right, beta, 0.0)) - others


def value(beta: Any, data: Data) -> Any:
    """ℓ(β), in nats."""
    return jax.nn.softplus(-margin(beta, data))


def check(data: Any, d: int) -> None:
    """Refuses what is not the index of one of d classes, and a single class."""
    label = float(data["label"])
    if not 0 <= label < d or label != np.floor(label) or d < 2:
        raise InputError(
            "label",
            got=f"{label:g} for {d} classes",
            expected="the index of a class, of 2 at least, from 0 on",
            fix="mend label or V0",
        )


LOSS = Loss(
    "cross-entropy",
    value,
    {"label": ""},
    check,
    lambda beta, data: LOGISTIC.log_value(margin(beta, data)),
    margin,
    LOGISTIC,
)
