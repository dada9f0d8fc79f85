"""The engine "blocks": exact attention for a block of queries at a time, and every statistic of the map without a map.

For a block: logits against the visible keys, one exponential, all row statistics and the running column sums, the
output; then the block is dropped. Blocks fit in the cache of a processor, so that each of these passes is cheap.
"""

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from polariscope.errors import InputError
from polariscope.probe._rows import HIDDEN, Rows
from polariscope.probe.attention import ROW_STATISTICS, THRESHOLDS, Call, MapStatistics, norms

# Queries in a block. Many queries compute what the causal mask hides from most of them, few keep no core busy; the
# numbers between were found by measuring.
FEWEST_ROWS, ROWS, MOST_ROWS = 16, 48, 128
# A block of logits: small enough for a core's cache; on an accelerator as large as keeps it busy.
CPU_BYTES, OTHER_BYTES = 2**22, 2**28


def attend(
    call: Call, thresholds: tuple[float, ...] = THRESHOLDS, rows: int | None = None
) -> tuple[Tensor, MapStatistics]:
    """The output A v and the statistics of A.

    Logits are float32 (float64 for float64 inputs). Query heads that share a key head are multiplied with it as one
    group, so keys and values are never repeated.

    Args:
        call: the problem.
        thresholds: of ``above``.
        rows: queries in a block; by default as many as keep a block in the cache, 16 to 128.

    Returns:
        The output, (B, T, H, dᵥ) in the dtype of the values, and the statistics. A query that sees no key has weights,
        output and statistics 0, except its entropy, which is NaN, and its logits, which are −∞.

    Raises:
        InputError: if ``rows`` is not positive.
    """
    if rows is not None and rows < 1:
        raise InputError("rows of a block", got=rows, expected="1 or more", fix="leave it out")
    (batch, heads, length, keys), wide = call.shape, call.wide
    kv_heads = call.key.shape[1]
    work = _Work(call, thresholds)
    groups, device = batch * kv_heads, call.query.device
    out = call.value.new_empty(groups, work.shared, length, call.value.shape[-1])
    kept = torch.empty(work.measures, groups, work.shared, length, dtype=wide, device=device)
    columns = torch.zeros(groups, work.shared, keys, dtype=torch.float64, device=device)
    for some, block in blocks_of(groups, work.shared, length, keys * wide.itemsize, rows, device):
        span = work.span(block)
        kept[:, some, :, block], sums, out[some, :, block] = work.measure(some, block, span)
        columns[some, :, span] += sums
    kept = kept.view(work.measures, batch, heads, length)
    named = dict(zip(ROW_STATISTICS, kept, strict=False))
    row_counts, column_counts = call.counts()
    statistics = MapStatistics(
        **named,
        above=kept[len(ROW_STATISTICS) :],
        columns=columns.view(batch, heads, keys),
        key_norms=norms(call.key, wide),
        value_norms=norms(call.value, wide),
        row_counts=row_counts,
        column_counts=column_counts,
        engine="blocks",
    )
    return out.view(batch, heads, length, -1).transpose(1, 2).contiguous(), statistics


