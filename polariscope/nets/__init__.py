"""Attention kinds, each a similarity with a score map, and the small transformer that is trained with them."""

import importlib
from typing import TYPE_CHECKING, Any, NamedTuple

from polariscope.registry import Registry

if TYPE_CHECKING:
    from polariscope.nets._attention import Attention, attention
    from polariscope.nets.config import TransformerConfig
    from polariscope.nets.transformer import Output, Transformer

__all__ = [
    "REGISTRY",
    "SIMILARITIES",
    "Attention",
    "Kind",
    "Output",
    "Transformer",
    "TransformerConfig",
    "attention",
]


class Kind(NamedTuple):
    """An attention kind: logits a_ij = similarity(q_i, k_j), weights A_i = σ(a_i) over the visible keys.

    Args:
        similarity: a name in `SIMILARITIES`.
        scores: the name of the score map σ in `polariscope.scores.REGISTRY`.
    """

    similarity: str
    scores: str


SIMILARITIES = Registry(
    "similarity",
    {"scaled-dot": ("polariscope.nets.similarities:scaled_dot", "⟨q, k⟩/√d, d the width of a head")},
)

REGISTRY = Registry("attention kind", {})
for _name, _kind, _summary in (
    ("softmax", Kind("scaled-dot", "softmax"), "softmax of ⟨q,k⟩/√d"),
    ("sigmoid", Kind("scaled-dot", "sigmoid"), "logistic sigmoid of ⟨q,k⟩/√d, each key for itself"),
    ("sigmoid-normalized", Kind("scaled-dot", "sigmoid-normalized"), "sigmoid of ⟨q,k⟩/√d, divided by the row's sum"),
    ("uniform", Kind("scaled-dot", "uniform"), "the same weight for every visible key; queries and keys are not used"),
):
    REGISTRY.add(_name, _kind, _summary)

_HOMES = {
    "Attention": "_attention",
    "attention": "_attention",
    "Output": "transformer",
    "Transformer": "transformer",
    "TransformerConfig": "config",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"polariscope.nets.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'polariscope.nets' has no attribute {name!r}")
