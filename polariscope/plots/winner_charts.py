"""Who wins, counted: leaders of u, of s, of both or of neither."""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from polariscope import flow
from polariscope.plots._look import COLOURS, WIDTH, inlined, several, titled

KINDS = ("both", "u", "s", "neither", "tie", "unsolved")
CONTESTED = ("u", "s", "neither")


def winners(statistics: Any | Sequence[Any] | Mapping[str, Any], width: int = WIDTH) -> alt.HConcatChart:
    """How often the winner led u, s, both or neither at the start, and the fractions where those leaders differ.

    Args:
        statistics: a `flow.WinnerStatistics`, a list of them, or a mapping from labels to them.
        width: of each panel, in pixels.

    The bars on the left count all starts. On the right, with 95 % Wilson intervals, are those starts whose leaders of u
    and s differ; a group without such starts has no points there.

    Raises:
        InputError: for what is not a WinnerStatistics, and for none.
    """
    given, found = several(statistics, flow.WinnerStatistics, "flow.winner_statistics")
    names = given or [f"{len(one.winners)} starts" if len(found) == 1 else f"{i + 1}" for i, one in enumerate(found)]
    order, pairs = list(dict.fromkeys(names)), list(zip(names, found, strict=True))
    scale = alt.Scale(domain=order, range=[COLOURS[i % len(COLOURS)] for i in range(len(order))])
    colour = alt.Color("group:N", title=None, scale=scale).legend(labelLimit=320)
    counts = pd.DataFrame(
        [{"by": by, "starts": one.counts.get(by, 0), "group": name} for name, one in pairs for by in KINDS]
    )
    parts = [{"by": by, "group": name, **_fraction(one, by)} for name, one in pairs for by in CONTESTED]
    left = _counts(counts[counts.groupby("by").starts.transform("sum") > 0], order, colour)
    right = _fractions(pd.DataFrame(parts), order, colour)
    here = {"width": width, "height": 60 + 40 * max(3, len(order))}
    return titled(alt.hconcat(left.properties(**here), right.properties(**here), spacing=40), "Who wins")


def _fraction(one: Any, by: str) -> dict[str, float]:
    return dict(zip(("fraction", "low", "high", "starts"), one.fraction(by), strict=True))


def _counts(table: pd.DataFrame, order: list[str], colour: alt.Color) -> alt.Chart:
    kinds = [by for by in KINDS if by in set(table.by)]
    return (
        alt.Chart(inlined(table), title="at the start the winner led")
        .mark_bar()
        .encode(
            x=alt.X("starts:Q", title="starts").axis(tickMinStep=1),
            y=alt.Y("by:N", title=None, sort=kinds),
            yOffset=alt.YOffset("group:N", sort=order),
            color=colour,
            tooltip=["group:N", "by:N", "starts:Q"],
        )
    )


def _fractions(table: pd.DataFrame, order: list[str], colour: alt.Color) -> Any:
    known = table[np.isfinite(table.fraction)]
    base = alt.Chart(inlined(known), title="where the leaders of u and s differ").encode(
        y=alt.Y("by:N", title=None, sort=list(CONTESTED)),
        yOffset=alt.YOffset("group:N", sort=order),
        color=colour,
        tooltip=[
            "group:N",
            "by:N",
            "starts:Q",
            *(alt.Tooltip(f"{n}:Q", format=".3f") for n in ("fraction", "low", "high")),
        ],
    )
    x = alt.X("fraction:Q", title="fraction of wins, 95 % interval").scale(domain=[0, 1])
    bars = base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q").scale(domain=[0, 1]), x2="high:Q")
    return bars + base.mark_point(filled=True, size=70, opacity=1).encode(x=x)
