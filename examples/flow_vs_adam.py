"""Draw optimizers beside gradient flow: python examples/flow_vs_adam.py flow_vs_adam.png (or .html)."""

import sys
from pathlib import Path

import altair as alt
import numpy as np
import pandas as pd

from polariscope import flow

RUNS = {"gd": "gradient descent", "heavy-ball": "heavy ball, μ = 0.9", "adam": "Adam", "sign": "sign descent"}
ETA, STEPS = 0.01, 2000
"""The same step size for all: the clocks differ, and the chart shows what else does."""


def rows(name: str, label: str, problem: dict) -> pd.DataFrame:
    """Both distances of one optimizer, step by step."""
    run = flow.compare(problem, name, ETA, STEPS)
    print(f"{label}: {run.message} Winner {run.winner}, of the flow {run.flow_winner}.")
    floor = run.path_error + run.path_spacing / 2  # smaller distances from the path are not known
    known = np.where(run.path_distance > floor, run.path_distance, np.nan)
    parts = {"at the same time": run.distance, "from the path": known}
    tables = [pd.DataFrame({"k": run.k, "distance": v, "which": w, "optimizer": label}) for w, v in parts.items()]
    return pd.concat(tables).query("k > 0 and distance > 0")


def main(path: Path) -> None:
    """Distances of four optimizers from the flow, at the same time and from its path, over steps."""
    problem = flow.random_problem("logistic", n=4, d=3, seed=1)
    table = pd.concat([rows(name, label, problem) for name, label in RUNS.items()])
    steps = alt.X("k:Q", title="step k").scale(type="log", domain=[1, STEPS])
    chart = (
        alt.Chart(table)
        .mark_line(strokeWidth=2)
        .encode(
            x=steps.axis(values=(10 ** np.arange(4)).tolist()),
            y=alt.Y("distance:Q", title="max |s - s of the flow|").scale(type="log").axis(format="~e", tickCount=5),
            color=alt.Color("optimizer:N", title=None, sort=list(RUNS.values())).scale(scheme="tableau10"),
        )
        .properties(width=330, height=260)
        .facet(column=alt.Column("which:N", title=None).header(labelFontSize=13, labelFontWeight="bold"))
        .properties(title=f"Distance from gradient flow, η = {ETA:g}")
        .configure(background="white")
        .configure_legend(orient="top")
    )
    chart.save(path, scale_factor=2)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
