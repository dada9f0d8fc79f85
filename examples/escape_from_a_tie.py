"""How long a tie lasts: python examples/escape_from_a_tie.py escape.png (or .svg, .html).

Tokens that start exactly tied, equal a and equal u, stay tied for ever. Let token 0 be ahead by δ in a or in
û = u/‖β*‖. Linearized around s = 1/n, with path time τ,

    δû' = ‖β*‖ δa/n,    δa' = ‖β*‖ δû/n,

so the difference grows like e^(‖β*‖τ/n)/2 from either. It is of order one at

    τ = (n/‖β*‖) log(1/δ) + const,

and as z = ⟨u, s⟩ grows like ‖β*‖²τ/n until then and log t like z, at

    log t = ‖β*‖ log(1/δ) + const:

the time of the escape is a power of the difference, t ∝ δ^(-‖β*‖), for any number of tokens.
"""

import sys
from pathlib import Path

import altair as alt
import numpy as np
import pandas as pd

from polariscope import flow, plots

N, LENGTH = 3, 2.0
"""Tokens, and ‖β*‖."""
DIFFERENCES = 10.0 ** -np.arange(3, 13)
LOG_T = np.linspace(0.0, 70.0, 351)
ESCAPED = (1 + 1 / N) / 2
"""The weight of token 0 half-way from 1/n to 1."""


def tied() -> dict:
    """Equal columns of V0 and equal logits."""
    random = np.random.default_rng(0)
    target = random.normal(size=3)
    start = {"V0": np.outer(random.normal(size=3), np.ones(N)), "a0": np.zeros(N)}
    return {
        "model": "value",
        "scores": "softmax",
        "loss": "logistic",
        "target": LENGTH * target / np.linalg.norm(target),
    } | start


def ahead(difference: float, by: str) -> dict:
    """The tie, but for token 0, which is ahead by this much in a or in û."""
    problem = tied()
    if by == "a":
        problem["a0"][0] += difference
    else:
        problem["V0"][:, 0] += difference * problem["target"] / LENGTH
    return problem


def escape(result: flow.Result) -> dict[str, float]:
    """τ and log t at which token 0 has escaped, by linear interpolation in its log-odds."""
    odds = np.log(result.s[:, 0] / result.s[:, 1:].sum(axis=1)) - np.log(ESCAPED / (1 - ESCAPED))
    late = int(np.argmax(odds >= 0))
    share = odds[late - 1] / (odds[late - 1] - odds[late])
    where = {"tau": result.tau, "log_t": result.log_t}
    return {name: float(v[late - 1] + share * (v[late] - v[late - 1])) for name, v in where.items()}


def measured() -> tuple[pd.DataFrame, pd.DataFrame]:
    """One row per start, and the weight of token 0 over log t where it is ahead in u."""
    starts = [(by, float(difference)) for by in ("a", "u") for difference in DIFFERENCES]
    results = flow.solve_many([ahead(difference, by) for by, difference in starts], log_t=LOG_T)
    found = list(zip(starts, results, strict=True))
    rows = [{"by": by, "difference": d, "winner": int(r.s[-1].argmax()), **escape(r)} for (by, d), r in found]
    paths = [pd.DataFrame({"log_t": LOG_T, "s": r.s[:, 0], "difference": d}) for (by, d), r in found if by == "u"]
    return pd.DataFrame(rows), pd.concat(paths)


def chart(table: pd.DataFrame, paths: pd.DataFrame) -> alt.HConcatChart:
    """The weight of token 0 over log t, and when it escapes over δ."""
    colour = alt.Color("difference:Q", title="δ").scale(type="log", scheme="viridis").legend(format="e", tickCount=4)
    axis = {"format": "e", "values": (10.0 ** -np.arange(3, 13, 3)).tolist()}
    weights = (
        alt.Chart(paths)
        .mark_line()
        .encode(
            x=alt.X("log_t:Q", title="log t"),
            y=alt.Y("s:Q", title="weight of token 0"),
            color=colour,
            detail="difference:N",
        )
    )
    long = table.rename(columns={"log_t": "log t", "tau": "τ"}).melt(["difference", "by"], ["log t", "τ"], "what")
    base = alt.Chart(long.assign(start="δ in " + long.by)).encode(
        x=alt.X("difference:Q", title="difference δ").scale(type="log", reverse=True).axis(**axis),
        y=alt.Y("value:Q", title="escape"),
        color=alt.Color("what:N", title=None).scale(range=["#0072B2", "#D55E00"]),
    )
    sizes = alt.Size("start:N", title=None).scale(range=[90, 25])
    times = base.mark_line().encode(detail="start:N") + base.mark_point(filled=True, opacity=0.6).encode(size=sizes)
    both = alt.hconcat(weights.properties(width=330, height=260), times.properties(width=330, height=260), spacing=30)
    return both.resolve_scale(color="independent", size="independent").configure_legend(orient="top")


def main(path: Path) -> None:
    """The tie, the table of escapes, and the law they follow."""
    still = flow.solve(tied(), log_t=[1.0, 1e6, 1e12])
    print(f"no difference: s is off 1/n by {np.abs(still.s - 1 / N).max():.1e} at log t = 10¹². {still.message}")
    table, paths = measured()
    print(table.to_string(index=False, float_format="{:.6g}".format))
    for by, rows in table.groupby("by"):
        for what, law in (("tau", N / LENGTH), ("log_t", LENGTH)):
            slope, error = flow.laws.fitted_slope(np.log(1 / rows.difference.to_numpy()), rows[what].to_numpy())
            print(f"δ in {by}: {what:5} grows by {slope:.4f} ± {error:.4f} for each log(1/δ); the law says {law:g}")
    plots.save(chart(table, paths), path)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python examples/escape_from_a_tie.py escape.png")
    main(Path(sys.argv[1]))
