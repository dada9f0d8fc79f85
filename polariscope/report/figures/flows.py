"""Charts of gradient flows: u and s over log t, the distance to one-hot against the rate law, the replicator test."""

from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from polariscope.plots._look import SIGNED
from polariscope.plots.path_charts import TIME, token_lines, token_table
from polariscope.report._page import Figure
from polariscope.report.figures._theme import INK, log_x, log_y, themed


def one_path(path: pd.DataFrame) -> list[Figure]:
    """Attention weights and projections of one flow; ``path`` has log_t, coordinate, s and u."""
    weights = Figure(
        "Attention weights s along one flow",
        "Each line is one token. The axis is the logarithm of time, itself on a logarithmic scale: the right end is "
        "t = e^(10⁶). Click a token in the legend to single it out; hover for values.",
        _lines(path, alt.Y("s:Q", title="attention weight s"), "s"),
        "Line chart of attention weights over log t: one token takes all the weight.",
    )
    projections = Figure(
        "Projections u of the values on the target",
        "The value of the winning token keeps growing along the target; the others stop once they are not attended to. "
        "The vertical axis is linear near zero and logarithmic beyond.",
        _lines(
            path,
            alt.Y("u:Q", title="projection u").scale(type="symlog", constant=0.1, nice=False).axis(**SIGNED),
            "u",
        ),
        "Line chart of projections u over log t: the winner grows, the others level off.",
    )
    return [weights, projections]


def _lines(path: pd.DataFrame, y: alt.Y, field: str) -> Any:
    chosen = alt.selection_point(fields=["coordinate"], bind="legend")
    colour = alt.Color("coordinate:N", title="token").scale(scheme="tableau10")
    lines = token_lines(path[["log_t", "coordinate", field]], log_x("log_t", TIME), y, field, colour, chosen)
    return themed(lines.add_params(chosen))


def study_paths(folder: Path) -> list[Figure]:
    """The first flow of n = 8 (or of the middle size) of a flow claim."""
    paths = pd.read_parquet(folder / "paths.parquet")
    sizes = sorted(paths.n.unique())
    size = 8 if 8 in sizes else sizes[len(sizes) // 2]
    first = paths[paths.n == size].flow.min()
    return one_path(paths[paths.flow == first])


def rate_law(folder: Path) -> list[Figure]:
    """The distance to one-hot of every flow beside the predicted rate."""
    rates = pd.read_parquet(folder / "rates.parquet")
    base = alt.Chart(rates[rates.one_minus_max_s > 0])
    x = log_x("log_t", TIME)
    y = log_y("one_minus_max_s", "1 − max s")
    measured = base.mark_line(strokeWidth=1.2, opacity=0.55).encode(
        x=x,
        y=y,
        detail="flow:N",
        color=alt.Color("n:N", title="number of tokens n").scale(scheme="tableau10"),
        tooltip=["flow:N", "n:N", alt.Tooltip("log_t:Q", format=".4g"), alt.Tooltip("one_minus_max_s:Q", format=".4g")],
    )
    law = (
        base.transform_filter("datum.law < 1")
        .mark_line(strokeDash=[6, 4], strokeWidth=1.5, color=INK)
        .encode(x=x, y=log_y("law", "1 − max s"), detail="n:N")
    )
    return [
        Figure(
            "Distance to one-hot against the rate law",
            "Solid: 1 − max s of every flow. Dashed: the law 2(1 − 1/n)/(log t)². The flows fall onto it "
            "and stay there.",
            themed(measured + law),
            "Log-log chart: the distance to one-hot of all flows joins the dashed rate law.",
        )
    ]


EXACT = 1e-18
"""Where exact agreement is drawn on a logarithmic axis."""


def replicator(folder: Path) -> list[Figure]:
    """Residual of the replicator form at random states, per loss, with the control."""
    states = pd.read_parquet(folder / "states.parquet")
    states = states.assign(
        test=np.where(states.scores == "softmax", states.loss + ", softmax", "control: " + states.scores),
        residual=states.residual.clip(lower=EXACT),
    )
    chart = (
        alt.Chart(states)
        .mark_point(filled=True, size=28, opacity=0.5)
        .encode(
            x=log_x("residual", "relative difference"),
            y=alt.Y("test:N", title=None).axis(labelLimit=160),
            yOffset=alt.YOffset("n:O"),
            color=alt.Color("n:O", title="number of tokens n").scale(scheme="viridis"),
            tooltip=["test:N", "n:O", "scale:Q", "seed:N", alt.Tooltip("residual:Q", format=".2e")],
        )
    )
    return [
        Figure(
            "How far the velocity is from replicator form",
            "One point per random state. Softmax agrees to rounding error for every loss; the elementwise sigmoid, as "
            "it must, does not. "
            "Exact agreement is drawn at the left edge.",
            themed(chart),
            "Dot chart of residuals: softmax near 1e-15, the control near 1.",
        )
    ]


def result_paths(result: Any) -> list[Figure]:
    """The charts of one result of ``polariscope flow``; none when it has a single time or no projections."""
    if len(result["log_t"]) < 2 or result.get("u") is None:
        return []
    path = token_table(result["log_t"], s=result["s"], u=result["u"])
    return one_path(path[path.log_t > 0])
