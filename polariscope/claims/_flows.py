"""What the flow claims share: random logistic problems, solved together, as long tables."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from polariscope.claims._base import Context

PATHS, CHECKS, FLOWS, RATES = "paths.parquet", "checks.parquet", "flows.parquet", "rates.parquet"

Problem = dict[str, Any]


def free_problem(n: int, seed: int) -> Problem:
    """A random logistic problem; its logits may be ordered in any way."""
    from polariscope import flow

    return flow.preset("logistic", n=n, seed=seed)


def ordered_problem(n: int, seed: int) -> Problem:
    """A random logistic problem whose logits are ordered as the projections u are: the hypothesis of Theorem 3.2."""
    problem = free_problem(n, seed)
    u = np.asarray(problem["V0"]).T @ np.asarray(problem["target"])
    a = np.empty(n)
    a[np.argsort(u)] = np.sort(problem["a0"])
    return problem | {"a0": a.tolist()}


def experiment(context: Context, make: Callable[[int, int], Problem]) -> None:
    """Solve ``flows`` problems of each size on one grid of log t and write the tables.

    Args:
        context: its settings hold sizes, flows (per size), seed, log_t_max, times.
        make: gives the problem for (n, seed).
    """
    from polariscope import flow

    settings = context.settings
    # More times where the weights decide themselves, so that a drawn path is smooth there.
    spread = np.geomspace(0.1, settings["log_t_max"], settings["times"])
    log_t = np.union1d(spread, np.linspace(2, 12, settings["times"] // 3)).tolist()
    problems, results = [], []
    for done, n in enumerate(settings["sizes"]):
        context.progress(done, len(settings["sizes"]), f"{settings['flows']} flows of n = {n}")
        batch = [make(n, settings["seed"] + k) for k in range(settings["flows"])]
        problems += batch
        results += flow.solve_many(batch, log_t=log_t)
    write(context.folder, problems, results)


def write(folder: Path, problems: Sequence[Problem], results: Iterable[Any]) -> None:
    """Four tables: one row per flow, per check, per flow × time, and per flow × time × coordinate."""
    flows, checks, rates, paths = [], [], [], []
    for index, (problem, result) in enumerate(zip(problems, results, strict=True)):
        n, times = len(problem["a0"]), len(result.log_t)
        key = {"flow": index, "n": n}
        # The small weights are exact where 1 − max s would cancel.
        remainder = np.sort(result.s, axis=-1)[:, :-1].sum(axis=-1)
        law = 2 * (1 - 1 / n) / np.asarray(result.log_t) ** 2
        rates.append(pd.DataFrame(key | {"log_t": result.log_t, "one_minus_max_s": remainder, "law": law}))
        last = {"log_t": result.log_t[-1], "max_s": result.s[-1].max(), "one_minus_max_s": remainder[-1]}
        last["log_objective"] = result.log_objective[-1]
        flows.append(key | {"status": result.status, "steps": result.stats["steps"]} | last)
        checks += [key | {"name": c.name, "holds": c.holds, "margin": c.margin} for c in result.checks]
        frame = {
            "log_t": np.repeat(result.log_t, n),
            "coordinate": np.tile(np.arange(n), times),
            "s": np.ravel(result.s),
            "u": np.ravel(result.u),
        }
        paths.append(pd.DataFrame(key | frame))
    pd.DataFrame(flows).to_parquet(folder / FLOWS, index=False)
    pd.DataFrame(checks).astype({"holds": "boolean", "margin": "float64"}).to_parquet(folder / CHECKS, index=False)
    pd.concat(rates).to_parquet(folder / RATES, index=False)
    pd.concat(paths).to_parquet(folder / PATHS, index=False)
