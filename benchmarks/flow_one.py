"""One flow against gradient descent, and path time against the same flow integrated plainly in τ.

The reference flow is the stored one.
"""

import json
from pathlib import Path

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
from flow_tables import Table, seconds, timed, times_as_long

from polariscope import flow

REFERENCE = Path(__file__).parents[1] / "tests" / "data" / "flows.json"


def descend(problem, steps, size):
    """Gradient descent on V and a with the logistic loss and softmax, in NumPy: s at the end."""
    V, a, target = (np.array(problem[key]) for key in ("V0", "a0", "target"))
    for _ in range(steps):
        e = np.exp(a - a.max())
        s = e / e.sum()
        pull = target / (1.0 + np.exp(target @ (V @ s)))
        payoff = V.T @ pull
        V = V + size * np.outer(pull, s)
        a = a + size * s * (payoff - s @ payoff)
    return s


def against_descent(steps=1_000_000, t=1e5):
    """The n = d = 8 reference flow to t = 10⁵."""
    problem = next(p for p in json.loads(REFERENCE.read_text()) if p["name"] == "logistic-softmax-8")
    wanted = flow.solve(problem, t=[t], rtol=1e-12).s[0]
    flow.solve(problem, t=[t])  # compiles
    result, quick = timed(lambda: flow.solve(problem, t=[t]), 5)
    slow, slow_seconds = timed(lambda: descend(problem, steps, t / steps), 1)
    stored = flow.solve(problem)
    error = np.abs(stored.s - np.array(problem["s"])).max()
    rows = tuple(
        (name, seconds(spent), times_as_long(spent / quick), f"{np.abs(s - wanted).max():.1e}")
        for name, spent, s in (
            ("flow.solve", quick, result.s[0]),
            (f"gradient descent, {steps:,} steps, NumPy", slow_seconds, slow),
        )
    )
    note = f"Largest error of s of flow.solve over all times of the reference file, to t = 10¹²: {error:.1e}."
    title = f"One logistic flow, n = d = 8, to t = {t:,.0f}"
    return Table(title, note, ("solver", "seconds", "times as long", "error of s"), rows)


def plain_steps(problem, tau, rtol=1e-9):
    """Accepted steps of Dopri8 on (u, a) in τ, with no change of variables."""
    target = np.array(problem["target"])

    def field(_, y, __):
        u, a = y
        s = jax.nn.softmax(a)
        return s, s * (u - jnp.vdot(s, u))

    with jax.enable_x64(True):
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(field),
            diffrax.Dopri8(),
            0.0,
            tau,
            None,
            (np.array(problem["V0"]).T @ target, np.array(problem["a0"])),
            stepsize_controller=diffrax.PIDController(rtol=rtol, atol=rtol),
            max_steps=100_000,
            throw=False,
        )
    return int(solution.stats["num_accepted_steps"])


def against_plain(log_t=1e6):
    """Steps to log t = 10⁶, where τ is the same number to five digits."""
    rows = []
    for n in (2, 8, 100):
        problem = flow.preset("logistic", n=n, seed=0)
        near, far = (flow.solve(problem, log_t=[end]).stats for end in (log_t, 1e12))
        plain = plain_steps(problem, log_t)
        counts = (n, near["steps"], near["rejected"], far["steps"], plain)
        rows.append((*map(str, counts), f"{plain / near['steps']:.1f}"))
    columns = ("n", "flow.solve", "rejected", "to log t = 10¹²", "Dopri8 in τ", "ratio")
    note = "At the same rtol 1e-9, of which flow.solve takes its steps with a tenth."
    return Table(f"Steps of one logistic flow to log t = {log_t:,.0f}", note, columns, tuple(rows))
