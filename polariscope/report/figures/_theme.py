"""The look of the page's charts: no background, text in the page's colour, as wide as their container."""

from typing import Any

from polariscope.plots._look import dressed, log_x, log_y

__all__ = ["HEIGHT", "INK", "log_x", "log_y", "styled", "themed"]

HEIGHT = 260
INK = "currentColor"
FONT = "system-ui, sans-serif"


def themed(chart: Any, height: int = HEIGHT) -> Any:
    """The chart at the width of its container, with the report's look."""
    return styled(chart.properties(width="container", height=height))


def styled(chart: Any) -> Any:
    """The report's look, for a chart of any size or several beside each other."""
    return dressed(chart, INK, "transparent", FONT)
