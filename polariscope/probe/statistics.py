"""From the statistics of one document's maps and layer outputs to numbers per layer and head."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from polariscope.errors import InputError
from polariscope.metrics import sink_rate
from polariscope.probe.blocks import MapStatistics

Array = NDArray[np.float64]


def metric_names(eps: Sequence[float]) -> list[str]:
    """The metrics of a head, in the order of the columns; the first threshold gives ``sink_rate``."""
    return [
        "entropy",
        "normalized_entropy",
        "max_weight",
        "relative_max_weight",
        "first_key_share",
        "first_key_mean",
        "sink_rate",
        *(f"sink_rate_{e:g}" for e in eps[1:]),
        "null_mass",
        "participation",
        "last_query_first_key",
    ]


def head_values(statistics: MapStatistics, eps: Sequence[float]) -> Tensor:
    """Every metric of every head for one document, in the order of `metric_names`, then the count of bad rows.

    Row statistics of float32 blocks are averaged in float64. A row is bad if one of its statistics is not finite; a
    head with a bad row has NaN for all its metrics in this document.

    Args:
        statistics: of a causal map with batch size 1.
        eps: thresholds of the sink rate.

    Returns:
        (M + 1, H), float64.
    """
    rows = {name: getattr(statistics, name)[0].double() for name in ("total", "largest", "first", "entropy", "squares")}
    total, first, entropy = rows["total"], rows["first"], rows["entropy"]
    log_counts = statistics.row_counts[0].double().log()
    shared = log_counts > 0  # rows that see two keys or more: the others have H = log n = 0
    normalized = torch.where(shared, entropy / log_counts, 0).sum(-1) / shared.sum(-1)
    alpha = column_means(statistics)[:, 0]
    share = first / total
    values = [
        entropy[:, 1:].mean(-1),
        normalized,
        rows["largest"].mean(-1),
        (rows["largest"] / total).mean(-1),
        share.mean(-1),
        alpha,
        *(sink_rate(alpha[None], e, axis=0) for e in eps),
        (1 - total).mean(-1),
        (total.square() / rows["squares"]).mean(-1),
        share[:, -1],
    ]
    bad = (~torch.isfinite(torch.stack([*rows.values(), share]))).any(0).sum(-1)
    table = torch.stack(values)
    return torch.cat([table.masked_fill(bad > 0, torch.nan), bad[None].double()])


def column_means(statistics: MapStatistics) -> Tensor:
    """α_k = (Σ_{i ≥ k} A[i, k]) / (number of queries that see key k), (H, S), for batch size 1.

    Gu et al. 2024, arXiv:2410.10781: the first row, where A[1, 1] = 1 always, counts.
    """
    return statistics.columns[0] / statistics.column_counts[0]


@dataclass(frozen=True)
class Massive:
    """The largest entry of one layer's output h in one document.

    Args:
        largest: max |h|.
        median: median of |h| over all positions and channels, the lower of two middle ones.
        position: where it is, 0-based.
        channel: where it is, 0-based.
    """

    largest: float
    median: float
    position: int
    channel: int


def massive(hidden: Tensor) -> Massive:
    """The largest |h| of a layer output, (1, T, D), and the median, in float32 (Sun et al. 2024, arXiv:2402.17762)."""
    size = hidden[0].float().abs()
    largest, where = size.flatten().max(0)
    position, channel = divmod(int(where), size.shape[1])
    return Massive(float(largest), _lower_median(size), position, channel)


def _lower_median(size: Tensor) -> float:
    if size.device.type != "cpu":
        return float(size.median())
    # On the CPU NumPy's partition takes a fifth of the time of torch's median.
    flat = size.flatten().numpy()
    middle = (flat.size - 1) // 2
    return float("nan") if np.isnan(flat.max()) else float(np.partition(flat, middle)[middle])


class Recorder:
    """Collects one document's numbers while a forward runs.

    Args:
        layers: number of layers.
        eps: thresholds of the sink rate.
    """

    def __init__(self, layers: int, eps: Sequence[float]) -> None:
        self.eps = tuple(eps)
        self._values: list[Tensor | None] = [None] * layers
        self._alpha: list[Tensor | None] = [None] * layers
        self._massive: list[Massive | None] = [None] * layers

    def on_attention(self, layer: int, statistics: MapStatistics) -> None:
        """Take the statistics of a layer's map. Raises InputError if the layer was seen before."""
        if self._values[layer] is not None:
            raise InputError(
                "attention calls", got=f"two in layer {layer}", expected="one in each layer", fix="load another model"
            )
        self._values[layer], self._alpha[layer] = head_values(statistics, self.eps), column_means(statistics)

    def on_output(self, layer: int, hidden: Tensor) -> None:
        """Take a layer's output."""
        self._massive[layer] = massive(hidden)

    def finish(self) -> "Measured":
        """The document's numbers. Raises InputError if a layer is missing; the recorder is empty afterwards."""
        missing = [index for index, values in enumerate(self._values) if values is None]
        if missing:
            raise InputError(
                "attention calls",
                got=f"none in layers {missing}",
                expected="one in each layer",
                fix="load another model",
            )
        values = torch.stack([v for v in self._values if v is not None]).cpu().numpy()
        alpha = torch.stack([a for a in self._alpha if a is not None]).cpu().numpy()
        measured = Measured(values[:, :-1], values[:, -1].astype(int), alpha, tuple(m for m in self._massive if m))
        self.__init__(len(self._values), self.eps)
        return measured


@dataclass(frozen=True)
class Measured:
    """One document's numbers.

    Args:
        values: metrics, (L, M, H).
        bad_rows: rows with a statistic that is not finite, (L, H).
        alpha: column means α_k, (L, H, T).
        massive: of each layer.
    """

    values: Array
    bad_rows: NDArray[np.int64]
    alpha: Array
    massive: tuple[Massive, ...]
