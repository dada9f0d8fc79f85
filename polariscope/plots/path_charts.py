"""One flow: u, s and entropy over log t."""

from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from polariscope import flow
from polariscope.errors import InputError
from polariscope.plots._look import COLOURS, GREY, SIGNED, expected, inlined, log_x, positive, spans_a_decade, titled

TIME = "log t (natural logarithm of time)"
LINEAR_UP_TO = 30.0
"""log t up to which its axis is linear."""
CROWD = 12
"""Times up to which each is marked by a point."""


def token_table(log_t: Any, **columns: Any) -> pd.DataFrame:
    """Arrays (k, n) by name as one row per time and coordinate; NaN and infinite log t included."""
    arrays = {name: np.asarray(values, float) for name, values in columns.items()}
    k, n = next(iter(arrays.values())).shape
    where = {"log_t": np.repeat(np.asarray(log_t, float), n), "coordinate": np.tile(np.arange(n), k)}
    return pd.DataFrame({**where, **{name: values.ravel() for name, values in arrays.items()}})


def token_lines(data: Any, x: alt.X, y: alt.Y, field: str, colour: alt.Color, chosen: Any, points: bool = False) -> Any:
    """One line per coordinate; those that ``chosen`` leaves out are faint."""
    mark: dict[str, Any] = {"point": True} if points else {}
    return (
        alt.Chart(data)
        .mark_line(strokeWidth=2, **mark)
        .encode(
            x=x,
            y=y,
            color=colour,
            opacity=alt.when(chosen).then(alt.value(1.0)).otherwise(alt.value(0.12)),
            tooltip=["coordinate:N", alt.Tooltip("log_t:Q", format=".4g"), alt.Tooltip(f"{field}:Q", format=".6g")],
        )
    )


def path(result: Any, width: int = 560) -> alt.VConcatChart:
    """s, u and the normalized entropy of one flow over log t, as far as it has them.

    Args:
        result: a `flow.Result` at two times or more, k times and n coordinates.
        width: of the panels, in pixels.

    The time axis is linear up to log t = 30 and logarithmic beyond; t = 0 and times that were not reached are not
    drawn. With more than eight coordinates the seven with the largest weights have colours and the rest is grey. An
    entropy that spans a decade has a logarithmic axis, on which 0 is not drawn.

    Raises:
        InputError: for what is not a Result, and for fewer than two times that can be drawn.
    """
    result = expected(result, flow.Result, "flow.solve")
    seen = np.isfinite(result.log_t) & np.isfinite(result.s).all(axis=1)
    if seen.sum() < 2:
        raise InputError("flow to draw", got=f"{seen.sum()} times", expected="at least 2", fix="ask for more times")
    log_t, few = result.log_t[seen], bool(seen.sum() <= CROWD)
    kinds = {name: getattr(result, name)[seen] for name in ("s", "u") if getattr(result, name) is not None}
    table = token_table(log_t, **kinds)
    colour, table["token"] = token_colours(result.s[seen])
    chosen = alt.selection_point(fields=["token"], bind="legend", name="token")
    data = inlined(table)
    axes = {"s": alt.Y("s:Q", title="attention weight s"), "u": _projections(table)}
    x = time_axis(log_t)
    panels = [
        token_lines(data, x.title(None), axes[name], name, colour, chosen, few)
        .encode(detail="coordinate:N")
        .properties(width=width, height=170)
        for name in kinds
    ]
    if result.normalized_entropy is not None:
        panels.append(_entropy(log_t, result.normalized_entropy[seen], few).properties(width=width, height=110))
    panels[-1] = panels[-1].encode(x=x)
    panels[0] = panels[0].add_params(chosen)
    return titled(alt.vconcat(*panels, spacing=12), result.name, f"status: {result.status}")


def time_axis(log_t: np.ndarray) -> alt.X:
    """log t: linear up to 30, else logarithmic; where it is negative too, linear near 0 and logarithmic beyond."""
    if log_t.max() <= LINEAR_UP_TO:
        return alt.X("log_t:Q", title=TIME).scale(nice=False, zero=False)
    if log_t.min() > 0:
        return positive(log_x("log_t", TIME), log_t)
    return alt.X("log_t:Q", title=TIME).scale(type="symlog", constant=1.0, nice=False).axis(**SIGNED)


def _projections(table: pd.DataFrame) -> alt.Y:
    y = alt.Y("u:Q", title="projection u")
    wide = "u" in table and table.u.abs().max() > LINEAR_UP_TO
    return y.scale(type="symlog", constant=0.1, nice=False).axis(**SIGNED) if wide else y


def token_colours(s: np.ndarray) -> tuple[alt.Color, np.ndarray]:
    """A colour for each coordinate, (k·n,) names in the order of `token_table`."""
    k, n = s.shape
    colours = [*COLOURS, GREY]
    order = np.argsort(-s.max(axis=0), kind="stable")
    named = range(n) if n <= len(colours) else np.sort(order[: len(COLOURS)]).tolist()
    names = np.array([str(i) if i in named else "others" for i in range(n)], dtype=object)
    domain = [*map(str, named), *(["others"] if n > len(named) else [])]
    scale = alt.Scale(domain=domain, range=colours[: len(domain)])
    return alt.Color("token:N", title="token", scale=scale).legend(columns=8), np.tile(names, k)


def _entropy(log_t: np.ndarray, values: np.ndarray, points: bool) -> alt.Chart:
    drawn = np.where(values > 0, values, np.nan) if spans_a_decade(values) else values
    mark: dict[str, Any] = {"point": {"color": "black"}} if points else {}
    return (
        alt.Chart(inlined(pd.DataFrame({"log_t": log_t, "entropy": drawn})))
        .mark_line(strokeWidth=2, color="black", **mark)
        .encode(
            y=positive(alt.Y("entropy:Q", title="H / log n"), values),
            tooltip=[alt.Tooltip("log_t:Q", format=".4g"), alt.Tooltip("entropy:Q", format=".6g")],
        )
    )
