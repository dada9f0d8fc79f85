"""The tied model with the logistic loss in path time, dτ = r dt, r = 1/(1 + e^z).

    U' = β* sᵀ + p aᵀ,    a' = Uᵀp,    s = softmax(Ua),    u = Uᵀβ*,    p = s ∘ (u - z).

As for the value model the path does not know the loss; ordinary time ends at log t = 690.
"""

from typing import Any

import numpy as np
from scipy.integrate import solve_ivp
from scipy.special import softmax

from polariscope.flow.losses._margin import log_softplus
from polariscope.flow.problem import Problem
from polariscope.flow.result import Path, Result, result_from

SMALLEST = 1e-250
"""The path ends where 1 - max s falls below it."""


def tied_path(problem: Problem, tau: np.ndarray) -> tuple[Result, np.ndarray]:
    """The path at path times τ, (k,), increasing from above 0, and U, (k, n, n); fewer rows where it ends sooner."""
    target, n = problem.data["target"], len(problem.a0)

    def field(_: float, y: np.ndarray) -> np.ndarray:
        U, a = y[:-n].reshape(n, n), y[-n:]
        s = softmax(U @ a)
        u = U.T @ target
        g = u - u[s.argmax()]
        p = s * (g - s @ g)
        return np.append(np.outer(target, s) + np.outer(p, a), U.T @ p)

    def polarized(_: float, y: np.ndarray) -> float:
        s = np.sort(softmax(y[:-n].reshape(n, n) @ y[-n:]))
        return float(np.log(s[:-1].sum() + 1e-320) - np.log(SMALLEST))

    event: Any = polarized
    event.terminal = True
    start = np.append(problem.V0, problem.a0)
    found = solve_ivp(field, (0.0, tau[-1]), start, "LSODA", t_eval=tau, events=event, rtol=1e-10, atol=1e-12)
    U, a = found.y[:-n].T.reshape(-1, n, n), found.y[-n:].T
    s = softmax(np.einsum("kij,kj->ki", U, a), axis=1)
    u = np.einsum("kij,i->kj", U, target)
    z = (u * s).sum(axis=1)
    path = Path(
        log_t=log_clock(found.t, z, float(problem.V0.T @ target @ softmax(problem.V0 @ problem.a0))),
        s=s, a=a, u=u, objective=np.logaddexp(0.0, -z), log_objective=log_softplus(-z),
        column_norms=np.linalg.norm(U, axis=1), tau=found.t,
    )  # fmt: skip
    return result_from(problem.name, path, distribution=True, status="ok", message="In path time."), U


def log_clock(tau: np.ndarray, z: np.ndarray, z0: float) -> np.ndarray:
    """log t = log ∫ (1 + e^z) dτ from 0 to each τ, (k,), with z linear between the points."""
    tau, z = np.append(0.0, tau), np.append(z0, z)
    h, step = np.diff(tau), np.diff(z)
    x = np.abs(step)
    mean = np.where(x < 1e-8, -x / 2, np.log(-np.expm1(-np.maximum(x, 1e-8)) / np.maximum(x, 1e-8)))
    pieces = np.log(h) + np.logaddexp(0.0, np.maximum(z[1:], z[:-1]) + mean)
    return np.logaddexp.accumulate(pieces)
