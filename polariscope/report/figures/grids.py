"""Charts of phase diagrams: mean entropy and who wins, over one or two axes."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import altair as alt
import numpy as np
import pandas as pd

from polariscope.report._page import Figure
from polariscope.report.figures._theme import INK, styled, themed
from polariscope.report.figures.grid_marks import Panel, drawn

FEWER = "×"
MOST_TIMES = 6
"""Lines over one axis."""
Clock = Literal["t", "log_t"]
"""In what times are written."""


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


def figures(cells: pd.DataFrame, axes: Sequence[str], clock: Clock = "log_t") -> list[Figure]:
    """Charts of a phase diagram for the page; ``cells`` as `flow.grid_summary` gives them.

    Over one axis a line for every time (the last and some others, if they are many), over two the last time; ``clock``
    says in what times are written.
    """
    shown = _shown(cells, axes, clock)
    notes = _notes(cells, shown)
    return [
        Figure(
            panel.title[0].upper() + panel.title[1:],
            f"{panel.caption} {notes}",
            themed(drawn(shown, axes, panel), height=_height(shown, axes)),
            panel.description,
        )
        for panel in panels(cells)
    ]


def picture(
    cells: pd.DataFrame, axes: Sequence[str], title: str, subtitle: str, clock: Clock = "log_t"
) -> dict[str, Any]:
    """All charts of a phase diagram beside each other, as a Vega-Lite specification for a white page."""
    shown = _shown(cells, axes, clock)
    width = max(240, min(46 * shown[axes[0]].nunique(), 560)) if len(axes) == 2 else 340
    height = _height(shown, axes)
    if (shown.mark != "").any():
        subtitle += f"; {FEWER}: mean over fewer seeds"
    heads = [alt.TitleParams(panel.title, fontWeight="normal", fontSize=13) for panel in panels(cells)]
    parts = [
        drawn(shown, axes, panel, min(height, 200)).properties(title=head, width=width, height=height)
        for panel, head in zip(panels(cells), heads, strict=True)
    ]
    whole = alt.hconcat(*parts, spacing=36)
    whole = whole.resolve_scale(color="independent") if len(axes) == 2 else whole
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


def _shown(cells: pd.DataFrame, axes: Sequence[str], clock: Clock) -> pd.DataFrame:
    """The cells at the times that are drawn, with what the charts say in words."""
    times = sorted(cells.log_t.unique())
    count = 1 if len(axes) == 2 else min(len(times), MOST_TIMES)
    kept = {times[place] for place in np.linspace(len(times) - 1, 0, count).round().astype(int)}
    last = cells[cells.log_t.isin(kept)].reset_index(drop=True)
    statuses = [name for name in last.columns if name.startswith("share_")]
    counts = last[statuses].mul(last.seeds, axis=0).round().astype(int)
    fewer = (last.reached < last.seeds) | last.normalized_entropy_of.between(1, last.seeds - 1)
    words = [
        ", ".join(
            f"{number} {str(name).removeprefix('share_').replace('_', ' ')}" for name, number in row.items() if number
        )
        for row in counts.to_dict("records")
    ]
    return last.drop(columns=[*statuses, "log_t"]).assign(
        statuses=words, mark=np.where(fewer, f" {FEWER}", ""), time=[_said(log_t, clock) for log_t in last.log_t]
    )


def _said(log_t: float, clock: Clock) -> str:
    return f"t = {np.exp(log_t):.4g}" if clock == "t" else f"log t = {log_t:.4g}"


def _notes(cells: pd.DataFrame, shown: pd.DataFrame) -> str:
    times, seen = cells.log_t.nunique(), shown.time.nunique()
    which = "The last" if seen == 1 else f"{seen}"
    notes = "" if times == seen else f"{which} of {times} times {'is' if seen == 1 else 'are'} drawn. "
    if (shown.mark != "").any():
        notes += f"{FEWER} marks cells in which some seeds did not get there or have no weights; the number is about "
        notes += "the others. "
    return f"{notes}Hover for intervals and statuses."


def _height(cells: pd.DataFrame, axes: Sequence[str]) -> int:
    return max(120, min(40 * cells[axes[1]].nunique(), 560)) if len(axes) == 2 else 260
