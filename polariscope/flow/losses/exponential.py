"""Exponential loss ℓ(β) = exp(-z) of the margin z = ⟨target, β⟩: the path of the logistic loss, with another clock."""

import jax.numpy as jnp

from polariscope.flow.losses._margin import EXPONENTIAL, linear_loss

LOSS = linear_loss("exponential", lambda z: jnp.exp(-z), EXPONENTIAL)
