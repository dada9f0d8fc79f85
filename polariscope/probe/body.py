"""A language model without its head: what a probe runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from polariscope.errors import InputError


@dataclass(frozen=True)
class Body:
    """A language model without its head.

    Args:
        model: the whole model.
        network: the part that gives the last hidden states.
        layers: the decoder layers, in order.
    """

    model: PreTrainedModel
    network: nn.Module
    layers: tuple[nn.Module, ...]

    def __call__(self, ids: list[int]) -> Tensor:
        """Last hidden states, (1, T, D), of one document, without a cache."""
        rows = getattr(self.model.get_input_embeddings(), "num_embeddings", None)
        if rows is not None and max(ids) >= rows:
            raise InputError(
                "token",
                got=f"id {max(ids)}",
                expected=f"ids below {rows}, the model's vocabulary",
                fix="use the tokenizer that belongs to the model",
            )
        tokens = torch.tensor([ids], device=self.model.device)
        return self.network(input_ids=tokens, use_cache=False).last_hidden_state

    def head(self, hidden: Tensor) -> Tensor:
        """Logits of hidden states; the hidden states themselves where the model has no head."""
        head = self.model.get_output_embeddings()
        return hidden if head is None else head(hidden)


def body_of(model: nn.Module) -> Body:
    """The body of a causal language model of transformers.

    Raises:
        InputError: if the model is not one whose attention goes through AttentionInterface.
    """
    kind = kind_of(model)
    if not isinstance(model, PreTrainedModel) or not type(model)._can_set_attn_implementation():
        raise InputError(
            "model without an exchangeable attention",
            got=kind,
            expected="a transformers model whose attention goes through AttentionInterface",
            fix="load another model; Llama, Mistral, Qwen, GPT-2, GPT-NeoX, OPT and Gemma are such families",
        )
    if getattr(model.config, "is_encoder_decoder", False):
        raise InputError("model", got=kind, expected="a decoder-only language model", fix="load another model")
    if model.device.type == "mps":
        raise InputError("device", got="mps, which has no float64", expected="cpu or cuda", fix="--device cpu")
    network = model.base_model
    count = model.config.get_text_config(decoder=True).num_hidden_layers
    lists = (part for part in network.modules() if isinstance(part, nn.ModuleList) and len(part) == count)
    layers = next(lists, None)
    if layers is None:
        raise InputError("model", got=kind, expected=f"a list of its {count} layers", fix="load another model")
    return Body(model, network, tuple(layers))


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluation mode and no gradients inside; every part's training flag is put back afterwards."""
    training = [part for part in model.modules() if part.training]
    model.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        for part in training:
            part.training = True


def kind_of(model: nn.Module) -> str:
    """Class and model type, for messages."""
    config = getattr(model, "config", None)
    return f"{type(model).__name__} ({getattr(config, 'model_type', 'no model type')})"
