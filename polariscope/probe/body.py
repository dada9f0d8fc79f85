"""A model without its head: what a probe runs, what it is fed, and which layers it has."""

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from polariscope.errors import InputError

KINDS = ("decoder", "encoder", "encoder-decoder", "vision")


@dataclass(frozen=True, eq=False)
class Layer:
    """One layer of a stack.

    Args:
        stack: "decoder" or "encoder".
        index: its number in the stack, 0-based.
        module: the layer.
        type: what the configuration calls it, for example "full_attention" or "linear_attention"; "" if nothing.
    """

    stack: str
    index: int
    module: nn.Module = field(repr=False)
    type: str = ""


@dataclass(frozen=True)
class Body:
    """A model without its head.

    Args:
        model: the whole model.
        network: the part that gives the last hidden states.
        kind: "decoder", "encoder", "encoder-decoder" or "vision".
        layers: of all stacks, an encoder's first.
    """

    model: PreTrainedModel
    network: nn.Module
    kind: str
    layers: tuple[Layer, ...]

    def __call__(self, sample: list[int] | Tensor, **options: object) -> Tensor:
        """Last hidden states, (1, T, D), of one document or image, without a cache.

        Args:
            sample: token ids, or pixel values (C, height, width). An encoder-decoder reads a document in its encoder
                and is forced to write the same document, after its start token.
            **options: for the network.
        """
        return self.run({**self.inputs(sample), **options})

    def run(self, inputs: dict[str, Any], **options: object) -> Tensor:
        """Last hidden states, (B, T, D), of named inputs, without a cache."""
        if self.kind in ("decoder", "encoder-decoder"):
            options = {"use_cache": False, **options}
        return self.network(**{**inputs, **options})[0]

    def written(self, ids: list[int]) -> list[int]:
        """What the decoder reads: the ids themselves, but in an encoder-decoder its start token before them."""
        if self.kind != "encoder-decoder":
            return ids
        start = getattr(self.model.config, "decoder_start_token_id", None)
        return [0 if start is None else start, *ids[:-1]]

    def inputs(self, sample: list[int] | Tensor) -> dict[str, Tensor]:
        """The named inputs for one sample."""
        if isinstance(sample, Tensor):
            return {"pixel_values": sample[None].to(self.model.device, self.model.dtype)}
        rows = getattr(self.model.get_input_embeddings(), "num_embeddings", None)
        if rows is not None and max(sample) >= rows:
            raise InputError(
                "token",
                got=f"id {max(sample)}",
                expected=f"ids below {rows}, the model's vocabulary",
                fix="use the tokenizer that belongs to the model",
            )
        inputs = {"input_ids": torch.tensor([sample], device=self.model.device)}
        if self.kind == "encoder-decoder":
            inputs["decoder_input_ids"] = torch.tensor([self.written(sample)], device=self.model.device)
        return inputs

    def head(self, hidden: Tensor) -> Tensor:
        """Logits of hidden states; the hidden states themselves where the model has no head on them."""
        head = self.model.get_output_embeddings()
        return hidden if head is None or self.model is self.network else head(hidden)


def body_of(model: nn.Module) -> Body:
    """The body of a transformers model.

    Raises:
        InputError: if it is no transformers model, is on a device without float64, or has no layers.
    """
    kind = kind_of(model)
    if not isinstance(model, PreTrainedModel):
        raise InputError("model", got=kind, expected="a transformers model", fix="load another model")
    if model.device.type == "mps":
        raise InputError("device", got="mps, which has no float64", expected="cpu or cuda", fix="--device cpu")
    network = model.base_model
    layers = _layers(network, model)
    if not layers:
        raise InputError("model", got=f"{kind}, without a list of layers", expected="a transformer", fix="load another")
    return Body(model, network, _fed_with(model), layers)


def _fed_with(model: PreTrainedModel) -> str:
    if getattr(model.config, "is_encoder_decoder", False):
        return "encoder-decoder"
    if model.main_input_name == "pixel_values" and "input_ids" not in inspect.signature(model.forward).parameters:
        return "vision"
    decides = model.config.get_text_config(decoder=True)
    name = type(model).__name__
    causal = "CausalLM" in name or "LMHead" in name or getattr(decides, "is_decoder", False)
    return "decoder" if causal or _looks_back_only(model) else "encoder"


def _looks_back_only(model: PreTrainedModel) -> bool:
    """Whether another last token leaves everything before it as it was."""
    ids = torch.arange(8, device=model.device)[None]
    with evaluating(model):
        one, other = (
            model.base_model(input_ids=x)[0][:, :-1] for x in (ids, ids.clone().index_fill_(1, ids[0, -1], 0))
        )
    return bool(torch.allclose(one, other, rtol=1e-4, atol=1e-5))


def _layers(network: nn.Module, model: PreTrainedModel) -> tuple[Layer, ...]:
    """The layers of all stacks: of every part that holds lists of the configured length, the list with most weights."""
    config = model.config.get_text_config(decoder=True)
    names = ("num_hidden_layers", "encoder_layers", "decoder_layers", "num_layers", "num_decoder_layers", "n_layer")
    counts = {getattr(c, name, None) for c in (model.config, config) for name in names}
    found: dict[str, tuple[int, str, nn.ModuleList]] = {}
    for path, part in network.named_modules():
        if not isinstance(part, nn.ModuleList) or len(part) not in counts:
            continue
        parent = path.rpartition(".")[0]
        size = sum(p.numel() for p in part.parameters())
        if size > found.get(parent, (0, "", None))[0]:
            found[parent] = (size, path, part)
    layers: list[Layer] = []
    types = getattr(config, "layer_types", None) or getattr(config, "layers_block_type", None) or []
    inside: list[str] = []
    for _, path, part in found.values():
        if any(path.startswith(f"{outer}.") for outer in inside):
            continue
        inside.append(path)
        stack = "encoder" if "encoder" in path and getattr(model.config, "is_encoder_decoder", False) else "decoder"
        fitting = types if len(types) == len(part) else [""] * len(part)
        layers += [Layer(stack, index, layer, str(fitting[index])) for index, layer in enumerate(part)]
    return tuple(sorted(layers, key=lambda layer: layer.stack == "decoder"))


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
