r"""One curve, two clocks: the isotropic square loss runs along the path of the logistic loss.

Where the columns of V0 are multiples of the target β*, the gradient of ½‖β - β*‖² is (z/‖β*‖² - 1) β*: V moves along β*
alone, as with the logistic loss, at the rate r = 1 - z/‖β*‖². So the path is the same and ends where z = ‖β*‖². With
y = -log r for path coordinate the clock has no singular end:

    dt = dτ / r = ‖β*‖² dy / (dz/dτ).
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import jax
import numpy as np
from numpy.polynomial import legendre
from scipy.optimize import elementwise

from polariscope.errors import InputError
from polariscope.flow import losses, path_engine
from polariscope.flow.charts import declares
from polariscope.flow.following import follow
from polariscope.flow.paths import Paths
from polariscope.flow.problem import Problem, read_problem
from polariscope.flow.result import Result, result_from

LAST = 36.0
"""y at which z is ‖β*‖² to the last bit."""
PANELS = 144
_NODES, _WEIGHTS = (0.5 * (v + s) for v, s in zip(legendre.leggauss(10), (1.0, 0.0), strict=True))


def shared_path(problem: Mapping[str, Any] | Problem, t: Any = None, log_t: Any = None, rtol: float = 1e-9) -> Result:
    """The square-loss flow of the value model, read off the logistic path with the clock of the square loss.

    Args:
        problem: value model, square loss, columns of V0 multiples of the target (V0 = 0 for one), ⟨u, s⟩ < ‖β*‖².
        t, log_t, rtol: as in `polariscope.flow.solve`.

    Returns:
        what `solve` gives, within rtol; the status is ``converged`` where the last time lies at the end of the path.

    Raises:
        InputError: for problems to which this does not apply.
    """
    given = problem if isinstance(problem, Problem) else read_problem(problem, t=t, log_t=log_t)
    length = float(np.linalg.norm(given.data.get("target", np.zeros(1))))
    _check(given, length)
    far = replace(given, loss=losses.get("logistic"), log_t=np.array([length**2 + 20.0]))
    with jax.enable_x64(True):
        (chunk,) = path_engine.chunks([far])
        path = follow([far], path_engine.INTERNAL * rtol, chunk, everywhere=True)
    edges, times = _clock(path, length**2)
    wanted = np.exp(given.log_t)
    y = _invert(wanted, edges, times, path, length**2)
    steps, at = _place(path, y, edges[0], length**2)
    found = path.at(steps, at, given.log_t)
    rest = length**2 * np.exp(-y)
    objective = 0.5 * (rest / length) ** 2
    with np.errstate(divide="ignore"):
        found = replace(found, objective=objective, log_objective=np.log(objective))
    ended = bool(wanted[-1] >= times[-1])
    message = "Nothing moves any more at the last time." if ended else "Every time asked for was reached."
    return result_from(
        given.name,
        found,
        status="converged" if ended else "ok",
        message=message,
        distribution=declares(given.scores, "sums_to_one") and declares(given.scores, "non_negative"),
        stats={"engine": "shared path", "steps": path.tracks[0].taken, "rejected": path.tracks[0].rejected},
    )


def _check(problem: Problem, length: float) -> None:
    if problem.model.name != "value" or problem.loss.name != "square" or length == 0:
        got = f"{problem.model.name} model, {problem.loss.name} loss"
        raise InputError("shared path", got=got, expected="value model, square loss, a target", fix="use flow.solve")
    target = problem.data["target"]
    off = problem.V0 - np.outer(target, target @ problem.V0) / length**2
    if np.abs(off).max() > 1e-14 * max(1.0, float(np.abs(problem.V0).max())):
        raise InputError(
            "V0", got="columns that are no multiples of the target", expected="V0 = target ⊗ c", fix="use flow.solve"
        )
    s = np.asarray(problem.scores(problem.a0))
    if float((target @ problem.V0) @ s) >= length**2:
        raise InputError(
            "start", got="⟨u, s⟩ ≥ ‖target‖²", expected="less, on this side of the minimum", fix="scale V0"
        )


def _place(path: Paths, y: np.ndarray, first: float, square: float) -> tuple[np.ndarray, np.ndarray]:
    """The steps, and x, at which y = -log(1 - z/‖β*‖²); z increases along the path."""
    knots = np.append(path.steps.left, path.steps.right[-1])
    index = np.append(np.arange(len(path.steps.left)), len(path.steps.left) - 1)
    z_knots, _ = path.steps.at(index, knots)
    wanted = square * -np.expm1(-np.maximum(y, first))
    step = np.clip(np.searchsorted(z_knots, wanted) - 1, 0, len(knots) - 2)
    low, high = knots[step], knots[step + 1]
    root = elementwise.find_root(
        lambda x, step, wanted: path.steps.at(step.astype(int), x)[0] - wanted,
        (low, high), args=(step.astype(float), np.clip(wanted, z_knots[step], z_knots[step + 1])),
        tolerances={"xatol": 0.0, "xrtol": 1e-15},
    )  # fmt: skip
    return step, np.where(np.isfinite(root.x), root.x, low)


def _speed(path: Paths, y: np.ndarray, first: float, square: float, norm: float) -> np.ndarray:
    """dt/dy = ‖β*‖²/(dz/dτ), with dτ̂ = e^x dx and τ̂ = ‖β*‖τ."""
    step, x = _place(path, y, first, square)
    _, slope = path.steps.at(step, x)
    return square * np.exp(x) / (norm * slope)


def _clock(path: Paths, square: float) -> tuple[np.ndarray, np.ndarray]:
    """Edges of panels in y, and t at each, (m + 1,)."""
    z, _ = path.steps.at(np.zeros(1, int), np.zeros(1))
    edges = np.linspace(-np.log1p(-z[0] / square), LAST, PANELS + 1)
    times = np.append(0.0, np.cumsum(_panels(path, edges[:-1], edges[1:], edges[0], square)))
    return edges, times


def _panels(path: Paths, low: np.ndarray, high: np.ndarray, first: float, square: float) -> np.ndarray:
    """∫ (dt/dy) dy over panels, by ten nodes each."""
    size = (high - low)[:, None]
    y = low[:, None] + size * _NODES
    speed = _speed(path, y.ravel(), first, square, np.sqrt(square)).reshape(y.shape)
    return (size * _WEIGHTS * speed).sum(1)


def _invert(wanted: np.ndarray, edges: np.ndarray, times: np.ndarray, path: Paths, square: float) -> np.ndarray:
    """y at times; beyond the last panel its end."""
    capped = np.minimum(wanted, times[-1])
    panel = np.clip(np.searchsorted(times, capped) - 1, 0, len(edges) - 2)
    root = elementwise.find_root(
        lambda y, low, left: left + _panels(path, low, y, edges[0], square),
        (edges[panel], edges[panel + 1]), args=(edges[panel], times[panel] - capped),
        tolerances={"xatol": 1e-15, "xrtol": 1e-14},
    )  # fmt: skip
    return np.where(np.isfinite(root.x), root.x, np.where(capped <= 0, edges[0], edges[panel + 1]))
