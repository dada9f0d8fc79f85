"""Logistic loss ℓ(β) = log(1 + exp(-z)) of the margin z = ⟨target, β⟩."""

import jax

from polariscope.flow.losses._margin import LOGISTIC, linear_loss

LOSS = linear_loss("logistic", lambda z: jax.nn.softplus(-z), LOGISTIC)
