"""Optimizers beside the flow: how far they are from it at the same time, and from its path."""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from polariscope import flow
from polariscope.plots._look import COLOURS, WIDTH, inlined, log_x, positive, several, titled

SAME_TIME, FROM_PATH = "at the same time", "from the path, at any time"
DASHES = [[1, 0], [8, 3], [2, 2], [8, 3, 2, 3]]
"""Lines that lie on each other are both seen."""


def comparison(runs: Any | Sequence[Any] | Mapping[str, Any], width: int = WIDTH) -> alt.HConcatChart:
    """max |s - s_flow| of one run or several over the steps k: at the same time, and minimized over all times.

    Args:
        runs: a `flow.Comparison`, a list of them, or a mapping from labels to them. Without labels runs are called
            by their optimizer, and by what else differs between them (η, the problem, the clock).
        width: of each panel, in pixels.

    Axes that span a decade are logarithmic: k = 0 and distances of 0 are not drawn. Distances from the path that are
    not known, below path_error + path_spacing/2, are not drawn either. A cross marks the last look at a run that
    diverged.

    Raises:
        InputError: for what is not a Comparison, and for none.
    """
    given, found = several(runs, flow.Comparison, "flow.compare")
    names = given or _labels(found)
    table = pd.concat([_rows(number, *pair) for number, pair in enumerate(zip(names, found, strict=True))])
    y = positive(alt.Y("distance:Q", title="max |s − s of the flow|"), table.distance)
    order = list(dict.fromkeys(names))
    scale = alt.Scale(domain=order, range=[COLOURS[i % len(COLOURS)] for i in range(len(order))])
    colour = alt.Color("run:N", title=None, scale=scale).legend(labelLimit=320, columns=min(4, len(order)))
    dashes = alt.Scale(domain=order, range=[DASHES[i % len(DASHES)] for i in range(len(order))])
    dash = alt.StrokeDash("run:N", title=None, scale=dashes)
    panels = [
        _panel(table[table.which == which], y, colour, dash).properties(width=width, height=260, title=which)
        for which in (SAME_TIME, FROM_PATH)
    ]
    steps = sorted({run.step_size for run in found})
    title = "Distance from gradient flow" + (f", η = {steps[0]:g}" if len(steps) == 1 else "")
    return titled(alt.hconcat(*panels, spacing=24).resolve_scale(y="shared"), title)


def _labels(runs: Sequence[Any]) -> list[str]:
    """The optimizer and whatever is not the same for all runs."""
    parts = [
        {"name": run.name, "optimizer": run.optimizer, "η": f"η = {run.step_size:g}", "clock": f"{run.clock} clock"}
        for run in runs
    ]
    told = [key for key in parts[0] if key == "optimizer" or len({part[key] for part in parts}) > 1]
    return [", ".join(part[key] for key in told) for part in parts]


def _rows(number: int, name: str, run: Any) -> pd.DataFrame:
    known = run.path_distance > run.path_error + run.path_spacing / 2
    parts = {SAME_TIME: run.distance, FROM_PATH: np.where(known, run.path_distance, np.nan)}
    last = np.flatnonzero(np.isfinite(run.s).all(axis=1))[-1] if run.status == "diverged" else -1
    tables = [
        pd.DataFrame(
            {"number": number, "run": name, "k": run.k, "distance": v, "which": w, "end": np.arange(len(v)) == last}
        )
        for w, v in parts.items()
    ]
    table = pd.concat(tables)
    return table[(table.k > 0) & (table.distance > 0)]


def _panel(table: pd.DataFrame, y: alt.Y, colour: alt.Color, dash: alt.StrokeDash) -> Any:
    tips = ["run:N", "k:Q", alt.Tooltip("distance:Q", format=".4g")]
    base = alt.Chart(inlined(table)).encode(
        x=positive(log_x("k", "step k"), table.k), y=y, color=colour, detail="number:N", tooltip=tips
    )
    ends = base.transform_filter("datum.end").mark_point(shape="cross", size=110, filled=True, angle=45, opacity=1)
    return base.mark_line(strokeWidth=2).encode(strokeDash=dash) + ends
