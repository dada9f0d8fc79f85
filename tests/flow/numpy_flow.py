"""The same flows written plainly in NumPy, in all parameters, for SciPy's integrators."""

import numpy as np
from scipy.integrate import solve_ivp
from scipy.special import expit, softmax


def slope(problem, beta):
    """∇ℓ(β), by hand."""
    if problem["loss"] == "logistic":
        target = np.array(problem["target"])
        return -expit(-target @ beta) * target
    if problem["loss"] == "square":
        return beta - np.array(problem["target"])
    if problem["loss"] == "regression":
        X, y = np.array(problem["X"]), np.array(problem["y"])
        return 2 * X.T @ (X @ beta - y)
    return softmax(beta) - np.array(problem["p"])


def pullback(scores, a, g):
    """s and Jᵀg, by hand, for the maps used in these tests."""
    if scores == "softmax":
        s = softmax(a)
        return s, s * (g - s @ g)
    if scores == "sigmoid":
        s = expit(a)
        return s, s * (1 - s) * g
    if scores == "elu-normalized":
        f, df = np.where(a > 0, a + 1, np.exp(a)), np.where(a > 0, 1.0, np.exp(a))
        s = f / f.sum()
        return s, df * (g - s @ g) / f.sum()
    raise ValueError(scores)


def velocity(problem, V, a):
    """(V̇, ȧ) of the value or the tied model."""
    logits = a if problem["model"] == "value" else V @ a
    s, _ = pullback(problem["scores"], logits, np.zeros_like(logits))
    g = slope(problem, V @ s)
    _, back = pullback(problem["scores"], logits, V.T @ g)
    if problem["model"] == "value":
        return -np.outer(g, s), -back
    return -np.outer(g, s) - np.outer(back, a), -V.T @ back


def integrate(problem, times, method="DOP853"):
    """s at the times, by SciPy."""
    V0, a0 = np.array(problem["V0"]), np.array(problem["a0"])
    d, n = V0.shape

    def field(t, y):
        moved = velocity(problem, y[: d * n].reshape(d, n), y[d * n :])
        return np.concatenate([moved[0].ravel(), moved[1]])

    start = np.concatenate([V0.ravel(), a0])
    solution = solve_ivp(field, (0, times[-1]), start, method=method, rtol=1e-12, atol=1e-13, t_eval=times)
    V, a = solution.y[: d * n].T.reshape(-1, d, n), solution.y[d * n :].T
    logits = a if problem["model"] == "value" else np.einsum("tij,tj->ti", V, a)
    return np.array([pullback(problem["scores"], row, np.zeros(n))[0] for row in logits])
