"""Losses that converge keep a spread of the start: the entropy at the end, for almost uniform attention.

To first order in the spread of (V, a) around columns that are all equal and equal logits, s stays uniform, the mean
column v follows v' = q = -∇ℓ(v)/n, and every key's mean-free deviation (δV_i, δa_i) follows one linear system:

    δV_i' = q δa_i,    δa_i' = ⟨q, δV_i⟩.

So δa_i(∞) = α a_i + ⟨w, V_i⟩ with one number α and one vector w, and log n - H = ½ Var_i(δa_i). A straight way of
length L from v(0) to the minimum gives α = cosh L, |w| = sinh L.
"""

from typing import Any

import jax
import numpy as np
from scipy.integrate import solve_ivp

from polariscope.flow.laws._law import Law, Series, mapping, only_for
from polariscope.flow.problem import Problem

DEFICITS = np.array([1e-4, 1e-5, 1e-6])
"""log n - H at the end of the flows that are looked at; the starts are shrunk to give these."""
LATE = 1e8


def amplification(problem: Problem) -> tuple[float, np.ndarray]:
    """α and w, (d,), with δa(∞) = α a(0) + V(0)ᵀw, mean-free.

    The last row of the fundamental matrix, integrated backwards from the end along the mean field.
    """
    d, n = problem.V0.shape
    with jax.enable_x64(True):
        data = dict(problem.data)
        gradient = jax.jit(jax.grad(lambda v: problem.loss.value(v, data)))

        def q(v: np.ndarray) -> np.ndarray:
            return -np.asarray(gradient(v)) / n

        start = problem.V0.mean(axis=1)
        mean = solve_ivp(lambda _, v: q(v), (0, LATE), start, "LSODA", dense_output=True, rtol=1e-10, atol=1e-12)

        def back(x: float, row: np.ndarray) -> np.ndarray:  # in x = log(1 + t), where nothing is over in one step
            slope = q(mean.sol(np.expm1(x))) * np.exp(x)
            return -np.append(row[-1] * slope, row[:-1] @ slope)

        end = np.append(np.zeros(d), 1.0)
        row = solve_ivp(back, (np.log1p(LATE), 0), end, "LSODA", rtol=1e-9, atol=1e-12).y[:, -1]
    return float(row[-1]), row[:-1]


def series(problem: Problem, result: Any) -> Series | str:
    """log n - H at the end of flows from shrunk starts, beside ½ Var(α a + Vᵀw)."""
    from polariscope.flow.solver import solve_many

    alpha, w = amplification(problem)
    own = float(np.var(alpha * problem.a0 + problem.V0.T @ w) / 2)
    if not own:
        return "the start has no spread"
    sizes = np.sqrt(DEFICITS / own)
    ends = solve_many([mapping(problem, **shrunk(problem, size)) for size in sizes], t=[LATE])
    if any(end.status != "converged" for end in ends):
        return "a flow from a shrunk start does not converge"
    deficit = np.array([_deficit(end.s[-1]) for end in ends])
    note = f"α = {alpha:.4g}, |w| = {np.linalg.norm(w):.4g}; for the start as it is ½ Var = {own:.4g} nats"
    return Series(sizes, deficit, sizes**2 * own, None, np.log(sizes), np.log(deficit), 2.0, note)


def shrunk(problem: Problem, size: float) -> dict[str, np.ndarray]:
    """V0 and a0 with the deviations from their means over the keys times ``size``."""
    centre, middle = problem.V0.mean(axis=1, keepdims=True), problem.a0.mean()
    return {"V0": centre + size * (problem.V0 - centre), "a0": middle + size * (problem.a0 - middle)}


def _deficit(s: np.ndarray) -> float:
    """log n - H(s), (n,), without cancellation."""
    x = len(s) * s - 1
    return float(np.mean((1 + x) * np.log1p(x) - x))


LAW = Law(
    "kept-spread",
    "log n - H(∞) = ½ Var(α a(0) + V(0)ᵀw) as the spread of the start tends to 0, where = its size",
    only_for(scores=("softmax",), of=("square", "regression", "kl")),
    None,
    series,
    tolerance=0.02,
    last=1.0,
)
