"""Models: how parameters make attention logits and a predictor. ``REGISTRY`` imports no JAX."""

from polariscope.registry import Registry

REGISTRY = Registry(
    "model",
    {
        "value": ("polariscope.flow.models.value:MODEL", "β = V σ(a)"),
        "tied": ("polariscope.flow.models.tied:MODEL", "β = U σ(Ua), U square; U is given as V0"),
    },
)
get = REGISTRY.get
