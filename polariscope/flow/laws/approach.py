"""Losses that converge do so exponentially: ℓ - ℓ_min falls like exp(-2λt).

From β̇ = -K∇ℓ(β), K = ‖s‖²I + V C(s)² Vᵀ: near the end, with the Hessian H of ℓ there, β - β(∞) falls like exp(-λt), λ
the least positive eigenvalue of H^½ K H^½.
"""

from typing import Any

import jax
import numpy as np

from polariscope.flow.laws._law import Law, Series, flow_at, mapping, only_for
from polariscope.flow.problem import Problem

LATE = 1e8
DECAYS = np.linspace(8, 12, 17)
"""Times at which ℓ is looked at, in units of 1/λ."""
SMALLEST = 1e-10
"""Eigenvalues below this share of the largest are zero: directions that ℓ or the data do not see."""


def spectrum(problem: Problem) -> np.ndarray:
    """The positive eigenvalues of H^½ K H^½ at the end of the flow, increasing."""
    from polariscope.flow.time_engine import end_state

    end = end_state(problem, 1e-10)
    V, s = end["V"], problem.scores(end["a"])
    K = s @ s * np.eye(len(V)) + (V * s - np.outer(V @ s, s)) @ (V * s - np.outer(V @ s, s)).T
    with jax.enable_x64(True):
        data = dict(problem.data)
        H = np.asarray(jax.hessian(lambda b: problem.loss.value(b, data))(V @ s))
    values, vectors = np.linalg.eigh(H)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    found = np.linalg.eigvalsh(root.T @ K @ root)
    return found[found > SMALLEST * found[-1]]


def series(problem: Problem, result: Any) -> Series | str:
    """-log ℓ beside 2λt, counted from the middle of the times looked at."""
    from polariscope.flow.problem import read_problem

    rate = float(spectrum(read_problem(mapping(problem), t=[LATE]))[0])
    flow = flow_at(problem, np.log(DECAYS / rate))
    t = flow.t
    y = -flow.log_objective
    if flow.status == "converged" and not np.all(np.diff(y) > 0):
        return "the loss does not fall to 0"
    refined = y[len(y) // 2] + 2 * rate * (t - t[len(t) // 2])
    return Series(flow.log_t, y, 2 * rate * t, refined, t, y, 2 * rate, f"λ = {rate:.6g}")


def _applies(problem: Problem) -> str:
    """For the square loss β never leaves the span of V0 and β*, so slow directions outside it are not seen."""
    why = only_for(scores=("softmax",), of=("square", "regression", "kl"))(problem)
    if why or problem.loss.name != "square":
        return why
    spanned = np.linalg.matrix_rank(np.column_stack([problem.V0, problem.data["target"]]))
    return "V0 and the target do not span all directions" if spanned < len(problem.V0) else ""


LAW = Law(
    "approach",
    "log ℓ = const - 2λt as t → ∞, λ the least positive eigenvalue of H^½(‖s‖²I + V C(s)² Vᵀ)H^½",
    _applies,
    None,
    series,
    tolerance=0.02,
    last=1.0,
)
