"""Bootstrap intervals of means over documents or seeds."""

from typing import Any

import numpy as np
from scipy import stats

from polariscope.errors import InputError
from polariscope.metrics._samples import last_axis

_BLOCK = 1 << 22  # entries of the resampling matrix held at once: 32 MiB


def bootstrap_interval(
    samples: Any, axis: int = 0, confidence: float = 0.95, seed: int = 0, resamples: int = 2000
) -> tuple[Any, Any]:
    """The percentile bootstrap interval of the mean over independent samples (documents, seeds; not heads).

    Every other axis is treated at once and with the same resamples, so 270 heads × 1000 documents are one matrix
    product. For a paired comparison give the differences, document by document.

    Args:
        samples: one number per sample, an array with the samples on ``axis``.
        axis: where the samples are.
        confidence: coverage that is aimed at, between 0 and 1. With few samples (n < 20) the true coverage is lower.
        seed: of the resampling.
        resamples: how many.

    Returns:
        (low, high), arrays without ``axis``. Equal samples give the point itself twice, fewer than two samples NaN.

    Raises:
        InputError: for samples that are NaN or infinite, and for settings out of range.

    Source: Efron (1979), Bootstrap Methods: Another Look at the Jackknife; resampling and percentiles by SciPy.
    """
    x = last_axis(samples, axis)
    _check(x, confidence, resamples, seed)
    n = x.shape[-1]
    if n < 2:
        nothing = np.full(x.shape[:-1], np.nan)
        return nothing[()], nothing[()]
    rows = x.reshape(-1, n)

    def mean(index: np.ndarray, axis: int) -> np.ndarray:
        drawn = index.reshape(-1, n).astype(np.int64)
        place = drawn + n * np.arange(len(drawn))[:, None]
        counts = np.bincount(place.ravel(), minlength=n * len(drawn)).reshape(-1, n)
        return rows @ (counts.T / n)

    interval = stats.bootstrap(
        (np.arange(n),),
        mean,
        n_resamples=resamples,
        batch=max(1, _BLOCK // n),
        vectorized=True,
        axis=-1,
        confidence_level=confidence,
        method="percentile",
        rng=np.random.default_rng(seed),
    ).confidence_interval
    constant = rows.max(axis=-1) == rows.min(axis=-1)
    low, high = (np.where(constant, rows[:, 0], end).reshape(x.shape[:-1]) for end in interval)
    return low[()], high[()]


def _check(x: np.ndarray, confidence: float, resamples: int, seed: int) -> None:
    bad = int(x.size - np.isfinite(x).sum())
    if bad:
        fix = "leave those samples out and say how many they were"
        raise InputError("samples", got=f"{bad} of {x.size} not finite", expected="finite numbers", fix=fix)
    if not 0 < confidence < 1:
        raise InputError("confidence", got=confidence, expected="a number between 0 and 1", fix="0.95 is usual")
    if resamples < 100:
        raise InputError("resamples", got=resamples, expected="at least 100", fix="2000 is the default")
    if seed < 0:
        raise InputError("seed", got=seed, expected="0 or more", fix="0 is the default")
