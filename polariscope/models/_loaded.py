"""What loading gives."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class LoadedModel:
    """A model ready to be measured.

    Args:
        model: a torch module in evaluation mode; ``model(input_ids).logits`` has shape (batch, T, vocabulary).
        tokenizer: its tokenizer, with the interface of transformers.
        name: the name that was asked for.
        source: the entry of ``REGISTRY`` that answered, for example ``"hub:NAME"``.
        revision: what identifies the weights: a hub commit, a sha256, or a version of the construction.
        dtype: the dtype the weights have now.
        checkpoint_dtype: the dtype they were stored in; precision changes what a probe measures.
        extras: what only this source has, for example the truth of ``planted``.
    """

    model: "torch.nn.Module" = field(repr=False)
    tokenizer: Any = field(repr=False)
    name: str
    source: str
    revision: str
    dtype: str
    checkpoint_dtype: str
    extras: Mapping[str, Any] = field(default_factory=dict)
