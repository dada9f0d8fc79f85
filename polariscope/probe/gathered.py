"""Numbers of all documents put together."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polariscope.metrics import Sums
from polariscope.probe.activations import TOP
from polariscope.probe.recording import Array, Measured

# Positions whose tokens are kept.
FIRST_POSITIONS = 16

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Record:
    """What is kept of one document.

    Args:
        id: of the document.
        count: number of tokens it has, before it was cut.
        first_ids: token ids of its first positions.
        values: metrics, (S, M, H) for S sites and M metrics.
        bad_rows: rows with a statistic that is not finite, (S, H).
        top_keys, top_tokens: the key with the largest α_k and its token id, (S, H); −1 where there is no head.
        massive_values: the entries of largest |h| in each layer, (L, 3), NaN where there are fewer.
        massive_positions, massive_channels, massive_tokens: where they are, and on which token id.
        massive_medians, nonfinite: of each layer, (L,).
        massive_layers: which layers these are, by number within the body, (L,).
    """

    id: str
    count: int
    first_ids: Ints
    values: Array
    bad_rows: Ints
    top_keys: Ints
    top_tokens: Ints
    massive_values: Array
    massive_positions: Ints
    massive_channels: Ints
    massive_tokens: Ints
    massive_medians: Array
    nonfinite: Ints
    massive_layers: Ints

    @classmethod
    def of(
        cls,
        name: str,
        count: int,
        ids: Sequence[int],
        measured: Measured,
        keys: Sequence[Sequence[int]],
        positions: Sequence[Sequence[int]],
    ) -> "Record":
        """The record of a measured document.

        Args:
            name, count: its id and number of tokens.
            ids: its token ids.
            measured: its numbers.
            keys: of each site, the token ids of its keys.
            positions: of each layer that ran, the token ids of its positions.
        """
        top = measured.top_keys
        tokens = [[on[k] if 0 <= k < len(on) else -1 for k in row] for on, row in zip(keys, top, strict=True)]
        grid = np.full((3, len(measured.massive), TOP), -1)
        values = np.full((len(measured.massive), TOP), np.nan)
        for index, (m, on) in enumerate(zip(measured.massive, positions, strict=True)):
            size = len(m.values)
            values[index, :size] = m.values
            grid[:, index, :size] = m.positions, m.channels, [on[p] for p in m.positions]
        return cls(
            id=name,
            count=count,
            first_ids=np.array(ids[:FIRST_POSITIONS]),
            values=measured.values,
            bad_rows=measured.bad_rows,
            top_keys=top,
            top_tokens=np.array(tokens),
            massive_values=values,
            massive_positions=grid[0],
            massive_channels=grid[1],
            massive_tokens=grid[2],
            massive_medians=np.array([m.median for m in measured.massive]),
            nonfinite=np.array([m.nonfinite for m in measured.massive], dtype=np.int64),
            massive_layers=np.array(measured.layers, dtype=np.int64),
        )

    def arrays(self) -> dict[str, np.ndarray]:
        """All of it as arrays, for a file."""
        return {f.name: np.asarray(getattr(self, f.name)) for f in fields(self)}

    @classmethod
    def of_arrays(cls, arrays: dict[str, np.ndarray]) -> "Record":
        """The inverse of `arrays`."""
        given: dict[str, Any] = {f.name: arrays[f.name] for f in fields(cls)}
        return cls(**{**given, "id": str(given["id"]), "count": int(given["count"])})


@dataclass
class Gathered:
    """What is kept of all measured documents.

    Args:
        names: of the metrics.
        eps: the first threshold.
        records: one a document, in order.
        alpha: sums of α_k over documents, (S, H, T).
        sinks: sums of 1{α_k > ε} over documents and heads, (S, T).
        value_norms: sums of ‖v_k‖ over documents, (S, T).
    """

    names: list[str]
    eps: float
    records: list[Record] = field(default_factory=list)
    alpha: Sums | None = None
    sinks: Sums | None = None
    value_norms: Sums | None = None

    def add(self, record: Record, measured: Measured) -> None:
        """Take one document. The order matters for the last bits of the sums."""
        self.records.append(record)
        bad = (measured.bad_rows > 0)[:, :, None]
        alpha = np.where(bad, np.nan, measured.alpha)
        sinks = np.where(np.isnan(alpha), np.nan, alpha > self.eps)
        self.alpha = _sum(self.alpha, Sums.of(alpha[None]))
        self.sinks = _sum(self.sinks, Sums.of(sinks, axis=1))
        self.value_norms = _sum(self.value_norms, Sums.of(measured.value_norms[None]))

    def values(self) -> Array:
        """All metrics, (N, S, M, H)."""
        return np.stack([record.values for record in self.records])

    def means(self) -> Array:
        """Mean over all heads of every metric, (N, M); heads without a number in a document are left out of it."""
        values = self.values()
        return Sums.of(values.swapaxes(2, 3).reshape(len(values), -1, len(self.names)), axis=1).mean


def _sum(before: Sums | None, more: Sums) -> Sums:
    return more if before is None else before + more
