"""One flow against gradient descent, and path time against the same flow integrated plainly in τ.

    python benchmarks/flow.py

Prints two tables; every ratio is between two measurements of one run. The reference flow is the stored one.
"""

import json
import time
from pathlib import Path

import diffrax
import jax
import jax.numpy as jnp
import numpy as np

from polariscope import flow

REFERENCE = Path(__file__).parents[1] / "tests" / "data" / "flows.json"


def timed(run, repeats=5):
    """The result and the smallest of the wall times."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = run()
        times.append(time.perf_counter() - start)
    return result, min(times)


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
    result, seconds = timed(lambda: flow.solve(problem, t=[t]))
    slow, slow_seconds = timed(lambda: descend(problem, steps, t / steps), repeats=1)
    stored = flow.solve(problem)
    error = np.abs(stored.s - np.array(problem["s"])).max()
    print(f"one logistic flow, n = d = 8, to t = {t:g}")
    print(f"  gradient descent, {steps:,} steps  {slow_seconds:9.3f} s  error {np.abs(slow - wanted).max():.1e}")
    print(f"  polariscope.flow.solve           {seconds:9.4f} s  error {np.abs(result.s[0] - wanted).max():.1e}")
    print(f"  ratio {slow_seconds / seconds:,.0f}; largest error of s over the reference file's times {error:.1e}")


def plain_steps(problem, tau, rtol=1e-9):
    """Accepted steps of Dopri8 on (u, a) in τ, with no change of variables."""
    target = np.array(problem["target"])
    n = len(problem["a0"])

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
    assert np.asarray(solution.ys[0]).shape[-1] == n
    return int(solution.stats["num_accepted_steps"])


def against_plain(log_t=1e6):
    """Steps to log t = 10⁶, where τ is the same number to five digits."""
    print(f"steps to log t = {log_t:g} at rtol 1e-9")
    print("    n  path time  rejected  to 1e12  plain in τ  ratio")
    for n in (2, 8, 100):
        problem = flow.preset("logistic", n=n, seed=0)
        near, far = (flow.solve(problem, log_t=[end]).stats for end in (log_t, 1e12))
        plain = plain_steps(problem, log_t)
        ratio = plain / near["steps"]
        print(f"  {n:3d}  {near['steps']:9d}  {near['rejected']:8d}  {far['steps']:7d}  {plain:10d}  {ratio:5.1f}")


if __name__ == "__main__":
    against_descent()
    against_plain()
