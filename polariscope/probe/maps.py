"""The engine "map": statistics of a whole map that the model made itself, one layer at a time."""

import torch
from torch import Tensor

from polariscope.probe.attention import THRESHOLDS, MapStatistics
from polariscope.probe.layout import Layout


def statistics_of(A: Tensor, layout: Layout | None = None, thresholds: tuple[float, ...] = THRESHOLDS) -> MapStatistics:
    """The statistics of an attention map, whose logits, values and mask are not known.

    A key counts as visible to a query if any head gives it weight: a weight that underflows to 0 in every head at once
    is not told from a hidden one. Logits and norms are NaN.

    Args:
        A: the map, (B, H, T, S), rows that sum to one or less.
        layout: where the documents of the batch lie.
        thresholds: of ``above``.
    """
    A = A.to(torch.promote_types(torch.float32, A.dtype))
    batch, heads, _, keys = A.shape
    first = A[..., 0]
    if layout is not None:
        A = A.masked_fill(~layout.real[:, None, :, None].to(A.device), 0)
        first = A.gather(-1, layout.first[:, None, :, None].to(A.device).expand(batch, heads, -1, 1))[..., 0]
        layout.check((A > 0).any(dim=1, keepdim=True))
    visible = (A > 0).any(dim=1, keepdim=True)
    total = A.sum(-1)
    nothing = torch.full_like(total, torch.nan)
    share = A / total[..., None]
    unknown = A.new_full((batch, heads, keys), torch.nan)
    return MapStatistics(
        total=total,
        largest=A.amax(-1),
        first=first,
        entropy=torch.special.entr(share).sum(-1),
        squares=A.square().sum(-1),
        lse=nothing,
        max_logit=nothing,
        above=torch.stack([(t < A).sum(-1) for t in thresholds]).to(A.dtype),
        output_norms=nothing,
        columns=A.sum(-2, dtype=torch.float64),
        key_norms=unknown,
        value_norms=unknown,
        row_counts=visible.sum(-1),
        column_counts=visible.sum(-2),
        engine="map",
    )


def is_map(x: object, length: int, layout: Layout | None = None) -> bool:
    """Whether an output is an attention map, (B, H, T, S) with T = S = length: no weight below 0, no row above 1.

    Rows of padding, as the layout tells, may hold anything.
    """
    if not isinstance(x, Tensor) or x.ndim != 4 or x.shape[-2:] != (length, length) or not x.is_floating_point():
        return False
    if layout is not None:
        x = x.transpose(1, 2)[layout.real.to(x.device)]
    sums = x.sum(-1, dtype=torch.float64)
    return bool((x >= 0).all()) and bool((sums <= 1.01).all()) and bool((sums > 0).any())
