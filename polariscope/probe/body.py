"""A model without its head: what a probe runs, what it is fed, and which layers it has."""

import inspect
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.modeling_layers import GradientCheckpointingLayer

from polariscope.errors import InputError

_SENSES = re.compile(r"vision|visual|image|audio|speech|patcher", re.IGNORECASE)
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
        if head is None or self.model is self.network:
            return hidden
        if isinstance(head, nn.ModuleList):  # one for each codebook of a sound
            return torch.cat([one(hidden) for one in head], dim=-1)
        return head(hidden)


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
    if _fed_with_images(model):
        return "vision"
    decides = model.config.get_text_config(decoder=True)
    name = type(model).__name__
    causal = "CausalLM" in name or "LMHead" in name or getattr(decides, "is_decoder", False)
    return "decoder" if causal or _looks_back_only(model) else "encoder"


def _fed_with_images(model: PreTrainedModel) -> bool:
    takes = inspect.signature(model.forward).parameters
    return model.main_input_name == "pixel_values" and "input_ids" not in takes


def _looks_back_only(model: PreTrainedModel) -> bool:
    """Whether another last token leaves everything before it as it was."""
    ids = torch.arange(8, device=model.device)[None]
    with evaluating(model):
        one, other = (
            model.base_model(input_ids=x)[0][:, :-1] for x in (ids, ids.clone().index_fill_(1, ids[0, -1], 0))
        )
    return bool(torch.allclose(one, other, rtol=1e-4, atol=1e-5))


def _layers(network: nn.Module, model: PreTrainedModel) -> tuple[Layer, ...]:
    """The layers of all stacks: of every part that holds lists of the configured length, the list with most weights.

    Where no list has that length, the lists of what transformers calls a layer. What sees or hears for a language model
    is left out. Layers of several lists in one stack are numbered on.
    """
    vision = _fed_with_images(model)
    lists = {
        path: part
        for path, part in network.named_modules()
        if isinstance(part, nn.ModuleList) and len(part) and (vision or not _SENSES.search(path))
    }
    counts = _layer_counts(model)
    fitting = {path: part for path, part in lists.items() if len(part) in counts}
    if not fitting:
        fitting = {path: part for path, part in lists.items() if isinstance(part[0], GradientCheckpointingLayer)}
    config = model.config.get_text_config(decoder=True)
    types = getattr(config, "layer_types", None) or getattr(config, "layers_block_type", None) or []
    layers: dict[str, list[Layer]] = {"encoder": [], "decoder": []}
    for path, part in _outermost(_heaviest(fitting)).items():
        stack = "encoder" if "encoder" in path and getattr(model.config, "is_encoder_decoder", False) else "decoder"
        own = types if len(types) == len(part) else [""] * len(part)
        before = len(layers[stack])
        layers[stack] += [Layer(stack, before + i, layer, str(own[i])) for i, layer in enumerate(part)]
    return (*layers["encoder"], *layers["decoder"])


def _layer_counts(model: PreTrainedModel) -> set[Any]:
    names = ("num_hidden_layers", "encoder_layers", "decoder_layers", "num_layers", "num_decoder_layers", "n_layer")
    configs = (model.config, model.config.get_text_config(decoder=True))
    return {getattr(config, name, None) for config in configs for name in names}


def _heaviest(lists: dict[str, nn.ModuleList]) -> dict[str, nn.ModuleList]:
    """Of the lists in the same part, the one with most weights among those with attention, if there are any."""
    best: dict[str, tuple[bool, int, str]] = {}
    for path, part in lists.items():
        parent = path.rpartition(".")[0]
        attends = any("attention" in type(inner).__name__.lower() for inner in part.modules())
        size = sum(p.numel() for p in part.parameters())
        best[parent] = max(best.get(parent, (False, 0, "")), (attends, size, path))
    return {path: lists[path] for _, _, path in best.values() if path}


def _outermost(lists: dict[str, nn.ModuleList]) -> dict[str, nn.ModuleList]:
    return {path: part for path, part in lists.items() if not any(path.startswith(f"{other}.") for other in lists)}


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
