"""Sparse attention that names the keys it keeps; its own kernel reads the names, eager attention finds a mask."""

from dataclasses import replace

import torch
from torch import Tensor

from polariscope.probe.attention import Call


def narrowed(call: Call, indices: Tensor | None, size: int = 1) -> Call:
    """The call with only the keys visible that are kept.

    DeepSeek-V3.2 (DeepSeek-AI 2025, arXiv:2512.02556) keeps single keys for all heads, MiniMax-M3 blocks of keys for
    each group of heads.

    Args:
        call: the call.
        indices: numbers of the kept blocks of keys, (B, T, n), or for each group of heads, (B, G, T, n); below 0: none.
            None: all are kept.
        size: keys in a block.
    """
    if indices is None:
        return call
    _, heads, length, keys = call.shape
    indices = (indices if indices.ndim == 4 else indices[:, None]).long()
    blocks = -(-keys // size)
    kept = torch.zeros(*indices.shape[:3], blocks + 1, dtype=torch.bool, device=indices.device)
    kept.scatter_(-1, indices.masked_fill(indices < 0, blocks), True)
    kept = kept[..., :blocks].repeat_interleave(size, dim=-1)[..., :keys]
    if kept.shape[1] > 1:
        kept = kept.repeat_interleave(heads // kept.shape[1], dim=1)
    if call.visible is not None:
        kept = kept & call.visible
    elif call.causal:
        kept = kept.tril(keys - length)
    return replace(call, visible=kept)
