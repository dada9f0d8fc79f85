"""Massive activations of one layer's output in one document."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

TOP = 3
_BRACKET = 4096  # entries of the sample that brackets the median


@dataclass(frozen=True)
class Massive:
    """The largest entries of one layer's output h, (T, D), in one document, in float32.

    Args:
        values: the ``TOP`` entries of largest |h|, with their signs, the largest first.
        positions: where they are, 0-based.
        channels: where they are, 0-based.
        median: median of |h| over all positions and channels, the lower of two middle ones.
        nonfinite: entries that are NaN or infinite; float16 ends at 65504. The numbers above are of the others.
    """

    values: tuple[float, ...]
    positions: tuple[int, ...]
    channels: tuple[int, ...]
    median: float
    nonfinite: int

    @property
    def largest(self) -> float:
        """max |h|; NaN if no entry is finite."""
        return abs(self.values[0]) if self.values else float("nan")


def massive(hidden: Tensor) -> Massive:
    """The massive activations of a layer output h, (T, D) (Sun et al. 2024, arXiv:2402.17762).

    Taken before any final norm: the last hidden states that libraries return are normed.
    """
    h = hidden.float()
    size = h.abs()
    rows = size.amax(-1)
    bad = 0
    if not bool(torch.isfinite(rows).all()):
        finite = torch.isfinite(size)
        bad = int((~finite).sum())
        size = size.where(finite, -1)
        rows = size.amax(-1)
    # The TOP largest entries are at least as large as the TOP-th largest row maximum: few need sorting.
    limit = rows.topk(TOP).values[-1].clamp(min=0) if len(rows) >= TOP else 0
    position, channel = (size >= limit).nonzero(as_tuple=True)
    order = size[position, channel].argsort(descending=True, stable=True)[:TOP]
    position, channel = position[order], channel[order]
    return Massive(
        values=tuple(h[position, channel].tolist()),
        positions=tuple(position.tolist()),
        channels=tuple(channel.tolist()),
        median=lower_median(size.flatten().cpu().numpy(), bad),
        nonfinite=bad,
    )


def lower_median(x: NDArray[np.float32], skip: int = 0) -> float:
    """The lower median of the numbers without the ``skip`` smallest, exactly; NaN for none.

    A sample brackets it, and only what falls into the bracket is sorted: a few passes instead of a whole partition.
    """
    if x.size == skip:
        return float("nan")
    rank = skip + (x.size - skip - 1) // 2
    step = max(1, x.size // _BRACKET) | 1  # odd: it does not keep to the same channels
    sample = np.sort(x[::step])
    middle, margin = int(len(sample) * rank / x.size), len(sample) // 16 + 1
    low, high = sample[max(0, middle - margin)], sample[min(len(sample) - 1, middle + margin)]
    place = rank - int(np.count_nonzero(x < low))
    inside = x[(x >= low) & (x <= high)]
    if not 0 <= place < len(inside):  # the bracket missed it
        return float(np.partition(x, rank)[rank])
    return float(np.partition(inside, place)[place])
