"""Intervals over documents: bootstrap; heads are not independent."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from polariscope.metrics import bootstrap_interval
from polariscope.probe.recording import Array


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
