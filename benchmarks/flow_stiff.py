"""KL and ill-conditioned regression to t = 10⁴, against solvers for stiff equations."""

import diffrax
import numpy as np
from flow_fields import by_diffrax, by_scipy
from flow_tables import Table, first_and_warm, seconds, timed, times_as_long

from polariscope import flow


def regression(n=6, d=6, condition_number=100.0, seed=0):
    """X with singular values from 1 to 1/κ."""
    random = np.random.default_rng(seed)
    left, right = (np.linalg.qr(random.normal(size=(d, d)))[0] for _ in range(2))
    X = left * np.geomspace(1.0, 1.0 / condition_number, d) @ right.T
    problem = flow.preset("regression", n=n, d=d, seed=seed)
    return problem | {"X": X.tolist(), "y": (X @ random.normal(size=d)).tolist()}


def stiff(t=1e4, rtol=1e-9):
    rows = []
    for name, problem in (("KL, n = 8", flow.preset("kl", n=8, seed=0)), ("regression, κ = 100, n = 6", regression())):
        exact = by_scipy(problem, t, rtol=1e-13, atol=1e-14)
        result, _, base = first_and_warm(lambda p=problem: flow.solve(p, t=[t], rtol=rtol))
        found = {"flow.solve": (base, result.s[0])}
        end, _, spent = first_and_warm(by_diffrax([problem], t, diffrax.Kvaerno5(), rtol), repeats=1)
        found["diffrax Kvaerno5"] = spent, end[0]
        for method in ("LSODA", "Radau", "DOP853"):
            end, spent = timed(lambda p=problem, m=method: by_scipy(p, t, m, rtol), 1)
            found[f"SciPy {method}"] = spent, end
        for solver, (spent, s) in found.items():
            rows.append((name, solver, seconds(spent), times_as_long(spent / base), f"{np.abs(s - exact).max():.1e}"))
    note = "The error is the largest of s, against DOP853 at rtol 1e-13. Compiling is not counted."
    columns = ("problem", "solver", "seconds", "times as long", "error of s")
    return Table(f"One stiff flow to t = {t:,.0f}, rtol {rtol:g}", note, columns, tuple(rows))
