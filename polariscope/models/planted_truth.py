"""What is known about the planted model, in closed form."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import entr


@dataclass(frozen=True)
class HeadTruth:
    """One head whose query i (counted from 1) puts a known weight on key 1 and shares the rest out equally.

    A[1, 1] = 1;  A[i, 1] = p and A[i, j] = (1 − p)/(i − 1) for 1 < j ≤ i.

    Args:
        share: p, or None for a head that is uniform over the visible keys, A[i, j] = 1/i.
    """

    share: float | None

    def first_key_share(self, query: ArrayLike) -> NDArray[np.float64]:
        """A[i, 1] for queries i counted from 1."""
        i = np.asarray(query, dtype=np.float64)
        return np.where(i == 1, 1.0, 1 / i if self.share is None else self.share)

    def other_key_share(self, query: ArrayLike) -> NDArray[np.float64]:
        """A[i, j] for any visible key j > 1 (0 for the first query, which sees none)."""
        i = np.asarray(query, dtype=np.float64)
        return (1 - self.first_key_share(i)) / np.maximum(i - 1, 1)

    def entropy(self, query: ArrayLike) -> NDArray[np.float64]:
        """H_i in nats: −p log p − (1 − p) log((1 − p)/(i − 1)); log i for a uniform head; 0 for the first query."""
        i = np.asarray(query, dtype=np.float64)
        return entr(self.first_key_share(i)) + (i - 1) * entr(self.other_key_share(i))

    def max_weight(self, query: ArrayLike) -> NDArray[np.float64]:
        """max_j A[i, j]."""
        return np.maximum(self.first_key_share(query), self.other_key_share(query))

    def map(self, length: int) -> NDArray[np.float64]:
        """The whole attention map A, (T, T)."""
        i = np.arange(1, length + 1)
        weights = np.tril(np.repeat(self.other_key_share(i)[:, None], length, axis=1))
        weights[:, 0] = self.first_key_share(i)
        return weights


@dataclass(frozen=True)
class MassiveTruth:
    """The massive activation: ``h[position, channel] = value`` in the residual stream after each of ``layers``.

    Args:
        layers: the layers (0-based) whose output has it.
        channel: its channel (0-based). Everywhere else, at other positions and after other layers, it holds exactly 0.
        position: its position (0-based).
        value: its value.
    """

    layers: tuple[int, ...]
    channel: int
    position: int
    value: float


# The truth of the model. Shares of the first key, layer by layer and head by head; None is uniform. Shares between 0
# and 1 are possible in layer 0 only, and a share of 1 only after the massive activation is there (planted_weights.py).
SHARES: tuple[tuple[float | None, ...], ...] = (
    (0.9, 0.5, 0.2, None),
    (None, None, None, None),
    (1.0, None, 1.0, None),
    (None, 1.0, None, None),
)
MASSIVE = MassiveTruth(layers=(1, 2), channel=62, position=0, value=4096.0)
