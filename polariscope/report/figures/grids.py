"""Charts of phase diagrams: mean entropy and who wins, over one or two axes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import altair as alt
import numpy as np
import pandas as pd

from polariscope.report._page import Figure
from polariscope.report.figures._theme import INK, styled, themed

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
UNFINISHED = "×"
MOST_NUMBERS = 12
"""Columns up to which the cells carry their numbers."""
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


def panels(cells: pd.DataFrame) -> list[Panel]:
    """What is drawn: entropy, or the largest weight where none has an entropy, and who wins."""
    if cells.normalized_entropy.notna().any():
        what, title, how = "normalized_entropy", "mean normalized entropy", "0 is one-hot, 1 an even spread."
    else:
        what, title, how = "max_s", "mean largest weight", "Weights that are not distributions have no entropy."
    found = [Panel(what, title, "viridis", how, f"Chart of the {title} over the cells.")]
    leads = [name for name in ("u", "s") if cells[f"won_by_{name}_leader_of"].sum() > 0][:1]
    leader = {"u": "u = Vᵀβ*", "s": "the weights s"}
    return found + [
        Panel(
            f"won_by_{name}_leader",
            f"share won by the initial leader of {name}",
            "plasma",
            f"The share of seeds in which the token with the largest {leader[name]} at the start has the largest "
            "weight at the end.",
            f"Chart of the share of seeds won by the initial leader of {name}.",
        )
        for name in leads
    ]


def figures(cells: pd.DataFrame, axes: Sequence[str]) -> list[Figure]:
    """Charts of a phase diagram for the page; ``cells`` as `flow.grid_summary` gives them, the last time is drawn."""
    last, notes = _last(cells, axes), _notes(cells)
    return [
        Figure(
            panel.title[0].upper() + panel.title[1:],
            f"{panel.caption} {notes}",
            themed(_chart(last, axes, panel), height=_height(last, axes)),
            panel.description,
        )
        for panel in panels(cells)
    ]


def picture(cells: pd.DataFrame, axes: Sequence[str], title: str, subtitle: str) -> dict[str, Any]:
    """All charts of a phase diagram beside each other, as a Vega-Lite specification for a white page."""
    last = _last(cells, axes)
    width = max(240, min(46 * last[axes[0]].nunique(), 560)) if len(axes) == 2 else 340
    size = {"width": width, "height": _height(last, axes)}
    heads = [alt.TitleParams(panel.title, fontWeight="normal", fontSize=13) for panel in panels(cells)]
    parts = [
        _chart(last, axes, panel, legend_title=None).properties(title=head, **size)
        for panel, head in zip(panels(cells), heads, strict=True)
    ]
    whole = alt.hconcat(*parts, spacing=36).resolve_scale(color="independent")
    heading = alt.TitleParams(title, subtitle=subtitle, anchor="start", fontSize=15, subtitleFontSize=12, offset=14)
    chart = styled(whole.properties(title=heading, padding=14)).configure_legend(gradientThickness=10)
    with alt.data_transformers.enable("default", max_rows=None):
        spec = chart.to_dict()
    return _replaced(spec, {INK: "#1d2430", "transparent": "white"})


def _replaced(value: Any, words: Mapping[str, str]) -> Any:
    """The specification with some of its strings replaced: a picture has no page to take colours from."""
    if isinstance(value, dict):
        return {key: _replaced(one, words) for key, one in value.items()}
    if isinstance(value, list):
        return [_replaced(one, words) for one in value]
    return words.get(value, value) if isinstance(value, str) else value


def _last(cells: pd.DataFrame, axes: Sequence[str]) -> pd.DataFrame:
    """The cells at the last time, with what the charts say in words."""
    last = cells[cells.log_t == cells.log_t.max()].reset_index(drop=True)
    shares = [name for name in last.columns if name.startswith("share_")]
    seeds = last.seeds.to_numpy()

    def words(row: Mapping[str, Any], count: int) -> str:
        named = ((name.removeprefix("share_").replace("_", " "), round(row[name] * count)) for name in shares)
        return ", ".join(f"{number} {name}" for name, number in named if number)

    said = [words(row, count) for row, count in zip(last[shares].to_dict("records"), seeds, strict=True)]
    drawn = [*axes, *(name for name in last.columns if name not in shares and name not in axes)]
    return last[drawn].assign(statuses=said, mark=np.where(last.reached < last.seeds, f" {UNFINISHED}", ""))


def _notes(cells: pd.DataFrame) -> str:
    times = cells.log_t.unique()
    notes = "" if len(times) == 1 else f"The last of {len(times)} times is drawn. "
    if (cells.reached < cells.seeds).any():
        notes += f"{UNFINISHED} marks cells in which some seeds did not get there; the number is about the others. "
    return f"{notes}Hover for intervals and statuses."


def _height(cells: pd.DataFrame, axes: Sequence[str]) -> int:
    return max(120, min(40 * cells[axes[1]].nunique(), 560)) if len(axes) == 2 else 260


def _chart(cells: pd.DataFrame, axes: Sequence[str], panel: Panel, **legend: Any) -> Any:
    return _map(cells, axes, panel, **legend) if len(axes) == 2 else _line(cells, axes[0], panel)


def _tooltip(cells: pd.DataFrame, axes: Sequence[str]) -> list[Any]:
    known = {
        "normalized_entropy": "mean normalized entropy",
        "normalized_entropy_low": "interval from",
        "normalized_entropy_high": "interval to",
        "max_s": "mean largest weight",
        "max_s_low": "its interval from",
        "max_s_high": "its interval to",
        "won_by_u_leader": "won by the leader of u",
        "won_by_s_leader": "won by the leader of s",
        "ties": "ties",
    }
    tips = [alt.Tooltip(f"{name}:N", title=AXES[name]) for name in axes]
    tips += [alt.Tooltip(f"{name}:Q", title=title, format=".3f") for name, title in known.items() if name in cells]
    return [*tips, alt.Tooltip("statuses:N", title="seeds by status")]


def _ordinal(channel: Any, cells: pd.DataFrame, name: str, *, rising: bool = False) -> Any:
    """An axis with one place for each value: numbers in order, words as they came, from the left or from the top."""
    values = list(dict.fromkeys(cells[name].tolist()))
    ordered = values if isinstance(values[0], str) else sorted(values, reverse=rising)
    axis = alt.Axis(labelAngle=0, labelExpr=_SHORT, labelOverlap=True, ticks=False, domain=False, grid=False)
    return channel(f"{name}:O", title=AXES[name], sort=ordered, axis=axis)


def _map(cells: pd.DataFrame, axes: Sequence[str], panel: Panel, legend_title: Any = alt.Undefined) -> Any:
    """A heat map; cells without a value are grey."""
    x, y = _ordinal(alt.X, cells, axes[0]), _ordinal(alt.Y, cells, axes[1], rising=True)
    base = alt.Chart(cells).encode(x=x, y=y, tooltip=_tooltip(cells, axes))
    top = 1.0 if panel.column != "max_s" else max(1.0, float(cells.max_s.max()))
    colour = (
        alt.Color(f"{panel.column}:Q", title=panel.title)
        .scale(scheme=panel.scheme, domain=[0, top])
        .legend(gradientLength=200, titleLimit=400, title=legend_title)
    )
    known = f"isValid(datum['{panel.column}'])"
    tiles = base.mark_rect(stroke=INK, strokeOpacity=0.15).encode(
        color=alt.condition(known, colour, alt.value("#9aa3ad"))
    )
    numbers = cells[axes[0]].nunique() <= MOST_NUMBERS
    form = f"datum['{panel.column}'] < 0.005 && datum['{panel.column}'] > 0 ? '.0e' : '.2f'"
    value = f"({known} ? format(datum['{panel.column}'], {form}) : 'none')" if numbers else "''"
    words = base.transform_calculate(label=f"{value} + datum.mark").mark_text(fontSize=11)
    bright = f"{known} && datum['{panel.column}'] > {0.62 * top}"
    ink = alt.condition(bright, alt.value("#111111"), alt.value("#ffffff"))
    return tiles + words.encode(text="label:N", color=ink)


def _line(cells: pd.DataFrame, axis: str, panel: Panel) -> Any:
    """Means over one axis, with their intervals where there are any."""
    top = 1.0 if panel.column != "max_s" else max(1.0, float(cells.max_s.max()))
    y = alt.Y(f"{panel.column}:Q", title=panel.title).scale(domain=[0, top])
    base = alt.Chart(cells).encode(x=_ordinal(alt.X, cells, axis), tooltip=_tooltip(cells, [axis]))
    colour = "#4c78a8"
    chart = base.mark_line(color=colour, strokeWidth=1.5, point={"color": colour, "size": 45}).encode(y=y)
    if f"{panel.column}_low" in cells:
        ends = {"y": alt.Y(f"{panel.column}_low:Q", title=panel.title), "y2": f"{panel.column}_high:Q"}
        chart = base.mark_rule(color=colour, opacity=0.6, strokeWidth=2).encode(**ends) + chart
    marks = base.transform_filter("datum.mark != ''").mark_text(fontSize=13, dy=-12, color=INK, text=UNFINISHED)
    return chart + marks.encode(y=alt.datum(0.0) if cells[panel.column].isna().all() else y)
