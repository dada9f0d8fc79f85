"""Kinks on the way of a path in path time: located, cut at, and crossed by leaving out the keys that lost weight.

At a kink the weight of a key reaches 0 with its logit at the edge of the part where σ is smooth. Beyond the edge the
logit has no velocity (relu, sparsemax) or one that points back (L1), so it stays at the edge: the one-sided rule. Its
payoff u then rests while the mean payoff z grows, so it does not come back.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.optimize import brentq

from polariscope.flow.chart import GONE
from polariscope.flow.clock import coefficients
from polariscope.flow.tracks import Track


def undecided(track: Track) -> None:
    """Ends a track at its start if a key rests on an edge that it may leave or not: the path is not unique.

    Such keys stand exactly at the edge, with a payoff above the mean (above 0 without normalization). At the start the
    payoffs û are D.
    """
    where = track.where
    if track.chart.floor != 0 or not where.any():
        return
    s = track.chart.weights(track.q, where)
    push = (track.D - track.chart.mean_payoff(s, track.D, where))[: len(track.problem.a0)]
    keys = np.flatnonzero(track.chart.edge(track.problem.a0, track.problem.where) & (push > 0))
    if len(keys):
        track.kinks += [(-np.inf, int(key)) for key in keys]
        track.ended = "kink"


def cut(
    rows: Sequence[Track], taken: Any, refine: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
) -> dict[int, np.ndarray]:
    """Shortens the last step of paths that overshot a kink so that it ends there.

    Args:
        rows: the tracks. taken: their steps, changed in place.
        refine: states D and q at the Chebyshev points of steps (path, step).

    Returns:
        the keys that lost their weight, for every row that reached a kink.
    """
    last = np.array([int(count) - 1 for count in taken.accepted])
    over = [
        i
        for i, row in enumerate(rows)
        if row.chart.floor > -np.inf and last[i] >= 0 and _overshot(row, taken.q[i, last[i] + 1])
    ]
    if not over:
        return {}
    states = (coefficients(values) for values in refine(np.array(over), last[over]))
    return {i: _cut_one(rows[i], taken, (i, int(last[i])), D, q) for i, D, q in zip(over, *states, strict=True)}


def _overshot(row: Track, q: np.ndarray) -> bool:
    return bool((row.chart.weights(q, row.where)[row.where] <= row.chart.floor).any())


def _cut_one(row: Track, taken: Any, place: tuple[int, int], D: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Cuts one step, with the states as Chebyshev coefficients, where the least weight reaches 0."""
    i, step = place

    def basis(at: float) -> np.ndarray:
        return np.cos(np.arange(len(q)) * np.arccos(np.clip(2 * at - 1, -1, 1)))

    def weights(at: float) -> np.ndarray:
        return row.chart.weights(basis(at) @ q, row.where)

    def least(at: float) -> float:
        return float(weights(at)[row.where].min()) - row.chart.floor

    root: Any = brentq(least, 0.0, 1.0, xtol=1e-14) if least(0.0) > 0 else 1e-9
    at = float(root)
    taken.x[i, step + 1] = taken.x[i, step] + at * (taken.x[i, step + 1] - taken.x[i, step])
    taken.D[i, step + 1], taken.q[i, step + 1] = basis(at) @ D, basis(at) @ q
    return np.flatnonzero(row.where & (weights(at) <= GONE))


def leave(row: Track, keys: np.ndarray) -> None:
    """Takes keys out of a path that stands at a kink."""
    row.where = row.where.copy()
    row.where[keys] = False
    if row.log_t <= row.problem.log_t[-1]:
        row.kinks += [(row.log_t, int(key)) for key in keys]
