"""Exact attention in query blocks: the output a model expects, and every statistic of its map, without the map."""

from dataclasses import dataclass

import torch
from torch import Tensor

from polariscope.errors import InputError

ROWS = 128
BLOCK_BYTES = 32 * 2**20
# Masked logits: exp gives exactly 0, and 0 times it is 0, which 0 times minus infinity is not.
_HIDDEN = -1e30
_OF_ROWS = ("total", "largest", "first", "entropy", "squares")


@dataclass
class MapStatistics:
    """What one pass over the blocks of an attention map A, (B, H, T, S), keeps of it.

    Args:
        total: Σⱼ A[i, j], (B, H, T); 1 for softmax, less where a learned sink takes a share.
        largest: maxⱼ A[i, j], (B, H, T).
        first: A[i, first key], (B, H, T).
        entropy: entropy in nats of the row divided by its sum, (B, H, T).
        squares: Σⱼ A[i, j]², (B, H, T).
        columns: Σᵢ A[i, j], (B, H, S), float64.
        row_counts: number of keys that query i sees, (B or 1, H or 1, T).
        column_counts: number of queries that see key j, (B or 1, H or 1, S).
    """

    total: Tensor
    largest: Tensor
    first: Tensor
    entropy: Tensor
    squares: Tensor
    columns: Tensor
    row_counts: Tensor
    column_counts: Tensor


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    scaling: float,
    visible: Tensor | None = None,
    softcap: float | None = None,
    bias: Tensor | None = None,
    sink: Tensor | None = None,
    rows: int | None = None,
) -> tuple[Tensor, MapStatistics]:
    """Softmax attention A v with A = softmax(a), a = scaling · q kᵀ, and the statistics of A.

    For a block of queries at a time: logits against the visible keys in float32 (float64 for float64 inputs), one
    softmax, all row statistics and the running column sums, the output; then the block is dropped. Query heads that
    share a key/value head are multiplied with it as one group, so keys and values are never repeated.

    Args:
        query: q, (B, H, T, d).
        key: k, (B, K, S, d) with K dividing H; query head h uses key head h // (H/K).
        value: v, (B, K, S, dᵥ).
        scaling: factor of the logits, usually 1/√d.
        visible: boolean, (B or 1, H or 1, T, S), True where query i sees key j; None means causal: j ≤ i + S − T.
        softcap: c; logits become c·tanh(a/c) before bias and mask.
        bias: added to the logits, broadcastable to (B, H, T, S).
        sink: logit of a slot without a key, (H,); it takes its share of the softmax and gives nothing.
        rows: queries in a block; by default 128, or fewer where 128 would need more than 32 MiB a block.

    Returns:
        The output, (B, T, H, dᵥ) in the dtype of ``value``, and the statistics. A query that sees no key has weights,
        output and statistics 0, except its entropy, which is NaN.

    Raises:
        InputError: if ``rows`` is not positive or the mask is not boolean.
    """
    _check(visible, rows)
    batch, heads, length, _ = query.shape
    kv_heads, keys = key.shape[1:3]
    grouped = query.unflatten(1, (kv_heads, heads // kv_heads))  # (B, K, G, T, d)
    wide = torch.promote_types(torch.float32, query.dtype)
    wide_key = key.to(wide)
    modify = _Logits(visible, softcap, bias, keys - length)
    out = value.new_empty(batch, length, heads, value.shape[-1])
    of_rows = torch.empty(len(_OF_ROWS), batch, heads, length, dtype=wide, device=query.device)
    columns = torch.zeros(batch, heads, keys, dtype=torch.float64, device=query.device)
    step = rows or rows_for(batch * heads * keys * wide.itemsize)
    for start in range(0, length, step):
        block = slice(start, min(start + step, length))
        span = modify.span(block)
        logits = _products(grouped[:, :, :, block].to(wide) * scaling, wide_key[:, :, span]).flatten(1, 2)
        modify(logits, block, span)
        weights, entropy = _softmax(logits, sink, modify.empty(block))
        of_rows[..., block] = _row_statistics(weights, entropy, sees_first=span.start == 0)
        columns[:, :, span] += weights.sum(-2)
        grouped_weights = weights.unflatten(1, grouped.shape[1:3]).to(value.dtype)
        out[:, block] = _outputs(grouped_weights, value[:, :, span]).flatten(1, 2).transpose(1, 2)
    row_counts, column_counts = _counts(visible, length, keys, query.device)
    of_each = dict(zip(_OF_ROWS, of_rows.unbind(), strict=True))
    return out, MapStatistics(**of_each, columns=columns, row_counts=row_counts, column_counts=column_counts)


def rows_for(bytes_a_row: int) -> int:
    """Queries in a block: 128, or as many as keep one block within 32 MiB, at least one."""
    return max(1, min(ROWS, BLOCK_BYTES // bytes_a_row))


def _products(query: Tensor, key: Tensor) -> Tensor:
    """q kᵀ, (B, K, G, r, S): the queries of a group as one long block against their common keys."""
    return (query.flatten(2, 3) @ key.transpose(-1, -2)).unflatten(2, query.shape[2:4])


def _outputs(weights: Tensor, value: Tensor) -> Tensor:
    """A v, (B, K, G, r, dᵥ)."""
    return (weights.flatten(2, 3) @ value).unflatten(2, weights.shape[2:4])


def _softmax(logits: Tensor, sink: Tensor | None, empty: Tensor | None) -> tuple[Tensor, Tensor]:
    """The weights and the entropy of each row divided by its sum; ``logits`` is overwritten.

    With x = a − max a and m the largest weight, log A = x + log m, so H = log Σ A − log m − Σ A x / Σ A: nothing
    large is subtracted, whatever the size of the logits.
    """
    top = logits.amax(-1, keepdim=True)
    logits.sub_(top)
    if sink is None:
        weights = torch.softmax(logits, dim=-1)
    else:
        slot = sink.to(logits.dtype)[:, None, None] - top
        weights = torch.softmax(torch.cat([logits, slot], dim=-1), dim=-1)[..., :-1].contiguous()
    total = weights.sum(-1)
    entropy = total.log() - weights.amax(-1).log() - torch.linalg.vecdot(weights, logits) / total
    if empty is not None:
        weights.masked_fill_(empty[..., None], 0)
        entropy.masked_fill_(empty, torch.nan)
    return weights, entropy


def _row_statistics(weights: Tensor, entropy: Tensor, *, sees_first: bool) -> Tensor:
    """In the order of `_OF_ROWS`, (5, B, H, r)."""
    first = weights[..., 0] if sees_first else torch.zeros_like(entropy)
    squares = torch.linalg.vecdot(weights, weights)
    return torch.stack([weights.sum(-1), weights.amax(-1), first, entropy, squares])


@dataclass(frozen=True)
class _Logits:
    """What is done to the logits of a block: soft-cap, bias, mask; and which keys it needs at all.

    Args:
        visible: the boolean mask, or None for causal attention.
        softcap: c of c·tanh(a/c).
        bias: added to the logits.
        offset: number of keys before the first query, S − T.
    """

    visible: Tensor | None
    softcap: float | None
    bias: Tensor | None
    offset: int

    def span(self, block: slice) -> slice:
        """From the first to the last key that any query of the block sees."""
        if self.visible is None:
            return slice(0, block.stop + self.offset)
        seen = self.visible[:, :, block].any(dim=2).flatten(0, 1).any(dim=0).nonzero()
        return slice(int(seen[0]), int(seen[-1]) + 1) if len(seen) else slice(0, 1)

    def empty(self, block: slice) -> Tensor | None:
        """Queries that see no key, (B or 1, H or 1, r); None for causal attention, which has none."""
        return None if self.visible is None else ~self.visible[:, :, block].any(-1)

    def __call__(self, logits: Tensor, block: slice, span: slice) -> None:
        """Change the logits of the block, (B, H, r, keys in span), in place."""
        if self.softcap is not None:
            logits.div_(self.softcap).tanh_().mul_(self.softcap)
        if self.bias is not None:
            rows = block if self.bias.shape[-2] > 1 else slice(None)
            logits.add_(self.bias[..., rows, span])
        if self.visible is not None:
            logits.masked_fill_(~self.visible[:, :, block, span], _HIDDEN)
            return
        # Of a causal block only the square at its right end has hidden keys.
        size = block.stop - block.start
        future = torch.ones(size, size, dtype=torch.bool, device=logits.device).triu(1)
        logits[..., block.start + self.offset :].masked_fill_(future, _HIDDEN)


def _counts(visible: Tensor | None, length: int, keys: int, device: torch.device) -> tuple[Tensor, Tensor]:
    if visible is not None:
        return visible.sum(-1), visible.sum(-2)
    sees = torch.arange(keys - length + 1, keys + 1, device=device)
    seen = (keys - torch.arange(keys, device=device)).clamp(max=length)
    return sees[None, None], seen[None, None]


def _check(visible: Tensor | None, rows: int | None) -> None:
    if rows is not None and rows < 1:
        raise InputError("rows of a block", got=rows, expected="1 or more", fix="leave it out")
    if visible is not None and visible.dtype != torch.bool:
        raise InputError(
            "attention mask", got=f"dtype {visible.dtype}", expected="a boolean mask", fix="pass mask > its minimum / 2"
        )
