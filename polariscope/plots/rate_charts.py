"""Laws of late times: what was measured beside what they predict."""

from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from polariscope import flow
from polariscope.errors import InputError
from polariscope.plots._look import COLOURS, GREY, INK, WIDTH, expected, inlined, positive, several, titled

LEADING, REFINED = "to leading order", "with the correction"


def rates(records: Any, width: int = WIDTH) -> alt.LayerChart:
    """Measured ÷ predicted at the last place of each record, one row per law: to leading order, and corrected.

    Args:
        records: a `flow.laws.Rate`, or a sequence of them, as `flow.rates` returns, of one problem or of many.
        width: of the panel, in pixels.

    The grey band is the tolerance within which the ratio that is judged must be: the corrected one where there is one.
    Records that could not be judged have no ratio; the subtitle counts them. Exponents are in the tooltips.

    Raises:
        InputError: for what are not records, and where none has a ratio.
    """
    _, found = several(records, flow.laws.Rate, "flow.rates")
    judged = [rate for rate in found if rate.ratio is not None]
    if not judged:
        raise InputError(
            "rates to draw", got=found[0].note, expected="a law that could be judged", fix="look at the notes"
        )
    table = pd.DataFrame([row for number, rate in enumerate(judged) for row in _rows(number, rate)])
    y = alt.Y("law:N", title=None, sort=list(dict.fromkeys(table.law))).axis(labelLimit=200)
    wide = alt.X("ratio:Q", title="measured ÷ predicted").scale(zero=False).axis(tickCount=5, labelOverlap=True)
    bands = table.groupby("law", sort=False).tolerance.max().reset_index()
    band = (
        alt.Chart(inlined(bands.assign(low=1 - bands.tolerance, high=1 + bands.tolerance)))
        .mark_bar(color=GREY, opacity=0.3)
        .encode(x=alt.X("low:Q").scale(zero=False), x2="high:Q", y=y)
    )
    one = alt.Chart(inlined(pd.DataFrame({"ratio": [1.0]}))).mark_rule(color=INK, strokeDash=[4, 3]).encode(x=wide)
    here = {"width": width, "height": alt.Step(44)}
    said = f"{sum(rate.holds is True for rate in found)} of {len(found)} records hold"
    said += f", {len(found) - len(judged)} could not be judged" if len(judged) < len(found) else ""
    return titled((band + one + _points(table, wide, y)).properties(**here), "Laws of late times", said)


def _rows(number: int, rate: Any) -> list[dict[str, Any]]:
    shown = ("law", "statement", "quantity", "predicted", "exponent", "expected_exponent", "where", "tolerance")
    common = {"number": number, "holds": bool(rate.holds), **{name: getattr(rate, name) for name in shown}}
    ratios = {LEADING: rate.ratio} | ({REFINED: rate.refined_ratio} if rate.refined_ratio is not None else {})
    return [{**common, "order": order, "ratio": ratio} for order, ratio in ratios.items()]


def _points(table: pd.DataFrame, x: alt.X, y: alt.Y) -> alt.Chart:
    orders = [LEADING, REFINED]
    table = table.sort_values("order", key=lambda order: order == REFINED, kind="stable")  # the corrected ones on top
    numbers = ("ratio", "quantity", "predicted", "exponent", "expected_exponent", "where")
    tips = ["law:N", "statement:N", "holds:N", *(alt.Tooltip(f"{name}:Q", format=".6g") for name in numbers)]
    colours = alt.Scale(domain=orders, range=[COLOURS[1], COLOURS[0]])
    sizes = alt.Scale(domain=orders, range=[150, 60])
    shapes = alt.Scale(domain=orders, range=["circle", "diamond"])
    return (
        alt.Chart(inlined(table))
        .mark_point(filled=True, opacity=1)
        .encode(
            x=x,
            y=y,
            color=alt.Color("order:N", title=None, scale=colours),
            shape=alt.Shape("order:N", title=None, scale=shapes),
            size=alt.Size("order:N", title=None, scale=sizes),
            tooltip=tips,
        )
    )


def series(measured: Any, title: str = "", where: str = "log t", width: int = WIDTH) -> alt.HConcatChart:
    """One law along one flow: the quantity measured and predicted, and their ratio.

    Args:
        measured: a `flow.laws.Series`, as the ``series`` of a `flow.laws.Law` returns.
        title: over the chart, such as the law's statement.
        where: what the horizontal axis is; log t unless the law says otherwise.
        width: of each panel, in pixels.

    Axes are logarithmic where the numbers span a decade; there, what is not positive is not drawn.

    Raises:
        InputError: for what is not a Series; a law that cannot be compared gives its reason in words instead of one.
    """
    if isinstance(measured, str):
        raise InputError("law to draw", got=measured, expected="a Series", fix="choose a flow that the law is about")
    measured = expected(measured, flow.laws.Series, "the series of a law")
    predictions = {LEADING: measured.predicted}
    predictions |= {REFINED: measured.refined} if measured.refined is not None else {}
    x = positive(alt.X("where:Q", title=where), measured.where)
    points = pd.DataFrame({"where": measured.where, "value": measured.quantity, "what": "measured"})
    laws = pd.concat([points.assign(value=values, what=what) for what, values in predictions.items()])
    ratios = pd.concat([points.assign(value=measured.quantity / v, what=what) for what, v in predictions.items()])
    kept, laws = points[_drawable(points)], laws[_drawable(laws)]
    y = positive(alt.Y("value:Q", title="quantity"), np.append(kept.value, laws.value))
    left = _marks(kept, x, y) + _lines(laws, x, y)
    rule = alt.Chart(inlined(pd.DataFrame({"value": [1.0]}))).mark_rule(color=INK, strokeDash=[4, 3])
    beside = alt.Y("value:Q", title="measured ÷ predicted").scale(zero=False)
    right = rule.encode(y=beside) + _lines(ratios[_drawable(ratios)], x, beside)
    panels = [panel.properties(width=width, height=240) for panel in (left, right)]
    return titled(alt.hconcat(*panels, spacing=30), title or "A law along one flow", measured.note)


def _drawable(table: pd.DataFrame) -> Any:
    return np.isfinite(table.value) & (table.value > 0)


def _colour() -> alt.Color:
    scale = alt.Scale(domain=["measured", LEADING, REFINED], range=["#000000", COLOURS[1], COLOURS[0]])
    return alt.Color("what:N", title=None, scale=scale)


def _lines(table: pd.DataFrame, x: alt.X, y: alt.Y) -> alt.Chart:
    tips = ["what:N", *(alt.Tooltip(f"{name}:Q", format=".6g") for name in ("where", "value"))]
    return alt.Chart(inlined(table)).mark_line(strokeWidth=2).encode(x=x, y=y, color=_colour(), tooltip=tips)


def _marks(table: pd.DataFrame, x: alt.X, y: alt.Y) -> alt.Chart:
    tips = [alt.Tooltip(f"{name}:Q", format=".6g") for name in ("where", "value")]
    mark = alt.Chart(inlined(table)).mark_point(size=50, opacity=0.5)
    return mark.encode(x=x, y=y, color=_colour(), tooltip=tips)
