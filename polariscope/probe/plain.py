"""Attention without statistics, for layers that nobody asked about."""

import torch
from torch import Tensor

from polariscope.probe import blocks
from polariscope.probe.attention import Call


def plain(call: Call) -> Tensor:
    """The output alone, (B, T, H, dᵥ), from torch's own kernels where they can do it."""
    _, _, length, keys = call.shape
    special = call.sink is not None or call.softcap is not None or call.scores is not None
    if special or (call.visible is None and call.causal and length != keys):
        return blocks.attend(call)[0]
    mask = call.visible
    if call.bias is not None:
        bias = call.bias.to(call.query.dtype)
        mask = bias if mask is None else bias.masked_fill(~mask, -torch.inf)
    out = torch.nn.functional.scaled_dot_product_attention(
        call.query,
        call.key,
        call.value,
        mask,
        is_causal=mask is None and call.causal,
        scale=call.scaling,
        enable_gqa=True,
    )
    return out.transpose(1, 2)
