"""One look for all charts, those of the report included: ink, colours, axes in powers of ten."""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from polariscope.errors import InputError

INK = "#222222"
PAPER = "white"
COLOURS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#000000"]
"""Distinct for any colour vision. Source: Okabe, Ito (2002), without its yellow, which is too light on white."""
GREY = "#9a9a9a"
WIDTH = 340
"""Of one panel, in pixels."""


FONT = "DejaVu Sans, Verdana, sans-serif"
"""The first has all superscripts and brackets; a picture mixes fonts where one lacks them."""


def dressed(chart: Any, ink: str = INK, background: str = PAPER, font: str = FONT) -> Any:
    """The chart in one look; legends on top, so that narrow screens work."""
    return (
        chart.configure(background=background, font=font)
        .configure_view(stroke=None)
        .configure_axis(
            labelColor=ink,
            titleColor=ink,
            domainColor=ink,
            tickColor=ink,
            gridColor=ink,
            gridOpacity=0.12,
            labelFontSize=12,
            titleFontSize=12,
            titleFontWeight="normal",
        )
        .configure_legend(orient="top", labelColor=ink, titleColor=ink, labelFontSize=12, titleFontSize=12, columns=4)
        .configure_text(color=ink)
    )


def titled(chart: Any, title: str, subtitle: str = "") -> Any:
    """A dressed chart with a title at its left edge."""
    lines: dict[str, Any] = {"subtitle": subtitle.split("\n")} if subtitle else {}
    return dressed(
        chart.properties(title=alt.Title(title, anchor="start", offset=8, **lines)).configure_title(
            color=INK, subtitleColor=INK, fontSize=14, subtitleFontSize=12
        )
    )


# Logarithmic axes have ticks at powers of ten only, written 10⁶.
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def powers(first: int = -30, last: int = 30, step: int = 1) -> dict[str, Any]:
    """An axis with ticks at 10^first, 10^(first + step), … up to 10^last."""
    names = [f"10{str(power).translate(_SUPERSCRIPTS)}" for power in range(first, last + 1)]
    return {
        "values": [float(f"1e{power}") for power in range(first, last + 1, step)],
        "labelExpr": f"{names}[round(log(datum.value) / LN10) + {-first}]",
        "labelOverlap": True,
    }


def log_x(field: str, title: str) -> alt.X:
    """A logarithmic horizontal axis labelled with powers of ten."""
    x = alt.X(field, type="quantitative", title=title)
    return x.scale(type="log", nice=False).axis(**powers())


def log_y(field: str, title: str) -> alt.Y:
    """A logarithmic vertical axis labelled with powers of ten."""
    return alt.Y(field, type="quantitative", title=title).scale(type="log").axis(**powers())


def spans_a_decade(values: Any) -> bool:
    """Whether the positive ones among the values differ by a factor of ten or more."""
    known = _positive(values)
    return len(known) > 0 and bool(known.max() >= 10 * known.min())


def _positive(values: Any) -> np.ndarray:
    known = np.asarray(values, float)
    return known[np.isfinite(known) & (known > 0)]


def positive(axis: Any, values: Any) -> Any:
    """The axis for positive numbers: logarithmic if they span a decade, with about six ticks, and linear else."""
    if not spans_a_decade(values):
        return axis.scale(zero=False).axis(tickCount=5)
    known = np.log10(_positive(values))
    first, last = int(np.floor(known.min())), int(np.ceil(known.max()))
    if np.floor(known.max()) - np.ceil(known.min()) < 1:  # not two powers of ten between the ends
        ticks = [float(f"{digit}e{power}") for power in range(first, last) for digit in (1, 2, 5)]
        return axis.scale(type="log", nice=False).axis(format="~g", values=ticks)
    return axis.scale(type="log", nice=False).axis(**powers(first, last, max(1, round((last - first) / 6))))


SIGNED: dict[str, Any] = {
    "values": [-100, -10, -1, 0, 1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7],
    "labelExpr": "format(datum.value, '~s')",
    "labelOverlap": True,
}
"""An axis that is linear near zero and logarithmic beyond."""


def inlined(table: pd.DataFrame) -> alt.InlineData:
    """The rows inside the chart, however many; what is not finite becomes null and is not drawn."""
    clean = table.astype(object).where(~table.isin([np.inf, -np.inf]) & table.notna(), None)
    rows: Any = clean.to_dict("records")
    return alt.InlineData(values=rows)


def expected(value: Any, kind: type, maker: str) -> Any:
    """The value, if it is what a chart draws. Raises InputError that names what makes one."""
    if isinstance(value, kind):
        return value
    raise InputError(
        "what to draw", got=type(value).__name__, expected=f"a {kind.__name__}", fix=f"give what {maker} returns"
    )


def several(values: Any, kind: type, maker: str) -> tuple[list[str] | None, list[Any]]:
    """The names, if given, and the results: of one, of a sequence, or of a mapping from names."""
    if isinstance(values, Mapping):
        names, found = [str(name) for name in values], list(values.values())
    else:
        names, found = None, list(values) if isinstance(values, Sequence) else [values]
    if not found:
        raise InputError("what to draw", got="none", expected=f"at least one {kind.__name__}", fix=f"see {maker}")
    return names, [expected(value, kind, maker) for value in found]
