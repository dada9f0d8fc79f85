"""Two flows that share a path but not their clocks."""

from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from polariscope import flow
from polariscope.errors import InputError
from polariscope.plots._look import WIDTH, expected, inlined, titled
from polariscope.plots.path_charts import time_axis, token_colours, token_table


def shared_path(stopped: Any, endless: Any, width: int = WIDTH) -> alt.HConcatChart:
    """The weights of two flows on one path: apart over log t, together over the margin z = ⟨u, s⟩.

    Args:
        stopped: a `flow.Result` with u, such as `flow.shared_path` gives for the square loss; drawn as points.
        endless: the flow of another loss of the margin from the same start, such as the logistic; drawn as lines.
        width: of each panel, in pixels.

    Raises:
        InputError: for what is not a Result with u, for different numbers of coordinates, and for flows of which
            nothing can be drawn.
    """
    points, lines = (_with_margin(one) for one in (stopped, endless))
    if stopped.s.shape[1] != endless.s.shape[1]:
        got = f"{stopped.s.shape[1]} and {endless.s.shape[1]} coordinates"
        raise InputError("flows to draw", got=got, expected="two flows from one start", fix="solve one problem twice")
    colour, names = token_colours(np.vstack([_drawn(stopped), _drawn(endless)]))
    beneath, above = (inlined(table.assign(token=names[: len(table)])) for table in (lines, points))
    margin = alt.X("z:Q", title="margin z = ⟨u, s⟩").scale(zero=False, nice=False)
    panels = [
        _panel(above, beneath, x, colour).properties(width=width, height=240)
        for x in (time_axis(np.concatenate([points.log_t, lines.log_t])), margin)
    ]
    said = f"points: {stopped.name}\nlines: {endless.name}"
    return titled(alt.hconcat(*panels, spacing=30), "One path, two clocks", said)


def _drawn(result: Any) -> np.ndarray:
    return result.s[np.isfinite(result.log_t) & np.isfinite(result.s).all(axis=1)]


def _with_margin(result: Any) -> pd.DataFrame:
    result = expected(result, flow.Result, "flow.shared_path and flow.solve")
    if result.u is None or len(_drawn(result)) == 0:
        got = "no u" if result.u is None else "no time that was reached"
        raise InputError("flow to draw", got=f"{result.name}: {got}", expected="a flow with a target", fix="see docs")
    z = (result.u * result.s).sum(axis=1, keepdims=True)
    table = token_table(result.log_t, s=result.s, z=np.broadcast_to(z, result.s.shape))
    return table[np.isfinite(table.log_t) & np.isfinite(table.z)]


def _panel(points: Any, lines: Any, x: alt.X, colour: alt.Color) -> Any:
    y = alt.Y("s:Q", title="attention weight s")
    tips = ["coordinate:N", *(alt.Tooltip(f"{name}:Q", format=".6g") for name in ("log_t", "z", "s"))]
    ways = {"x": x, "y": y, "color": colour, "detail": "coordinate:N", "tooltip": tips}
    drawn = alt.Chart(lines).mark_line(strokeWidth=2).encode(**ways)
    return drawn + alt.Chart(points).mark_point(filled=True, size=36, opacity=0.8).encode(**ways)
