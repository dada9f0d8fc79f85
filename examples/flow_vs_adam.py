"""Draw optimizers beside gradient flow: python examples/flow_vs_adam.py flow_vs_adam.png (or .svg, .html)."""

import sys
from pathlib import Path

from polariscope import flow, plots

RUNS = {"gd": "gradient descent", "heavy-ball": "heavy ball, μ = 0.9", "adam": "Adam", "sign": "sign descent"}
ETA, STEPS = 0.01, 2000
"""The same step size for all: the clocks differ, and the chart shows what else does."""


def main(path: Path) -> None:
    """Distances of four optimizers from the flow, at the same time and from its path, over steps."""
    problem = flow.random_problem("logistic", n=4, d=3, seed=1)
    runs = {label: flow.compare(problem, name, ETA, STEPS) for name, label in RUNS.items()}
    for label, run in runs.items():
        print(f"{label}: {run.message} Winner {run.winner}, of the flow {run.flow_winner}.")
    plots.save(plots.comparison(runs), path)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python examples/flow_vs_adam.py flow_vs_adam.png")
    main(Path(sys.argv[1]))
