"""From the statistics of a map to the numbers of each head in one document."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

from polariscope.probe.attention import ROW_STATISTICS, THRESHOLDS, MapStatistics

# Queries left out in ``sink_rate_late``; keys that fewer queries see have no place among the sinks.
EARLY, FEWEST_QUERIES = 4, 16
SINKVIS = 0.1


def metric_names(eps: Sequence[float]) -> list[str]:
    """The metrics of a head, in the order of the columns; the first threshold gives ``sink_rate``."""
    return list(_metrics(tuple(eps)))


@dataclass(frozen=True)
class Place:
    """Where one document lies in a batch: row b, positions from ``start`` to before ``stop``."""

    batch: int = 0
    start: int = 0
    stop: int | None = None


def of_document(statistics: MapStatistics, place: Place) -> MapStatistics:
    """The statistics of one document out of a batch, padded or packed; batch size 1 afterwards.

    Counts of queries that see a key are the document's own: queries of padding see nothing that matters.
    """
    rows = slice(place.start, place.stop)
    cut: dict[str, Tensor] = {}
    for field in fields(statistics):
        x = getattr(statistics, field.name)
        if not isinstance(x, Tensor):
            continue
        where = x.dim() - 3
        index = place.batch if x.shape[where] > 1 else 0
        cut[field.name] = x.narrow(where, index, 1)[..., rows]
    return replace(statistics, **cut)


@dataclass(frozen=True)
class _Rows:
    """One document's row statistics in float64, and what several metrics share."""

    s: MapStatistics
    of: dict[str, Tensor]
    share: Tensor
    alpha: Tensor
    covered: Tensor

    @classmethod
    def read(cls, s: MapStatistics) -> "_Rows":
        of = {name: getattr(s, name)[0].double() for name in ROW_STATISTICS}
        alpha = column_means(s)
        counts = s.column_counts[0, :, 0].expand(alpha.shape[0])
        return cls(s, of, of["first"] / of["total"], alpha, counts == of["first"].shape[-1])

    def normalized_entropy(self) -> Tensor:
        log_counts = self.s.row_counts[0].double().log()
        shared = log_counts > 0  # rows that see two keys or more: the others have H = log n = 0
        return torch.where(shared, self.of["entropy"] / log_counts, 0).sum(-1) / shared.sum(-1)

    def entropy(self) -> Tensor:
        several = (self.s.row_counts[0] > 1).expand_as(self.of["entropy"])
        return torch.where(several, self.of["entropy"], 0).sum(-1) / several.sum(-1)

    def sink(self, alpha: Tensor, eps: float) -> Tensor:
        """1{α > ε}, NaN for heads in whose window the first key is not always."""
        return torch.where(self.covered & ~alpha.isnan(), (alpha > eps).double(), torch.nan)

    def late(self) -> Tensor:
        return self.of["first"][:, EARLY:].mean(-1)

    def threshold_share(self, index: int) -> Tensor:
        pairs = self.s.row_counts[0].double().sum(-1)
        return self.s.above[index, 0].double().sum(-1) / pairs

    def of_keys(self, name: str, *, first: bool = False) -> Tensor:
        """A norm of keys or values, of each query head: the mean over positions, or the first position's."""
        norms = getattr(self.s, name)[0].double()
        value = norms[:, 0] if first else norms.mean(-1)
        return value.repeat_interleave(self.share.shape[0] // value.shape[0])

    def contribution(self) -> Tensor:
        """Mean over queries of A[i, 1] ‖v₁‖ / ‖(A v)ᵢ‖."""
        received = self.of["first"] * self.of_keys("value_norms", first=True)[:, None]
        return (received / self.of["output_norms"]).mean(-1)

    def sinks(self, eps: float) -> Tensor:
        """Number of keys with α_k > ε among those that enough queries see."""
        enough = seen_enough(self.s)
        return ((self.alpha > eps) & enough).sum(-1).double()


def _metrics(eps: tuple[float, ...]) -> dict[str, Callable[[_Rows], Tensor]]:
    """Every metric of a head, in order: a function of one document's rows to (H,)."""
    e = eps[0]
    return {
        "entropy": _Rows.entropy,
        "normalized_entropy": _Rows.normalized_entropy,
        "max_weight": lambda r: r.of["largest"].mean(-1),
        "relative_max_weight": lambda r: (r.of["largest"] / r.of["total"]).mean(-1),
        "first_key_share": lambda r: r.share.mean(-1),
        "first_key_mean": lambda r: r.of["first"].mean(-1),
        "sink_rate": lambda r: r.sink(r.alpha[:, 0], e),
        **{f"sink_rate_{x:g}": (lambda r, x=x: r.sink(r.alpha[:, 0], x)) for x in eps[1:]},
        "sink_rate_late": lambda r: r.sink(r.late(), e),
        "sink_queries": lambda r: (r.of["first"] > e).double().mean(-1),
        "sink_keys": lambda r: r.sinks(e),
        "sink_keys_all_rows": lambda r: (r.s.columns[0] / r.share.shape[-1] > SINKVIS).sum(-1).double(),
        "top_key_alpha": lambda r: r.alpha.where(seen_enough(r.s), -1).amax(-1),
        "null_mass": lambda r: (1 - r.of["total"]).mean(-1),
        "participation": lambda r: (r.of["total"].square() / r.of["squares"]).mean(-1),
        "sum_of_squares": lambda r: r.of["squares"].mean(-1),
        "last_query_first_key": lambda r: r.share[:, -1],
        f"share_below_{THRESHOLDS[0]:g}": lambda r: 1 - r.threshold_share(0),
        f"share_above_{THRESHOLDS[1]:g}": lambda r: r.threshold_share(1),
        "lse": lambda r: r.of["lse"].mean(-1),
        "max_logit": lambda r: r.of["max_logit"].amax(-1),
        "key_norm": lambda r: r.of_keys("key_norms"),
        "first_key_norm": lambda r: r.of_keys("key_norms", first=True),
        "value_norm": lambda r: r.of_keys("value_norms"),
        "first_value_norm": lambda r: r.of_keys("value_norms", first=True),
        "output_norm": lambda r: r.of["output_norms"].mean(-1),
        "first_key_contribution": _Rows.contribution,
    }


def head_values(statistics: MapStatistics, eps: Sequence[float]) -> Tensor:
    """Every metric of every head for one document, in the order of `metric_names`, then the count of bad rows.

    Row statistics of float32 blocks are averaged in float64. A row is bad if one of its statistics is not finite; a
    head with a bad row has NaN for all its metrics in this document. What an engine does not give is NaN, too, but
    makes no row bad.

    Args:
        statistics: of a map with batch size 1.
        eps: thresholds of the sink rate.

    Returns:
        (M + 1, H), float64.
    """
    rows = _Rows.read(statistics)
    table = torch.stack([metric(rows) for metric in _metrics(tuple(eps)).values()])
    judged = [rows.of[name] for name in ("total", "largest", "first", "squares")]
    bad = (~torch.isfinite(torch.stack(judged))).any(0).sum(-1)
    return torch.cat([table.masked_fill(bad > 0, torch.nan), bad[None].double()])


def column_means(statistics: MapStatistics) -> Tensor:
    """α_k = (Σ_{i ≥ k} A[i, k]) / (number of queries that see key k), (H, S), for batch size 1.

    Gu et al. 2024, arXiv:2410.10781: the first row, where A[1, 1] = 1 always, counts.
    """
    return statistics.columns[0] / statistics.column_counts[0]


def seen_enough(statistics: MapStatistics) -> Tensor:
    """Keys that enough queries see for α_k to mean something, (H or 1, S): 16, or a quarter of a short document's."""
    counts = statistics.column_counts[0]
    return counts >= min(FEWEST_QUERIES, max(1, counts.shape[-1] // 4))


def top_keys(statistics: MapStatistics) -> Tensor:
    """The key with the largest α_k of each head, among those that enough queries see, (H,)."""
    return column_means(statistics).where(seen_enough(statistics), -1).argmax(-1)
