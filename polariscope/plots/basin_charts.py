"""Basins: which start lets which coordinate win, and from when on it leads."""

from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from polariscope import flow
from polariscope.plots._look import COLOURS, GREY, INK, WIDTH, expected, inlined, titled

PALE = "#e0e0e0"
NOBODY = {"tie": GREY, "not solved": PALE}


def basins(found: Any, width: int = WIDTH) -> alt.HConcatChart:
    """The winner of each start of a grid, and log t from which on it leads s.

    Args:
        found: a `flow.Basins`, m₁ by m₂ starts. Cells reach half-way to the next value of the grid, which may be
            uneven. Cells whose winner is not certain to win for ever carry a dot.
        width: of each panel, in pixels.

    In the second panel cells in which the winner leads from the start, log t = -∞, or in which there is no winner
    are grey. Winners beyond the seventh share the colours of the first.

    Raises:
        InputError: for what is not a Basins.
    """
    found = expected(found, flow.Basins, "flow.basins")
    data = inlined(_cells(found))
    here = {"width": width, "height": width}
    winners, times = _winners(found, data).properties(**here), _times(found, data).properties(**here)
    panels = alt.hconcat(winners, times, spacing=30)
    return titled(panels.resolve_scale(color="independent"), "Who wins, by start", found.message)


def _cells(found: Any) -> pd.DataFrame:
    (left, right), (low, high) = (_edges(values) for values in found.grid)
    i, j = (index.ravel() for index in np.indices(found.winner.shape))
    solved = np.isin(found.status, ("ok", "converged")).ravel()
    winner = found.winner.ravel()
    names = np.where(winner >= 0, winner.astype(str), np.where(solved, "tie", "not solved"))
    return pd.DataFrame(
        {
            "x": found.grid[0][i], "left": left[i], "right": right[i],
            "y": found.grid[1][j], "low": low[j], "high": high[j],
            "winner": names, "log_t": found.log_t.ravel(),
            "unsure": (winner >= 0) & ~found.certain.ravel(), "status": found.status.ravel(),
        }
    )  # fmt: skip


def _edges(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the cells of a grid begin and end, in the order of its values, which need not be sorted."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    between = (ordered[1:] + ordered[:-1]) / 2
    first, last = (ordered[0] - between[0], between[-1] - ordered[-1]) if len(values) > 1 else (-0.5, -0.5)
    low, high = np.empty(len(values)), np.empty(len(values))
    low[order] = np.append(ordered[0] - abs(first), between)
    high[order] = np.append(between, ordered[-1] + abs(last))
    return low, high


def _names(found: Any) -> list[str]:
    i, j = found.axes
    start = {"gaps": (f"a{i} − a{j}", f"u{i} − u{j}"), "a": (f"a{i}", f"a{j}"), "u": (f"u{i}", f"u{j}")}
    return [f"{name} at the start" for name in start[found.along]]


def _rectangles(found: Any, data: Any) -> alt.Chart:
    across, up = _names(found)
    frame: dict[str, Any] = {"nice": False, "zero": False}
    tips = ["winner:N", "status:N", *(alt.Tooltip(f"{name}:Q", format=".4g") for name in ("x", "y", "log_t"))]
    return (
        alt.Chart(data)
        .mark_rect(x2Offset=0.6, y2Offset=-0.6)  # a little over the next cells, which leaves no seams
        .encode(
            x=alt.X("left:Q", title=across).scale(**frame),
            x2="right:Q",
            y=alt.Y("low:Q", title=up).scale(**frame),
            y2="high:Q",
            tooltip=tips,
        )
    )


def _winners(found: Any, data: Any) -> Any:
    winners = [int(w) for w in np.unique(found.winner) if w >= 0]
    colours = {str(w): COLOURS[w % len(COLOURS)] for w in winners} | NOBODY
    seen = [str(w) for w in winners] + [name for name in NOBODY if name in set(_cells(found).winner)]
    scale = alt.Scale(domain=seen, range=[colours[name] for name in seen])
    cells = _rectangles(found, data).encode(color=alt.Color("winner:N", title="winner", scale=scale).legend(columns=8))
    dots = (
        alt.Chart(data)
        .transform_filter("datum.unsure")
        .mark_circle(size=14, color="white", stroke=INK, strokeWidth=0.6, opacity=1)
        .encode(x="x:Q", y="y:Q")
    )
    return cells + dots


def _times(found: Any, data: Any) -> Any:
    cells = _rectangles(found, data)
    title, scale = ["log t from which on the winner leads", "(grey: from the start)"], alt.Scale(scheme="viridis")
    colour = alt.Color("log_t:Q", title=title, scale=scale).legend(gradientLength=220, titleLimit=320)
    leading = cells.encode(color=alt.value(PALE)).transform_filter("!isValid(datum.log_t)")
    if not np.isfinite(found.log_t).any():
        return alt.layer(leading, title="every winner leads from the start")
    return leading + cells.transform_filter("isValid(datum.log_t)").encode(color=colour)
