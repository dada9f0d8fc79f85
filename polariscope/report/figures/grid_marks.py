"""The marks of a phase diagram: a heat map over two axes, a line for every time over one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import altair as alt
import pandas as pd

from polariscope.plots._look import COLOURS, GREY
from polariscope.report.figures._theme import INK

AXES = {
    "loss": "loss",
    "scores": "score map",
    "model": "model",
    "n": "number of tokens n",
    "d": "dimension d",
    "scale": "scale of V0 and a0",
    "target_norm": "length of the target β*",
    "temperature": "temperature",
    "condition_number": "condition number κ of X",
}
MOST_NUMBERS = 12
"""Columns up to which the cells carry their numbers."""
LONG = 6
"""Letters from which on words under an axis are slanted."""
APART = 0.7
"""Share of an axis that stays free between the places at which several times stand side by side."""
DARK, LIGHT = "#111111", "#ffffff"
_FORM = "datum.value < 1e-3 || datum.value >= 1e6 ? '.3~e' : '.4~r'"
_SHORT = f"isNumber(datum.value) ? format(datum.value, {_FORM}) : datum.value"


@dataclass(frozen=True)
class Panel:
    """One quantity over the cells: its column, title, colour scheme, the caption and the description."""

    column: str
    title: str
    scheme: Literal["viridis", "plasma"]
    caption: str
    description: str


def drawn(cells: pd.DataFrame, axes: Sequence[str], panel: Panel, gradient: int = 200) -> Any:
    """The chart of one quantity; over one axis ``cells`` may hold several times."""
    if len(axes) == 2:
        return _map(cells, axes, panel, gradient)
    return _line(cells, axes[0], panel)


def _top(cells: pd.DataFrame, panel: Panel) -> float:
    return 1.0 if panel.column != "max_s" else max(1.0, float(cells.max_s.max()))


def _tooltip(cells: pd.DataFrame, axes: Sequence[str]) -> list[Any]:
    known = {
        "normalized_entropy": "mean normalized entropy",
        "max_s": "mean largest weight",
        "won_by_u_leader": "won by the leader of u",
        "won_by_s_leader": "won by the leader of s",
    }
    ends = {"": "", "_low": ", interval from", "_high": ", interval to"}
    tips = [alt.Tooltip(f"{name}:N", title=AXES[name]) for name in axes]
    tips += [
        alt.Tooltip(f"{name}{end}:Q", title=title + more, format=".3f")
        for name, title in known.items()
        for end, more in ends.items()
        if cells[name].notna().any()
    ]
    return [
        *tips,
        alt.Tooltip("ties:Q", title="ties", format=".3f"),
        alt.Tooltip("time:N", title="time"),
        alt.Tooltip("statuses:N", title="seeds by status"),
    ]


def _ordinal(
    channel: Any, cells: pd.DataFrame, name: str, *, rising: bool = False, free: float | None = None, **axis: Any
) -> Any:
    """An axis with one place for each value: numbers in order, words as they came, from the left or from the top.

    ``free`` is the share of it that is left between places, if they have a width.
    """
    values = list(dict.fromkeys(cells[name].tolist()))
    words = isinstance(values[0], str)
    ordered = values if words else sorted(values, reverse=rising)
    slant = -35 if words and channel is alt.X and max(map(len, values)) > LONG else 0
    looks = {"ticks": False, "domain": False, "grid": False, "labelOverlap": not words, "labelLimit": 160} | axis
    shown = alt.Axis(labelAngle=slant, labelExpr=_SHORT, **looks)
    room: dict[str, Any] = {} if free is None else {"paddingInner": free, "paddingOuter": free / 2}
    return channel(f"{name}:O", title=AXES[name], axis=shown).scale(domain=ordered, **room)


def _map(cells: pd.DataFrame, axes: Sequence[str], panel: Panel, gradient: int) -> Any:
    """A heat map; cells without a value are grey."""
    x, y = _ordinal(alt.X, cells, axes[0]), _ordinal(alt.Y, cells, axes[1], rising=True)
    base = alt.Chart(cells).encode(x=x, y=y, tooltip=_tooltip(cells, axes))
    top = _top(cells, panel)
    colour = (
        alt.Color(f"{panel.column}:Q")
        .scale(scheme=panel.scheme, domain=[0, top])
        .legend(gradientLength=gradient, title=None)
    )
    value, known = f"datum['{panel.column}']", f"isValid(datum['{panel.column}'])"
    missing = base.transform_filter(f"!{known}").mark_rect(color=GREY)
    tiles = base.transform_filter(known).mark_rect(stroke=INK, strokeOpacity=0.15).encode(color=colour)
    form = f"{value} < 0.005 && {value} > 0 ? '.0e' : '.2f'"
    number = f"({known} ? format({value}, {form}) : 'none')" if cells[axes[0]].nunique() <= MOST_NUMBERS else "''"
    ink = alt.condition(f"!{known} || {value} > {0.62 * top}", alt.value(DARK), alt.value(LIGHT))
    words = base.transform_calculate(label=f"{number} + datum.mark").mark_text(fontSize=11)
    return missing + tiles + words.encode(text="label:N", color=ink)


def _line(cells: pd.DataFrame, axis: str, panel: Panel) -> Any:
    """Means over one axis with their intervals, joined where the axis has an order; one line for every time."""
    y = alt.Y(f"{panel.column}:Q", title=panel.title).scale(domain=[0, _top(cells, panel)])
    several = cells.time.nunique() > 1
    x = _ordinal(alt.X, cells, axis, free=APART if several else None, labelPadding=8)
    base = alt.Chart(cells).encode(x=x, tooltip=_tooltip(cells, [axis]), color=_times(cells))
    if several:  # side by side, so that none hides another
        base = base.encode(xOffset=alt.XOffset("time:O", sort=None))
    low, high = f"{panel.column}_low", f"{panel.column}_high"
    intervals = base.transform_filter(f"isValid(datum['{low}'])").mark_rule(opacity=0.5, strokeWidth=2)
    chart = intervals.encode(y=alt.Y(f"{low}:Q", title=panel.title), y2=f"{high}:Q")
    known = base.transform_filter(f"isValid(datum['{panel.column}'])")
    if not isinstance(cells[axis].iloc[0], str):
        chart += known.mark_line(strokeWidth=1.5).encode(y=y)
    chart += known.mark_circle(size=45, opacity=1).encode(y=y)
    marks = base.transform_filter("datum.mark != ''").mark_text(fontSize=13, dy=-12, text="×")
    value = f"isValid(datum['{panel.column}']) ? datum['{panel.column}'] : 0"
    return chart + marks.transform_calculate(place=value).encode(y="place:Q", color=alt.value(INK))


def _times(cells: pd.DataFrame) -> Any:
    times = list(dict.fromkeys(cells.time))
    if len(times) == 1:
        return alt.value(COLOURS[0])
    scheme = alt.SchemeParams(name="viridis", extent=[0.85, 0.1])
    return alt.Color("time:O", title=None, sort=None).scale(scheme=scheme, domain=times).legend(symbolOpacity=1)
