"""Charts of results, one function per kind: each takes a finished result and returns an Altair chart.

    >>> chart = path(flow.solve(flow.preset("logistic"), log_t=[1.0, 10.0, 100.0]))
    >>> save(chart, "path.png")

They draw what the objects hold and compute nothing. Altair is loaded when a name needs it.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polariscope.plots.basin_charts import basins
    from polariscope.plots.clock_charts import shared_path
    from polariscope.plots.comparison_charts import comparison
    from polariscope.plots.path_charts import path
    from polariscope.plots.rate_charts import rates, series
    from polariscope.plots.saving import save
    from polariscope.plots.sensitivity_charts import sensitivity
    from polariscope.plots.winner_charts import winners

_NAMES = {
    "path": "path_charts",
    "shared_path": "clock_charts",
    "comparison": "comparison_charts",
    "sensitivity": "sensitivity_charts",
    "basins": "basin_charts",
    "winners": "winner_charts",
    "rates": "rate_charts",
    "series": "rate_charts",
    "save": "saving",
}
__all__ = ["basins", "comparison", "path", "rates", "save", "sensitivity", "series", "shared_path", "winners"]


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(importlib.import_module(f"polariscope.plots.{_NAMES[name]}"), name)
    raise AttributeError(f"module 'polariscope.plots' has no attribute {name!r}")
