"""Inside a model: every attention call measured while it runs, and everything put back afterwards.

Two ways in. "interface": the model is switched, through transformers' AttentionInterface, to a function of ours that
computes output and statistics. "maps": the model's own eager attention makes its maps, and a hook reduces each one to
its statistics and drops it before the next layer begins.
"""

import itertools
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.masking_utils import causal_mask_function, eager_mask, sdpa_mask

from polariscope.errors import InputError
from polariscope.probe import blocks, maps
from polariscope.probe.attention import Call, Engine, MapStatistics
from polariscope.probe.body import Body, Layer, kind_of
from polariscope.probe.layout import Layout
from polariscope.probe.plain import plain
from polariscope.probe.selection import narrowed

WAYS = ("interface", "maps")

OnAttention = Callable[[Layer | None, nn.Module, MapStatistics | None], None]
"""Called once an attention call with the layer that is running, the attention module and the map's statistics."""
OnOutput = Callable[[Layer, Tensor], None]
"""Called with a layer and its output, (B, T, D)."""

_numbers = itertools.count()


class Measuring:
    """What is known about the forward that is running.

    Args:
        layer: the layer inside which the model is now.
        layout: where the documents of a batch lie; None: one document and nothing else.
        map_length: T of the maps to look for, where the model makes them itself. To be set before a forward.
    """

    def __init__(self) -> None:
        self.layer: Layer | None = None
        self.layout: Layout | None = None
        self.map_length = 0

    @contextmanager
    def laid_out(self, layout: Layout) -> Iterator[None]:
        """Inside, forwards are of a batch with this layout."""
        self.layout, self.map_length = layout, layout.shape[1]
        try:
            yield
        finally:
            self.layout = None


@contextmanager
def measuring(
    body: Body,
    on_attention: OnAttention,
    on_output: OnOutput | None = None,
    *,
    way: str = "interface",
    engine: Engine = blocks.attend,
    wanted: Collection[int] | None = None,
) -> Iterator[Measuring]:
    """Inside, every forward of the model reports what its attention did.

    Args:
        body: the model.
        on_attention, on_output: the listeners.
        way: "interface" or "maps".
        engine: what computes attention and statistics, with "interface".
        wanted: numbers of the layers to measure; None: all. Of the others ``on_attention`` gets no statistics.

    Yields:
        What may be set for the next forward.
    """
    now = Measuring()
    with ExitStack() as undo:
        for layer in body.layers:
            undo.callback(layer.module.register_forward_pre_hook(_enters(now, layer)).remove)
            undo.callback(layer.module.register_forward_hook(_leaves(now, layer, on_output)).remove)
        if way == "interface":
            undo.enter_context(_interface(body, now, on_attention, _choosing(now, engine, wanted)))
        else:
            undo.enter_context(_maps(body, now, on_attention, wanted))
        yield now


_Attend = Callable[[Call], tuple[Tensor, MapStatistics | None]]


def _choosing(now: Measuring, engine: Engine, wanted: Collection[int] | None) -> _Attend:
    """The engine in the layers that are wanted, plain attention in the others."""

    def attend(call: Call) -> tuple[Tensor, MapStatistics | None]:
        if wanted is None or now.layer is None or now.layer.index in wanted:
            return engine(call)
        return plain(call), None

    return attend


@contextmanager
def _interface(body: Body, now: Measuring, on_attention: OnAttention, engine: _Attend) -> Iterator[None]:
    model, name = body.model, f"polariscope_{next(_numbers)}"
    attention = _Attention(model, now, on_attention, engine)
    with _switched(model) as undo:
        # The library has `register` but no way back: the entries are taken out of its table by hand.
        AttentionInterface.register(name, attention)
        undo.callback(AttentionInterface._global_mapping.pop, name)
        AttentionMaskInterface.register(name, attention.mask)
        undo.callback(AttentionMaskInterface._global_mapping.pop, name)
        model.set_attn_implementation(name)
        yield


@contextmanager
def _maps(body: Body, now: Measuring, on_attention: OnAttention, wanted: Collection[int] | None) -> Iterator[None]:
    def reduce(module: nn.Module, inputs: Any, output: Any) -> Any:
        if not isinstance(output, list | tuple):
            return None
        found = [maps.is_map(x, now.map_length, now.layout) for x in output]
        chosen = wanted is None or now.layer is None or now.layer.index in wanted
        for x in itertools.compress(output, found):
            on_attention(now.layer, module, maps.statistics_of(x, now.layout) if chosen else None)
        # An empty tensor in its place: whoever passes it on holds nothing.
        left = [x.new_empty(0) if is_one else x for x, is_one in zip(output, found, strict=True)]
        return type(output)(*left) if hasattr(output, "_fields") else type(output)(left)

    with _switched(body.model) as undo:
        # Not `set_attn_implementation`: models with attention of their own refuse it, and still read the name.
        for config in _configs(body.model):
            config._attn_implementation_internal = "eager"
        for part in body.network.modules():
            undo.callback(part.register_forward_hook(reduce).remove)
        yield


@contextmanager
def _switched(model: Any) -> Iterator[ExitStack]:
    """Whatever attention the model and its parts are set to inside, they are set back."""
    before = [(config, config._attn_implementation_internal) for config in _configs(model)]
    with ExitStack() as undo:
        try:
            yield undo
        finally:
            for config, implementation in before:
                config._attn_implementation_internal = implementation


