"""Sensitivity: the derivatives of the winner's log-odds, as bars and heat maps."""

from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from polariscope import flow
from polariscope.plots._look import COLOURS, expected, inlined, titled

CELL, LARGEST = 34, 340
"""Pixels per entry, and of a panel at most."""
AXES = {"V": ("token", "dimension"), "K": ("key's dimension", "token"), "X": ("dimension", "equation")}
ACROSS = {"a": "token", "q": "key's dimension", "target": "dimension", "p": "dimension", "y": "equation"}
"""What the entries of parameters and data count."""


def sensitivity(found: Any, columns: int = 3) -> alt.ConcatChart:
    """∂ log(s_w/(1 - s_w)) by the start and by the data of the loss: vectors as bars, matrices as heat maps.

    Args:
        found: a `flow.Sensitivity`.
        columns: panels in one row.

    All heat maps share one scale, white at 0. Bars that raise the winner's odds and those that lower them differ in
    colour and direction; each panel has a vertical axis of its own.

    Raises:
        InputError: for what is not a Sensitivity.
    """
    found = expected(found, flow.Sensitivity, "flow.sensitivity")
    parts = {f"{name}0": (name, values) for name, values in found.parameters.items()}
    parts |= {name: (name, values) for name, values in found.data.items()}
    matrices = [np.abs(values).max() for _, values in parts.values() if np.ndim(values) == 2]
    limit = float(max(matrices, default=1.0)) or 1.0
    panels = [
        _map(key, values, limit) if np.ndim(values) == 2 else _bars(key, np.atleast_1d(values))
        for key, values in parts.values()
    ]
    drawn = [panel.properties(title=f"∂/∂{name}") for name, panel in zip(parts, panels, strict=True)]
    said = f"log-odds of token {found.winner}: {found.log_odds:.4g} at log t = {found.log_t:.4g}"
    return titled(alt.concat(*drawn, columns=columns, spacing=30), f"What the outcome depends on: {found.name}", said)


def _map(key: str, values: np.ndarray, limit: float) -> alt.Chart:
    """A heat map, (rows, columns)."""
    rows, columns = np.indices(values.shape)
    table = pd.DataFrame({"row": rows.ravel(), "column": columns.ravel(), "derivative": values.ravel()})
    across, down = AXES.get(key, ("column", "row"))
    colour = alt.Color("derivative:Q", title="derivative, in matrices")
    colour = colour.scale(scheme="blueorange", domain=[-limit, limit])
    return (
        alt.Chart(inlined(table))
        .mark_rect()
        .encode(
            x=alt.X("column:O", title=across).axis(labelAngle=0, labelOverlap=True),
            y=alt.Y("row:O", title=down).axis(labelOverlap=True),
            color=colour.legend(gradientLength=140),
            tooltip=["row:O", "column:O", alt.Tooltip("derivative:Q", format=".5g")],
        )
        .properties(width=min(LARGEST, CELL * values.shape[1]), height=min(LARGEST, CELL * values.shape[0]))
    )


def _bars(key: str, values: np.ndarray) -> alt.Chart:
    """Bars from zero, (n,)."""
    table = pd.DataFrame({"entry": np.arange(len(values)), "derivative": values})
    return (
        alt.Chart(inlined(table))
        .mark_bar()
        .encode(
            x=alt.X("entry:O", title=ACROSS.get(key, "entry")).axis(labelAngle=0, labelOverlap=True),
            y=alt.Y("derivative:Q", title="derivative").axis(tickCount=5),
            color=alt.when("datum.derivative < 0").then(alt.value(COLOURS[0])).otherwise(alt.value(COLOURS[1])),
            tooltip=["entry:O", alt.Tooltip("derivative:Q", format=".5g")],
        )
        .properties(width=min(LARGEST, max(CELL * len(values), 80)), height=140)
    )
