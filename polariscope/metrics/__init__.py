"""Metrics of attention weights: pure functions of NumPy, JAX and torch arrays, keys on the last axis.

A metric that is only meaningful for distributions (entropy) asks the score map for its declared properties, or checks
the rows as numbers, and refuses otherwise. NaN comes out as NaN.
"""

from typing import TYPE_CHECKING, Any

from polariscope.metrics.concentration import first_key_share, max_weight, participation, relative_max_weight, shares
from polariscope.metrics.entropy import effective_support, entropy, normalized_entropy
from polariscope.metrics.flips import flip_rate
from polariscope.metrics.sinks import column_means, sink_rate

if TYPE_CHECKING:
    from polariscope.metrics.intervals import bootstrap_interval
    from polariscope.metrics.sums import Sums

__all__ = [
    "Sums",
    "bootstrap_interval",
    "column_means",
    "effective_support",
    "entropy",
    "first_key_share",
    "flip_rate",
    "max_weight",
    "normalized_entropy",
    "participation",
    "relative_max_weight",
    "shares",
    "sink_rate",
]


def __getattr__(name: str) -> Any:  # these two need NumPy and SciPy
    if name == "Sums":
        from polariscope.metrics.sums import Sums

        return Sums
    if name == "bootstrap_interval":
        from polariscope.metrics.intervals import bootstrap_interval

        return bootstrap_interval
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
