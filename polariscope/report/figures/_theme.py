"""One look for all charts: no background, text in the page's colour, legends on top so that narrow screens work."""

from typing import Any

import altair as alt

HEIGHT = 260
INK = "currentColor"


def themed(chart: Any, height: int = HEIGHT) -> Any:
    """The chart at the width of its container, with the report's look."""
    return (
        chart.properties(width="container", height=height)
        .configure(background="transparent", font="system-ui, sans-serif")
        .configure_view(stroke=None)
        .configure_axis(
            labelColor=INK,
            titleColor=INK,
            domainColor=INK,
            tickColor=INK,
            gridColor=INK,
            gridOpacity=0.12,
            labelFontSize=12,
            titleFontSize=12,
            titleFontWeight="normal",
        )
        .configure_legend(orient="top", labelColor=INK, titleColor=INK, labelFontSize=12, titleFontSize=12, columns=4)
        .configure_text(color=INK)
    )


def log_x(field: str, title: str) -> alt.X:
    """A logarithmic horizontal axis with plain powers of ten."""
    return alt.X(field, type="quantitative", title=title).scale(type="log", nice=False).axis(format="~e", tickCount=7)
