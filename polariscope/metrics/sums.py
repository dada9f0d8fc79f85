"""A mean that can be gathered in parts."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from polariscope.errors import InputError
from polariscope.metrics._samples import last_axis


@dataclass(frozen=True, eq=False)
class Sums:
    """Counts and sums over samples, per cell. `Sums.of` a whole equals the merge of `Sums.of` its parts.

    Merging is commutative, and associative up to rounding in float64. NaN is counted apart and enters no sum.

    Args:
        count: samples that are numbers, (…,).
        nan: samples that are NaN, (…,).
        total: sum of the numbers, (…,).
    """

    count: np.ndarray
    nan: np.ndarray
    total: np.ndarray

    @classmethod
    def of(cls, samples: Any, axis: int = 0) -> Self:
        """The sums of an array over the axis that holds the samples (NumPy, JAX, or torch on the CPU)."""
        x = last_axis(samples, axis)
        missing = np.isnan(x)
        return cls((~missing).sum(axis=-1), missing.sum(axis=-1), np.where(missing, 0.0, x).sum(axis=-1))

    def merge(self, other: "Sums") -> "Sums":
        """The sums over both sets of samples. Raises InputError if the cells differ."""
        if self.total.shape != other.total.shape:
            raise InputError(
                "sums to merge",
                got=f"cells of shape {self.total.shape} and {other.total.shape}",
                expected="the same cells",
                fix="merge sums of the same quantity",
            )
        return Sums(self.count + other.count, self.nan + other.nan, self.total + other.total)

    __add__ = merge

    @property
    def mean(self) -> np.ndarray:
        """Mean over the samples that are numbers; NaN where there is none. Show ``nan`` beside it."""
        return np.where(self.count > 0, self.total / np.maximum(self.count, 1), np.nan)
