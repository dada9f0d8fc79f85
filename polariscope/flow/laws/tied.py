"""The tied model β = Uσ(Ua), softmax, logistic loss: a power of t if the winner's target is extreme, else of log t."""

from typing import Any

import numpy as np
from scipy.optimize import nnls
from scipy.special import softmax

from polariscope.flow.checks import remainder
from polariscope.flow.laws._law import Law, Series, only_for
from polariscope.flow.laws.tails import lead_is_shared
from polariscope.flow.laws.tied_path import tied_path
from polariscope.flow.problem import Problem
from polariscope.flow.result import Result
from polariscope.flow.tracks import norm_of

LAST = 2000.0
"""‖β*‖τ up to which paths are followed."""
SETTLED = 0.02
"""Share of a_w by which it may still move in the last tenth of the path, if it has a limit that is not 0."""
BALANCED = 3.0
"""Bound of θτ (see `push`): log gaps then grow like a multiple of log τ."""


def series(problem: Problem, result: Any) -> Series | str:
    """-log(1 - max s) beside ρ log t, or 1 - max s beside C/(‖β*‖τ)²."""
    path, U = tied_path(problem, np.geomspace(1e-2, LAST, 400) / norm_of(problem))
    if lead_is_shared(path.s[-1]):
        return "coordinates that start tied share the lead"
    target, w = problem.data["target"], int(path.s[-1].argmax())
    assert path.tau is not None
    a_w = path.a[:, w]
    ahead = a_w[-1] * np.delete(target[w] - target, w)
    if ahead.min() > 0 and abs(a_w[len(a_w) * 9 // 10] / a_w[-1] - 1) < SETTLED:
        return _power_of_t(path, float(ahead.min()) / norm_of(problem) ** 2)
    if ahead.min() < 0 and abs(push(U[-1], path.a[-1], target, w)) * path.tau[-1] < BALANCED:
        return _power_of_log_t(path, U, target, w)
    return f"a_w still moves at the end of the path, at log t = {path.log_t[-1]:.4g}"


def _power_of_t(path: Result, rate: float) -> Series:
    y = -np.log(remainder(path.s))
    middle = len(y) - len(y) // 6
    refined = y[middle] + rate * (path.log_t - path.log_t[middle])
    note = f"the winner's target is extreme: 1 - max s falls like t^-{rate:.4g}"
    return Series(path.log_t, y, rate * path.log_t, refined, path.log_t, y, rate, note)


def _power_of_log_t(path: Result, U: np.ndarray, target: np.ndarray, w: int) -> Series:
    """With -log s falling at the local exponent p instead of 2 (p - 2 is about 1/log τ), C becomes Cp/2."""
    assert path.tau is not None
    rest, way = remainder(path.s), np.linalg.norm(target) * path.tau
    constant = np.array([balance(*state, target, w) for state in zip(U, path.a, strict=True)])
    p = -np.gradient(np.log(rest), np.log(way))
    predicted = constant / way**2
    note = f"the winner's target is not extreme: a_w tends to 0, and C = {constant[-1]:.4g}"
    return Series(path.log_t, rest, predicted, predicted * p / 2, np.log(way), np.log(rest / constant), -2.0, note)


def push(U: np.ndarray, a: np.ndarray, target: np.ndarray, w: int) -> float:
    """θ of d(b_w - b_j)/dτ = θ(β*_w - β*_j) + …, b = Ua: ⟨s, a⟩ + ⟨u, Uᵀp⟩/‖β*‖², largest effect over j."""
    s, u = softmax(U @ a), U.T @ target
    g = u - u[w]
    p = s * (g - s @ g)
    theta = s @ a + u @ (U.T @ p) / (target @ target)
    return float(theta * np.abs(target[w] - target).max())


def balance(U: np.ndarray, a: np.ndarray, target: np.ndarray, w: int) -> float:
    """C = Σc, with c ≥ 0 the least of ½cᵀMc - 2Σc on Σ cⱼ(β*_w - β*ⱼ) = 0, over the losers j.

    M = E(‖a‖²I + WWᵀ)Eᵀ with rows e_w - eⱼ of E and W = U without its part along β*.
    """
    n = len(a)
    E = np.delete(np.eye(n)[w] - np.eye(n), w, axis=0)
    along = target / np.linalg.norm(target)
    W = U - np.outer(along, along @ U)
    B = np.concatenate([np.linalg.norm(a) * E, E @ W], axis=1).T
    wanted = np.linalg.lstsq(B.T, np.full(n - 1, 2.0), rcond=None)[0]
    tight = 1e4 * np.linalg.norm(B) * (E @ along)
    c, _ = nnls(np.concatenate([B, tight[None]]), np.append(wanted, 0.0))
    return float(c.sum())


LAW = Law(
    "tied",
    "1 - max s = t^(-ρ + o(1)), ρ = min_j a_w(β*_w - β*_j)/‖β*‖², if that is positive; else C/(‖β*‖τ)²",
    only_for(model="tied", scores=("softmax",), of=("logistic",)),
    None,
    series,
    tolerance=0.15,
)
