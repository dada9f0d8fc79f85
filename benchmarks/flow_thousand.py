"""A thousand flows of n = 8: far out in path time against SciPy, and in ordinary time against general solvers."""

import numpy as np
from flow_fields import by_diffrax, by_scipy, by_torchdiffeq, softmax
from flow_tables import Table, first_and_warm, seconds, timed, times_as_long
from scipy.integrate import solve_ivp

from polariscope import flow

COUNT, N = 1000, 8


def problems():
    return [flow.preset("logistic", n=N, seed=seed) for seed in range(COUNT)]


def in_path_time(problem, tau, rtol):
    """s at path time τ, by DOP853 on u' = s, a' = s∘(u - z)."""

    def field(_, y):
        u, s = y[:N], softmax(np, y[N:])
        return np.concatenate([s, s * (u - s @ u)])

    start = np.concatenate([np.array(problem["V0"]).T @ problem["target"], problem["a0"]])
    path = solve_ivp(field, (0.0, tau), start, method="DOP853", rtol=rtol, atol=rtol, t_eval=[tau])
    return softmax(np, path.y[N:, 0])


def far_out(sample=50, log_t=1e4, rtol=1e-10):
    """All of them to log t = 10⁴, where τ is the same number to three digits."""
    every = problems()
    results, first, warm = first_and_warm(lambda: flow.solve_many(every, log_t=[log_t], rtol=rtol))
    chosen = range(0, COUNT, COUNT // sample)
    taus = [float(results[i].tau[0]) for i in chosen]
    ends, slow = timed(lambda: [in_path_time(every[i], tau, rtol) for i, tau in zip(chosen, taus, strict=True)], 1)
    pairs = [(results[i].s[0], end) for i, end in zip(chosen, ends, strict=True)]
    apart = max(np.abs(one - other).max() for one, other in pairs)
    relative = max(np.abs(one / other - 1).max() for one, other in pairs)
    scaled = slow * COUNT / len(ends)
    rows = (
        ("flow.solve_many", seconds(warm), "1"),
        ("flow.solve_many, first call (compiles)", seconds(first), times_as_long(first / warm)),
        (f"SciPy DOP853 in τ, one by one ({len(ends)} timed, scaled)", seconds(scaled), times_as_long(scaled / warm)),
    )
    note = (
        f"Over the {len(ends)} flows that both solved, s differs by {apart:.1e} at most. All but one weight "
        f"are small there; relative to each weight the difference is {relative:.1e} at most."
    )
    title = f"{COUNT:,} flows of n = {N} to log t = {log_t:,.0f}, rtol {rtol:g}"
    return Table(title, note, ("solver", "seconds for all", "times as long"), rows)


def in_ordinary_time(sample=20, t=1e4, rtol=1e-9):
    """The same flows to a t that solvers in t can reach."""
    every = problems()
    chosen = range(0, COUNT, COUNT // sample)
    exact = np.array([by_scipy(every[i], t, rtol=1e-13, atol=1e-14) for i in chosen])
    found = {}
    results, _, warm = first_and_warm(lambda: flow.solve_many(every, t=[t], rtol=rtol))
    found["flow.solve_many"] = warm, np.array([r.s[0] for r in results])[chosen]
    ends, _, warm = first_and_warm(by_diffrax(every, t, rtol=rtol))
    found["diffrax Dopri8, vmap"] = warm, ends[chosen]
    for method in ("dopri8", "dopri5"):
        run = by_torchdiffeq(every, t, method, rtol)
        if run is not None:
            ends, spent = timed(run, 1)
            found[f"torchdiffeq {method}, one batch"] = spent, ends[chosen]
    ends, slow = timed(lambda: np.array([by_scipy(every[i], t, rtol=rtol) for i in chosen]), 1)
    found[f"SciPy DOP853, one by one ({len(ends)} timed, scaled)"] = slow * COUNT / len(ends), ends
    base = found["flow.solve_many"][0]
    rows = tuple(
        (name, seconds(spent), times_as_long(spent / base), f"{np.abs(s - exact).max():.1e}")
        for name, (spent, s) in found.items()
    )
    note = (
        f"The error is the largest of s over {len(exact)} flows, against DOP853 at rtol 1e-13. Compiling is not "
        "counted. torchdiffeq takes one step size for the whole batch."
    )
    title = f"{COUNT:,} flows of n = {N} to t = {t:,.0f}, rtol {rtol:g}"
    return Table(title, note, ("solver", "seconds for all", "times as long", "error of s"), rows)
