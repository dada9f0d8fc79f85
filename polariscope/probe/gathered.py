"""Numbers of all documents put together, and intervals over them."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from polariscope.metrics import Sums, bootstrap_interval
from polariscope.probe.documents import Tokens
from polariscope.probe.statistics import Array, Massive, Measured

# Positions whose tokens are kept.
FIRST_POSITIONS = 16


@dataclass(frozen=True)
class Intervals:
    """How intervals are made: bootstrap over documents.

    Args:
        confidence: coverage aimed at.
        seed: of the resampling.
    """

    confidence: float = 0.95
    seed: int = 0

    def mean(self, samples: Array) -> tuple[Array, Array, Array]:
        """Mean, low and high over the first axis, the documents. NaN samples are left out, cell by cell.

        One resampling serves all complete cells; a cell without two numbers has NaN ends.
        """
        cells = samples.reshape(len(samples), -1)
        value, low, high = (np.full(cells.shape[1], np.nan) for _ in range(3))
        complete = np.isfinite(cells).all(axis=0)
        if complete.any():
            value[complete] = cells[:, complete].mean(axis=0)
            low[complete], high[complete] = self._ends(cells[:, complete])
        for cell in np.flatnonzero(~complete):
            finite = cells[np.isfinite(cells[:, cell]), cell]
            if len(finite):
                value[cell] = finite.mean()
                low[cell], high[cell] = self._ends(finite)
        shape = samples.shape[1:]
        return value.reshape(shape), low.reshape(shape), high.reshape(shape)

    def columns(self, name: str, samples: Array) -> dict[str, Array]:
        """``name``, ``name_low``, ``name_high``, flat."""
        value, low, high = self.mean(samples)
        return {name: value.ravel(), f"{name}_low": low.ravel(), f"{name}_high": high.ravel()}

    def record(self, samples: Array) -> dict[str, float]:
        """The same of one number per document, as an object for ``results.json``."""
        value, low, high = (float(x) for x in self.mean(samples))
        return {"value": value, "low": low, "high": high}

    def _ends(self, samples: Array) -> tuple[Any, Any]:
        return bootstrap_interval(samples, axis=0, confidence=self.confidence, seed=self.seed)


@dataclass
class Gathered:
    """What is kept of all measured documents.

    Args:
        names: of the metrics.
        tokens: each document's tokens; the ids of the first positions only.
        values: of each document, (L, M, H).
        bad_rows: of each document, (L, H).
        massive: of each document, one a layer.
        alpha: sums of α_k over documents, (L, H, T).
        sinks: sums of 1{α_k > ε} over documents and heads, (L, T).
        massive_tokens: of each document, the token id at each layer's largest activation.
    """

    names: list[str]
    eps: float
    tokens: list[Tokens] = field(default_factory=list)
    values: list[Array] = field(default_factory=list)
    bad_rows: list[np.ndarray] = field(default_factory=list)
    massive: list[tuple[Massive, ...]] = field(default_factory=list)
    massive_tokens: list[list[int]] = field(default_factory=list)
    alpha: Sums | None = None
    sinks: Sums | None = None

    def add(self, tokens: Tokens, measured: Measured) -> None:
        """Take one document."""
        self.tokens.append(Tokens(tokens.id, tokens.ids[:FIRST_POSITIONS], tokens.count))
        self.values.append(measured.values)
        self.bad_rows.append(measured.bad_rows)
        self.massive.append(measured.massive)
        self.massive_tokens.append([tokens.ids[m.position] for m in measured.massive])
        bad = (measured.bad_rows > 0)[:, :, None]
        alpha = np.where(bad, np.nan, measured.alpha)
        sinks = np.where(np.isnan(alpha), np.nan, alpha > self.eps)
        mine, over = Sums.of(alpha[None]), Sums.of(sinks, axis=1)
        self.alpha = mine if self.alpha is None else self.alpha + mine
        self.sinks = over if self.sinks is None else self.sinks + over

    def means(self) -> Array:
        """Mean over all heads of every metric, (N, M); heads without a number in a document are left out of it."""
        values = np.stack(self.values)
        return Sums.of(values.swapaxes(2, 3).reshape(len(values), -1, len(self.names)), axis=1).mean
