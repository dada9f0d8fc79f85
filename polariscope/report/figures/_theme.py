"""One look for all charts: no background, text in the page's colour, legends on top so that narrow screens work."""

from typing import Any

import altair as alt

HEIGHT = 260
INK = "currentColor"


def themed(chart: Any, height: int = HEIGHT) -> Any:
    """The chart at the width of its container, with the report's look."""
    return styled(chart.properties(width="container", height=height))


def styled(chart: Any) -> Any:
    """The report's look, for a chart of any size or several beside each other."""
    return (
        chart.configure(background="transparent", font="system-ui, sans-serif")
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


# Logarithmic axes have ticks at powers of ten only, written 10⁶.
_DECADES = [float(f"1e{power}") for power in range(-30, 31)]
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_NAMES = [f"10{str(power).translate(_SUPERSCRIPTS)}" for power in range(-30, 31)]
_POWERS: dict[str, Any] = {
    "values": _DECADES,
    "labelExpr": f"{_NAMES}[round(log(datum.value) / LN10) + 30]",
    "labelOverlap": True,
}


def log_x(field: str, title: str) -> alt.X:
    """A logarithmic horizontal axis labelled with powers of ten."""
    x = alt.X(field, type="quantitative", title=title)
    return x.scale(type="log", nice=False).axis(**_POWERS)


def log_y(field: str, title: str) -> alt.Y:
    """A logarithmic vertical axis labelled with powers of ten."""
    return alt.Y(field, type="quantitative", title=title).scale(type="log").axis(**_POWERS)
