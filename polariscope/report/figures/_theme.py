"""The look of the page's charts: no background, text in the page's colour, as wide as their container."""

from typing import Any

from polariscope.plots._look import dressed, log_x, log_y

__all__ = ["HEIGHT", "INK", "log_x", "log_y", "themed"]

HEIGHT = 260
INK = "currentColor"
FONT = "system-ui, sans-serif"


def themed(chart: Any, height: int = HEIGHT) -> Any:
    """The chart at the width of its container, with the report's look."""
    return dressed(chart.properties(width="container", height=height), INK, "transparent", FONT)
