"""Losses of the predictor β. ``REGISTRY`` lists them and imports no JAX."""

from polariscope.registry import Registry

REGISTRY = Registry(
    "loss",
    {
        "logistic": ("polariscope.flow.losses.logistic:LOSS", "log(1 + exp(-⟨target, β⟩))"),
        "exponential": ("polariscope.flow.losses.exponential:LOSS", "exp(-⟨target, β⟩)"),
        "cross-entropy": ("polariscope.flow.losses.cross_entropy:LOSS", "-log softmax(β)[label]"),
        "square": ("polariscope.flow.losses.square:LOSS", "½‖β - target‖²"),
        "regression": ("polariscope.flow.losses.regression:LOSS", "‖y - Xβ‖²"),
        "kl": ("polariscope.flow.losses.kl:LOSS", "KL(p ‖ softmax(β))"),
    },
)
get = REGISTRY.get
