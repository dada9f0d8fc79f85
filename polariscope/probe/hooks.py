"""Inside a model: its attention measured through transformers' AttentionInterface, everything put back afterwards."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import causal_mask_function, sdpa_mask

from polariscope.errors import InputError
from polariscope.probe import blocks
from polariscope.probe.blocks import MapStatistics
from polariscope.probe.body import Body, kind_of

OnAttention = Callable[[int, MapStatistics], None]
OnOutput = Callable[[int, Tensor], None]

_numbers = itertools.count()


@contextmanager
def measuring(
    body: Body, on_attention: OnAttention, on_output: OnOutput | None = None, rows: int | None = None
) -> Iterator[None]:
    """Inside, every forward of the model runs on query blocks and reports what it saw.

    Args:
        body: the model.
        on_attention: called with the layer (0-based) and its map's statistics, once an attention call.
        on_output: called with the layer and its output, (B, T, D).
        rows: queries in a block.
    """
    model, name = body.model, f"polariscope_blocks_{next(_numbers)}"
    before = model.config._attn_implementation or "eager"
    layer_of = {id(part): index for index, layer in enumerate(body.layers) for part in layer.modules()}
    attention = _Attention(kind_of(model), layer_of, on_attention, rows)
    with ExitStack() as undo:
        # The library has `register` but no way back: the entries are taken out of its table by hand.
        AttentionInterface.register(name, attention)
        undo.callback(AttentionInterface._global_mapping.pop, name)
        AttentionMaskInterface.register(name, attention.mask)
        undo.callback(AttentionMaskInterface._global_mapping.pop, name)
        undo.callback(model.set_attn_implementation, before)
        model.set_attn_implementation(name)
        if on_output is not None:
            for index, layer in enumerate(body.layers):
                undo.callback(layer.register_forward_hook(_output_hook(index, on_output)).remove)
        yield


class _Attention:
    """The attention function and the mask function that a model is switched to."""

    def __init__(self, kind: str, layer_of: dict[int, int], on_attention: OnAttention, rows: int | None) -> None:
        self.kind, self.layer_of, self.on_attention, self.rows = kind, layer_of, on_attention, rows
        self.causal_without_mask = False

    def mask(self, *args: Any, **options: Any) -> Tensor | None:
        """The boolean mask, (B, 1, T, S); None where it is plainly causal, which the blocks do without a mask.

        Skips are forbidden in the library's own function: it would return None for other patterns as well.
        """
        if options.get("allow_is_causal_skip", True) and _plainly_causal(options):
            self.causal_without_mask = True
            return None
        return sdpa_mask(*args, **{**options, "allow_is_causal_skip": False, "allow_is_bidirectional_skip": False})

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
        **other: Any,
    ) -> tuple[Tensor, None]:
        """As AttentionInterface wants it: the output, (B, T, H, dᵥ), and no map. A window is in the mask already."""
        if id(module) not in self.layer_of:
            raise InputError(
                "attention outside the layers",
                got=f"{type(module).__name__} of {self.kind}",
                expected="attention inside the decoder layers only",
                fix="load another model",
            )
        causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
        if attention_mask is None and not (causal and self.causal_without_mask):
            raise InputError(
                "attention mask",
                got=f"none from {self.kind}",
                expected="the mask that the model was asked for",
                fix="this model cannot be measured: without its mask every query would see the future",
            )
        out, statistics = blocks.attend(
            query,
            key,
            value,
            scaling=query.shape[-1] ** -0.5 if scaling is None else scaling,
            visible=attention_mask,
            softcap=softcap,
            bias=position_bias,
            sink=s_aux,
            rows=self.rows,
        )
        self.on_attention(self.layer_of[id(module)], statistics)
        return out, None


def _plainly_causal(options: dict[str, Any]) -> bool:
    """Whether a mask request means j ≤ i for all queries and keys from the first on, without padding."""
    padding = options.get("attention_mask")
    return (
        options.get("mask_function") is causal_mask_function
        and options.get("q_length", 0) == options.get("kv_length", -1)
        and int(options.get("q_offset", 0)) == int(options.get("kv_offset", 0)) == 0
        and (padding is None or bool(padding.all()))
    )


def _output_hook(index: int, on_output: OnOutput) -> Callable[[nn.Module, Any, Any], None]:
    def hook(layer: nn.Module, inputs: Any, output: Any) -> None:
        on_output(index, output[0] if isinstance(output, tuple) else output)

    return hook
