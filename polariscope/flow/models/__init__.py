"""Models: how parameters make attention logits. ``REGISTRY`` imports no JAX."""

from polariscope.registry import Registry

REGISTRY = Registry(
    "model",
    {
        "value": ("polariscope.flow.models.value:MODEL", "β = V σ(a)"),
        "tied": ("polariscope.flow.models.tied:MODEL", "β = U σ(Ua), U square; U is given as V0"),
        "keys": ("polariscope.flow.models.keys:KEYS", "β = V σ(Kq), the keys K trained, the query q fixed"),
        "query": ("polariscope.flow.models.keys:QUERY", "β = V σ(Kq), the query q trained, the keys K fixed"),
        "keys-query": ("polariscope.flow.models.keys:BOTH", "β = V σ(Kq), both trained"),
    },
)
get = REGISTRY.get
