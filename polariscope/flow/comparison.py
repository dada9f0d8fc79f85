"""Discrete optimizers beside the flow: at the same time, and along the same path."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polariscope.errors import InputError
from polariscope.flow.batch import BOUND
from polariscope.flow.charts import declares_distribution
from polariscope.flow.dense_path import DensePath, dense_path
from polariscope.flow.optimizers import Optimizer, Run, get, run
from polariscope.flow.problem import Problem, read_problem
from polariscope.flow.result import Result, entropy
from polariscope.flow.solver import solve_many
from polariscope.flow.ties import leader
from polariscope.flow.times import untimed

CLOCKS = ("effective", "steps")
BEYOND = 1e3
"""The flow's path is followed to this times the last time of the run, and further where that is cheap."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """A run of an optimizer beside the flow from the same start, at m numbers of steps.

    Attributes:
        name: of the problem. optimizer: its name. step_size: η. clock: effective | steps.
        k: steps, (m,), the first 0. t: the flow's time beside them, (m,): ηk, or ηk/(1 - μ).
        s, flow_s: attention weights of the two, (m, n). objective, flow_objective: L of the two, (m,).
        distance: max|s - flow_s| at the same time, (m,).
        path_distance: min over all times t of max|s - flow_s(t)|, (m,): 0 for a run on the flow's path, whatever its
            clock. path_log_t: log t where that is, (m,), the run's own clock; -inf for t = 0.
        path_spacing: the flow's path is searched among points this far apart in s, and then between the neighbours of
            the nearest; path_distance is too large by at most half of it. path_error: of the interpolated path in s,
            below which path_distance means nothing.
        winner, flow_winner: the coordinate with the largest weight after the last step, and at its time; -1 for a tie
            or a run that diverged.
        normalized_entropy, flow_normalized_entropy: (m,), where the score map gives distributions and n > 1.
        status: ok | diverged, of the run: diverged runs are NaN from the first k on at which numbers no longer hold
            them. flow_status: of the flow, as in `Result`. message: both, in a sentence.
    """

    name: str
    optimizer: str
    step_size: float
    clock: str
    k: np.ndarray
    t: np.ndarray
    s: np.ndarray
    flow_s: np.ndarray
    objective: np.ndarray
    flow_objective: np.ndarray
    distance: np.ndarray
    path_distance: np.ndarray
    path_log_t: np.ndarray
    path_spacing: float
    path_error: float
    winner: int
    flow_winner: int
    normalized_entropy: np.ndarray | None
    flow_normalized_entropy: np.ndarray | None
    status: str
    flow_status: str
    message: str


def compare(
    problem: Mapping[str, Any], optimizer: Any, step_size: float, steps: int, *,
    saves: int = 200, clock: str = "effective", rtol: float = 1e-9,
) -> Comparison:  # fmt: skip
    """An optimizer on the full objective L(V, a), beside gradient flow at the time ηk.

    Args:
        problem: as for `solve`; its times are not used.
        optimizer: a name of `optimizers.REGISTRY`, an `Optimizer`, or a function from η to an optax transformation.
        step_size: η. steps: how many.
        saves: at how many numbers of steps to look at most, from 1 to ``steps`` at equal ratios; and at 0.
        clock: "effective", the flow's time is ηk, for momentum μ it is ηk/(1 - μ); "steps", it is ηk for all.
        rtol: of the flow, as in `solve`.

    Raises:
        InputError: as `solve`, for an unknown optimizer or clock, and for counts and step sizes that are not positive.

    Example:
        >>> one = compare(flow.preset("square"), "gd", 0.01, 1000)
        >>> one.distance.max() < 0.01
        True

    Source: gradient descent is Euler's method for the flow, of order 1 in η. Momentum: Kovachki, Stuart (2021),
    arXiv:1906.04285. Adam and sign descent tend to another flow, V̇ = -sign ∇L for sign descent: Balles, Hennig (2018),
    arXiv:1705.07774.
    """
    return compare_many(problem, optimizer, [step_size], steps, saves=saves, clock=clock, rtol=rtol)[0]


def compare_many(
    problem: Mapping[str, Any], optimizer: Any, step_sizes: Sequence[float], steps: int, *,
    saves: int = 200, clock: str = "effective", rtol: float = 1e-9,
) -> list[Comparison]:  # fmt: skip
    """`compare` for several step sizes, side by side in one compilation, with one path of the flow for all."""
    if clock not in CLOCKS:
        raise InputError("clock", got=repr(clock), expected=" or ".join(CLOCKS), fix="choose one of those")
    for what, value in (("steps", steps), ("saves", saves)):
        if not isinstance(value, int | np.integer) or value < 1:
            raise InputError(what, got=repr(value), expected="a positive integer", fix=f"choose other {what}")
    one, eta = get(optimizer), _step_sizes(step_sizes)
    timeless = untimed(problem)
    k = np.unique(np.append(0, np.geomspace(1, steps, saves).round().astype(int)))
    times = eta[:, None] * k * (one.clock if clock == "effective" else 1.0)
    read = read_problem(timeless, t=times[0])
    found = run(read, one, eta, k)
    flows = solve_many([timeless | {"t": t} for t in times], rtol=rtol)
    path = dense_path(timeless, times[times > 0], BEYOND, rtol)
    runs = [Run(*parts) for parts in zip(*found, strict=True)]
    return [
        _comparison(read, one, float(e), clock, k, t, seen, flow, path)
        for e, t, seen, flow in zip(eta, times, runs, flows, strict=True)
    ]


def _step_sizes(values: Sequence[float]) -> np.ndarray:
    try:
        eta = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        eta = np.empty(0)
    if eta.ndim != 1 or eta.size == 0 or not (np.isfinite(eta) & (eta > 0)).all():
        raise InputError("step size", got=repr(values)[:80], expected="positive finite numbers", fix="try 0.01")
    return eta


def _comparison(
    problem: Problem, optimizer: Optimizer, eta: float, clock: str, k: np.ndarray, t: np.ndarray,
    seen: Run, flow: Result, path: DensePath,
) -> Comparison:  # fmt: skip
    sound = np.isfinite(seen.s).all(axis=1) & np.isfinite(seen.objective) & (seen.size < BOUND)
    sound = np.logical_and.accumulate(sound)
    s = np.where(sound[:, None], seen.s, np.nan)
    objective = np.where(sound, seen.objective, np.nan)
    path_distance, path_log_t = path.nearest(s)
    n = s.shape[1]
    has_entropy = declares_distribution(problem.scores) and n > 1
    return Comparison(
        name=problem.name,
        optimizer=optimizer.name,
        step_size=eta,
        clock=clock,
        k=k,
        t=t,
        s=s,
        flow_s=flow.s,
        objective=objective,
        flow_objective=flow.objective,
        distance=np.abs(s - flow.s).max(axis=1),
        path_distance=path_distance,
        path_log_t=path_log_t,
        path_spacing=path.spacing,
        path_error=path.error,
        winner=int(leader(s[-1])),
        flow_winner=int(leader(flow.s[-1])),
        normalized_entropy=entropy(s) / np.log(n) if has_entropy else None,
        flow_normalized_entropy=flow.normalized_entropy,
        status="ok" if sound.all() else "diverged",
        flow_status=flow.status,
        message=_message(optimizer, k, sound, objective, flow, path_log_t, path),
    )


def _message(
    optimizer: Optimizer, k: np.ndarray, sound: np.ndarray, objective: np.ndarray, flow: Result,
    path_log_t: np.ndarray, path: DensePath,
) -> str:  # fmt: skip
    said = f"{optimizer.name} made all {k[-1]} steps."
    if not sound.all():
        said = f"{optimizer.name} diverged before step {k[~sound][0]}; it is NaN from there on."
    rises = int((np.diff(objective) > 0).sum())
    said += f" Its objective rose at {rises} of {len(k) - 1} looks." if rises else ""
    if path.status != "converged" and (ends := int((path_log_t >= path.log_t[-1]).sum())):
        said += f" At {ends} looks it is nearest to where the computed path of the flow ends."
    return said + f" The flow: {flow.message}"