def blocks_of(
    groups: int, shared: int, length: int, bytes_a_row: int, rows: int | None, device: torch.device
) -> Iterator[tuple[slice, slice]]:
    """Which groups of heads and which queries make a block, in order."""
    most = CPU_BYTES if device.type == "cpu" else OTHER_BYTES
    fits = max(1, most // (shared * bytes_a_row))  # rows of one group
    usual = length if length <= MOST_ROWS else ROWS if length <= 1024 else 64
    step = rows or min(usual, max(FEWEST_ROWS, fits))
    together = max(1, min(groups, fits // step))
    for group in range(0, groups, together):
        for start in range(0, length, step):
            yield slice(group, min(group + together, groups)), slice(start, min(start + step, length))


class _Work:
    """A call laid out in groups: batch × key heads first, the query heads that share a key head second."""

    def __init__(self, call: Call, thresholds: tuple[float, ...]) -> None:
        wide = call.wide
        self.call, self.thresholds, self.kv_heads = call, thresholds, call.key.shape[1]
        self.measures = len(ROW_STATISTICS) + len(thresholds)
        self.shared = call.query.shape[1] // self.kv_heads
        self.offset = call.shape[3] - call.shape[2]
        self.query = call.query.unflatten(1, (self.kv_heads, self.shared)).flatten(0, 1)
        self.key = call.key.to(wide).flatten(0, 1).contiguous()
        self.value = call.value.to(wide).flatten(0, 1).contiguous()
        self.rooms: dict[str, Tensor] = {}

    def room(self, name: str, shape: tuple[int, ...]) -> Tensor:
        """Memory for a block, used again by the next one: fresh pages would cost more than the arithmetic."""
        size = math.prod(shape)
        if name not in self.rooms or self.rooms[name].numel() < size:
            self.rooms[name] = torch.empty(size, dtype=self.call.wide, device=self.call.query.device)
        return self.rooms[name][:size].view(shape)

    def span(self, block: slice) -> slice:
        """From the first to the last key that any query of the block sees."""
        if self.call.visible is None:
            return slice(0, block.stop + self.offset if self.call.causal else self.call.shape[3])
        seen = self.call.visible[:, :, block].any(dim=2).flatten(0, 1).any(dim=0).nonzero()
        return slice(int(seen[0]), int(seen[-1]) + 1) if len(seen) else slice(0, 1)

    def measure(self, groups: slice, block: slice, span: slice) -> tuple[Tensor, Tensor, Tensor]:
        """Row statistics in their order, (M, g, G, r), column sums, (g, G, s), and outputs, (g, G, r, dᵥ)."""
        query = self.query[groups, :, block].to(self.call.wide).mul(self.call.scaling)
        several = query.shape[:3]
        flat = (several[0], several[1] * several[2], span.stop - span.start)
        logits = torch.bmm(query.flatten(1, 2), self.key[groups, span].mT, out=self.room("logits", flat))
        logits = logits.unflatten(1, several[1:])
        visible = self._modify(logits, groups, block, span)
        top = logits.amax(-1)
        rows = self._rows(logits, top, groups, self._first(groups, block, span))
        if visible is not None:
            rows.hide(~visible.any(-1))
        outputs = torch.bmm(rows.weights.flatten(1, 2), self.value[groups, span]).unflatten(1, several[1:])
        outputs.mul_(rows.factor[..., None])
        sums = (rows.factor[..., None, :] @ rows.sizes)[..., 0, :]
        limits = 1 / rows.factor[..., None]
        above = [torch.gt(rows.sizes, t * limits, out=logits).sum(-1) for t in self.thresholds]
        hidden = top <= HIDDEN / 2
        logs = [x.masked_fill(hidden, -math.inf) for x in (rows.lse, top)]
        found = [rows.total, rows.largest, rows.first, rows.entropy, rows.squares, *logs]
        return torch.stack([*found, torch.linalg.vector_norm(outputs, dim=-1), *above]), sums, outputs

    def _rows(self, logits: Tensor, top: Tensor, groups: slice, first: Tensor | int | None) -> Rows:
        if self.call.scores is not None:
            return Rows.of_map(self.call.scores, logits, first)
        sink = None if self.call.sink is None else self._sliced(self.call.sink[None, :, None], groups)
        return Rows.of_softmax(logits, top, sink, first, self.room("weights", tuple(logits.shape)))

    def _modify(self, logits: Tensor, groups: slice, block: slice, span: slice) -> Tensor | None:
        """Soft-cap, bias and mask, in place; the mask where it is one that can hide all keys of a query."""
        call = self.call
        if call.softcap is not None:
            logits.div_(call.softcap).tanh_().mul_(call.softcap)
        if call.bias is not None:
            rows = block if call.bias.shape[-2] > 1 else slice(None)
            logits.add_(self._sliced(call.bias[..., rows, span], groups))
        if call.visible is not None:
            visible = self._sliced(call.visible[:, :, block, span], groups)
            logits.masked_fill_(~visible, HIDDEN)
            return visible
        if call.causal:  # only the square at the right end has hidden keys
            size = block.stop - block.start
            future = torch.ones(size, size, dtype=torch.bool, device=logits.device).triu(1)
            logits[..., block.start + self.offset :].masked_fill_(future, HIDDEN)
        return None

    def _sliced(self, x: Tensor, groups: slice) -> Tensor:
        """What belongs to the groups of a tensor (B or 1, H or 1, …): (g or 1, G or 1, …)."""
        if x.shape[:2] == (1, 1):
            return x
        index = torch.arange(groups.start, groups.stop, device=x.device)
        batch = index // self.kv_heads if x.shape[0] > 1 else torch.zeros_like(index)
        return (
            x[batch] if x.shape[1] == 1 else x.unflatten(1, (self.kv_heads, self.shared))[batch, index % self.kv_heads]
        )

    def _first(self, groups: slice, block: slice, span: slice) -> Tensor | int | None:
        """Index of the first key within the span: of each row, (g or 1, 1, r, 1), or of all; None: outside."""
        if self.call.first is None:
            return 0 if span.start == 0 else None
        return self._sliced(self.call.first[:, None, block, None], groups) - span.start
