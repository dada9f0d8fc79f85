"""Charts of trained classifiers: flip rates with their controls, and the trace of one run."""

from pathlib import Path

import altair as alt
import pandas as pd

from polariscope.report._page import Figure
from polariscope.report.figures._theme import themed

SWAPS = ["most attended token", "random token", "least attended token"]


def flip_rates(folder: Path) -> list[Figure]:
    """Flip rate per attention kind, with intervals over seeds, from ``flips.parquet``."""
    flips = pd.read_parquet(folder / "flips.parquet")
    order = flips[flips.swap == SWAPS[0]].sort_values("mean", ascending=False).attention.tolist()
    y = alt.Y("attention:N", title=None, sort=order).axis(labelLimit=170)
    offset = alt.YOffset("swap:N", sort=SWAPS)
    colour = (
        alt.Color("swap:N", title="the single token is the", sort=SWAPS).scale(scheme="tableau10").legend(columns=1)
    )
    base = alt.Chart(flips)
    x = alt.X("mean:Q", title="flip rate").scale(domain=[0, 1])
    bars = base.mark_rule(strokeWidth=2).encode(
        y=y, yOffset=offset, color=colour, x=alt.X("low:Q", title="flip rate"), x2="high:Q"
    )
    numbers = [alt.Tooltip(f"{name}:Q", format=".3f") for name in ("mean", "low", "high")]
    points = base.mark_point(filled=True, size=70).encode(
        y=y,
        yOffset=offset,
        color=colour,
        x=x,
        tooltip=["attention:N", "swap:N", *numbers],
    )
    return [
        Figure(
            "How often one token decides",
            "Share of mixtures classified as the group of the single foreign token; mean over seeds with 95 % "
            "interval. At 1 that token decides alone, at 0 it never does.",
            themed(bars + points),
            "Dot chart of flip rates per attention kind, with intervals.",
        )
    ]


def trace(folder: Path) -> list[Figure]:
    """Loss and accuracy over the steps of one training run."""
    table = pd.read_parquet(folder / "trace.parquet")
    long = table.melt(id_vars=["step"], value_vars=["loss", "accuracy"], var_name="what").drop_duplicates()
    chart = (
        alt.Chart(long)
        .mark_line(point=True, strokeWidth=2)
        .encode(
            x=alt.X("step:Q", title="step").scale(type="symlog"),
            y=alt.Y("value:Q", title=None),
            color=alt.Color("what:N", title=None).scale(scheme="tableau10"),
            tooltip=["step:Q", "what:N", alt.Tooltip("value:Q", format=".4f")],
        )
    )
    return [
        Figure(
            "Training",
            "Evaluation loss and accuracy at logarithmically spaced steps.",
            themed(chart),
            "Line chart of loss and accuracy over training steps.",
        )
    ]