def can_be_switched(model: nn.Module) -> bool:
    """Whether the model, or a part of it, takes its attention from AttentionInterface."""
    parts = (part for part in model.modules() if isinstance(part, PreTrainedModel))
    return any(part._can_set_attn_implementation() for part in parts)


def _configs(model: Any) -> list[Any]:
    """The configurations of a model and its parts, each once."""
    found = {id(c): c for part in model.modules() if (c := getattr(part, "config", None)) is not None}
    return [config for config in found.values() if hasattr(config, "_attn_implementation_internal")]


class _Attention:
    """The attention function and the mask function that a model is switched to."""

    def __init__(self, model: Any, now: Measuring, on_attention: OnAttention, engine: _Attend) -> None:
        self.kind, self.now, self.on_attention, self.engine = kind_of(model), now, on_attention, engine
        self.causal_without_mask = False
        # A model that knows eager attention only may extend the mask with numbers to be added.
        self.additive = not model._supports_sdpa

    def mask(self, *args: Any, **options: Any) -> Tensor | None:
        """The boolean mask, (B, 1, T, S); None where it is plainly causal, which needs no mask.

        Skips are forbidden in the library's own function: it would return None for other patterns as well.
        """
        if not self.additive and options.get("allow_is_causal_skip", True) and _plainly_causal(options):
            self.causal_without_mask = True
            return None
        make = eager_mask if self.additive else sdpa_mask
        return make(*args, **{**options, "allow_is_causal_skip": False, "allow_is_bidirectional_skip": False})

    def __call__(
        self,
        module: nn.Module,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attention_mask: Tensor | None,
        scaling: float | None = None,
        softcap: float | None = None,
        s_aux: Tensor | None = None,
        position_bias: Tensor | None = None,
        is_causal: bool | None = None,
        sinks: Tensor | None = None,
        indices: Tensor | None = None,
        block_indices: Tensor | None = None,
        **other: Any,
    ) -> tuple[Tensor, None]:
        """As AttentionInterface wants it: the output, (B, T, H, dᵥ), and no map. A window is in the mask already."""
        visible, bias = self._visible(attention_mask, position_bias)
        if sinks is not None:  # one for each query, (B, H, T, 1): the same as 0 for all, and logits lowered by it
            bias = (0 if bias is None else bias) - sinks.expand(-1, -1, -1, key.shape[2])
            s_aux = sinks.new_zeros(sinks.shape[1])
        call = Call(
            query=query,
            key=key,
            value=value,
            scaling=query.shape[-1] ** -0.5 if scaling is None else scaling,
            visible=visible,
            causal=visible is None and self._causal(module, is_causal),
            softcap=softcap,
            bias=bias,
            sink=s_aux,
        )
        if self.now.map_length not in (0, call.shape[2]):  # over something else than positions: layers, heads, windows
            return plain(call), None
        call = narrowed(call, indices)
        if block_indices is not None:
            call = narrowed(call, block_indices, cast(Any, module).indexer.block_size)
        if self.now.layout is not None:
            call = self.now.layout.apply(call)
        out, statistics = self.engine(call)
        if statistics is not None and sinks is not None:
            lse, top = statistics.lse + sinks[..., 0], statistics.max_logit + sinks[..., 0]
            statistics = replace(statistics, lse=lse, max_logit=top)
        self.on_attention(self.now.layer, module, statistics)
        return out, None

    def _visible(self, mask: Tensor | None, bias: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
        """What can be seen, and what is added: a model's own additive mask holds both."""
        if mask is None or mask.dtype == torch.bool:
            return mask, bias
        if not mask.is_floating_point():
            return mask > 0, bias
        visible = mask > torch.finfo(mask.dtype).min / 2
        added = mask.masked_fill(~visible, 0)
        return visible, added if bias is None else added + bias

    def _causal(self, module: nn.Module, is_causal: bool | None) -> bool:
        """Whether attention without a mask is causal. Raises InputError if that cannot be told."""
        causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
        if causal and not self.causal_without_mask:
            raise InputError(
                "attention mask",
                got=f"none from {self.kind}",
                expected="the mask that the model was asked for",
                fix="this model cannot be measured so: without its mask every query would see the future",
            )
        return bool(causal)


def _plainly_causal(options: dict[str, Any]) -> bool:
    """Whether a mask request means j ≤ i for all queries and keys from the first on, without padding."""
    padding = options.get("attention_mask")
    return (
        options.get("mask_function") is causal_mask_function
        and options.get("q_length", 0) == options.get("kv_length", -1)
        and int(options.get("q_offset", 0)) == int(options.get("kv_offset", 0)) == 0
        and (padding is None or bool(padding.all()))
    )


def _enters(now: Measuring, layer: Layer) -> Callable[[nn.Module, Any], None]:
    def hook(module: nn.Module, inputs: Any) -> None:
        now.layer = layer

    return hook


def _leaves(now: Measuring, layer: Layer, on_output: OnOutput | None) -> Callable[[nn.Module, Any, Any], None]:
    def hook(module: nn.Module, inputs: Any, output: Any) -> None:
        now.layer = None
        if on_output is not None:
            on_output(layer, output[0] if isinstance(output, tuple) else output)

    return hook
