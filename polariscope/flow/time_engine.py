"""The engine for every loss and model: ordinary time, explicit steps, and implicit ones where those are too many."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from polariscope.errors import InputError
from polariscope.flow.checks import check_path
from polariscope.flow.maps import Maps, declares_distribution, may_be_smooth
from polariscope.flow.ordinary_time import Data, Flow, Observed, integrate, observe
from polariscope.flow.problem import Problem
from polariscope.flow.result import Path, Result, blanked, result_from

PLAN = (("explicit", 4096), ("implicit", 4096), ("explicit", 65536))
"""What is tried on a stretch, each from where the one before used up its steps. Implicit steps need a smooth σ."""
INTERNAL = 0.1
LOOKS = 48
"""Times between 0 and the last at which the path is looked at, beside those asked for."""
LARGEST_IMPLICIT = 1500
"""Entries of V from which implicit steps, which factor a matrix of that size, cost more than they save."""
BOUND = 1e50
"""Parameters beyond it count as diverged."""
LAST = 690.0


def serves(problem: Problem) -> bool:
    """Every problem whose times a float can hold.

    Raises:
        InputError: for later times.
    """
    if problem.log_t[-1] > LAST:
        raise InputError(
            f"log_t of {problem.name}",
            got=f"{problem.log_t[-1]:g}",
            expected=f"at most {LAST:g}, unless the model is value and the loss logistic",
            fix="ask for earlier times",
        )
    return True


def group_key(problem: Problem) -> tuple[Any, ...]:
    """What one compilation serves."""
    shapes = tuple((key, value.shape) for key, value in problem.data.items())
    return problem.model, problem.loss, problem.V0.shape, shapes


def solve_group(problems: Sequence[Problem], rtol: float) -> Iterator[Result]:
    """Results of problems with one `group_key`, one after the other."""
    maps = Maps(tuple(dict.fromkeys(p.scores for p in problems)))
    for problem in problems:
        yield _result(problem, _run(problem, maps, rtol), rtol)


def end_state(problem: Problem, rtol: float) -> tuple[np.ndarray, np.ndarray]:
    """(V, a) at the last time of a problem, or where it has stopped moving."""
    with jax.enable_x64(True):
        V, a = _run(problem, Maps((problem.scores,)), rtol).y
    return np.asarray(V), np.asarray(a)


@dataclass
class Run:
    """A flow while it is being solved: where it is, what was seen, what it cost."""

    y: tuple[Any, Any]
    t: float = 0.0
    times: list[float] = field(default_factory=list)
    seen: list[Observed] = field(default_factory=list)
    steps: int = 0
    rejected: int = 0
    stage: int = 0
    converged: bool = False


def _run(problem: Problem, maps: Maps, rtol: float) -> Run:
    """The flow, looked at at every time asked for and some more, until it stops moving or cannot go on."""
    flow = Flow(problem.model, maps, problem.loss)
    data = Data(dict(problem.data), maps.members.index(problem.scores))
    stages = [s for s in range(len(PLAN)) if s == 0 or _may_go_on(problem, PLAN[s][0])]
    run = Run((problem.V0, problem.a0))
    for end in looks(np.exp(problem.log_t)):
        while run.t < end:
            if run.stage == len(stages):
                return run
            _advance(run, float(end), data, flow, INTERNAL * rtol, *PLAN[stages[run.stage]])
        observed, left = observe(run.y, data, flow=flow)
        run.times.append(float(end))
        run.seen.append(jax.tree.map(np.asarray, observed))
        run.converged = bool(left <= INTERNAL * rtol)
        if run.converged or not _sound(run.y):
            break
    return run


def looks(times: np.ndarray) -> np.ndarray:
    """The times asked for, 0, and some between."""
    last = times[-1]
    if last == 0:
        return times
    first = 1e-2 * max(times[times > 0].min(), 1e-3 * last)
    return np.unique(np.concatenate([[0.0], np.geomspace(first, last, LOOKS).clip(max=last), times]))


def _may_go_on(problem: Problem, solver: str) -> bool:
    """Whether more steps, or implicit ones, could help: not at a kink, where explicit steps shrink without end."""
    return may_be_smooth(problem.scores) and (solver != "implicit" or problem.V0.size <= LARGEST_IMPLICIT)


def _advance(run: Run, end: float, data: Data, flow: Flow, rtol: float, solver: str, max_steps: int) -> None:
    t, y, stats = integrate(run.y, run.t, end, data, rtol, flow=flow, solver=solver, max_steps=max_steps)
    run.y, run.steps = y, run.steps + int(stats["num_accepted_steps"])
    run.rejected += int(stats["num_rejected_steps"])
    stuck = int(stats["num_steps"]) >= max_steps and float(t) < end
    run.t = float(t) if stuck else end
    run.stage += stuck
    if not _sound(y):
        run.t = end  # to be seen there, and no further


def _sound(y: Any) -> bool:
    """Whether the parameters are numbers, and not on their way beyond them."""
    return all(bool((np.abs(leaf) < BOUND).all()) for leaf in y)


def _result(problem: Problem, run: Run, rtol: float) -> Result:
    times = np.array(run.times)
    with np.errstate(divide="ignore"):
        path = _path(problem, np.log(times), run.seen)
    wanted = np.exp(problem.log_t)
    place = np.searchsorted(times, wanted).clip(max=len(times) - 1)
    reached = (wanted < times[-1]) | ((wanted == times[-1]) & _sound(run.y)) | run.converged
    asked = blanked(_path(problem, problem.log_t, [run.seen[i] for i in place]), reached)
    status, message = _status(problem, run, reached)
    return result_from(
        problem.name,
        asked,
        status=status,
        message=message,
        distribution=declares_distribution(problem.scores),
        checks=check_path(
            path,
            softmax=getattr(problem.scores, "name", "") == "softmax",
            logistic=problem.loss.name == "logistic",
            tied=problem.model.name == "tied",
            tolerance=100 * rtol,
        ),
        stats={
            "engine": "ordinary time",
            "steps": run.steps,
            "rejected": run.rejected,
            "solver": PLAN[min(run.stage, len(PLAN) - 1)][0],
            "converged_at": run.t if run.converged else None,
            "internal_rtol": INTERNAL * rtol,
        },
    )


def _path(problem: Problem, log_t: np.ndarray, seen: Sequence[Observed]) -> Path:
    fields: dict[str, Any] = {name: np.stack([getattr(one, name) for one in seen]) for name in Observed._fields}
    if "target" not in problem.data:
        fields["u"] = None
    return Path(log_t=log_t, **fields)


def _status(problem: Problem, run: Run, reached: np.ndarray) -> tuple[str, str]:
    if not _sound(run.y) or not np.isfinite(run.seen[-1].s).all() or not np.isfinite(run.seen[-1].objective):
        return "diverged", f"The path leaves what numbers can hold before t = {run.times[-1]:.6g}."
    if run.converged:
        return "converged", f"Nothing moves any more from t = {run.times[-1]:.6g} on."
    if not reached.all():
        why = "it is stiff or grows without bound" if may_be_smooth(problem.scores) else "σ may have a kink there"
        return "step limit", f"The steps allowed were used up at t = {run.t:.6g}; {why}."
    return "ok", "Every time asked for was reached."
