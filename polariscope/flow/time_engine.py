"""The engine for every loss and model: ordinary time, batches of flows of one kind and shape."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import jax
import numpy as np

from polariscope.errors import InputError
from polariscope.flow.batch import LARGEST_IMPLICIT, PLAN, Batch, batch_of
from polariscope.flow.charts import Charts, declares_distribution
from polariscope.flow.checks import check_path
from polariscope.flow.chunks import Chunk, in_chunks
from polariscope.flow.ordinary_time import Observed
from polariscope.flow.problem import Problem
from polariscope.flow.result import Path, Result, blanked, result_from
from polariscope.flow.ties import shared_lead

INTERNAL = 0.1
"""The steps are taken with this times the accuracy asked for."""
LOOKS = 48
"""Times between 0 and the last at which the path is looked at, beside those asked for."""
TOGETHER = 64
"""Flows in one batch."""
STATES, MATRICES = 64, 8
"""Arrays of the size of a state that a step holds, and of matrices that an implicit one does."""
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
            expected=f"at most {LAST:g}, unless the model is value and the loss logistic or exponential",
            fix="ask for earlier times",
        )
    return True


def group_key(problem: Problem) -> tuple[Any, ...]:
    """What one compilation serves."""
    arrays = {**problem.parameters, **problem.data}
    return problem.model, problem.loss, tuple((key, value.shape) for key, value in arrays.items())


def chunks(problems: Sequence[Problem]) -> list[Chunk]:
    """Problems with one `group_key`, in chunks."""
    state = sum(problems[0].parameters[name].size for name in ("V", *problems[0].model.trained))
    matrix = state**2 if state <= LARGEST_IMPLICIT else 0
    charts = Charts.of(p.scores for p in problems)
    every = range(len(problems))
    return in_chunks(every, TOGETHER, 8 * (STATES * state + MATRICES * matrix), charts, len(problems[0].where))


def solve_chunk(problems: Sequence[Problem], chunk: Chunk, rtol: float) -> list[Result]:
    """Results of the problems of one chunk."""
    batch = batch_of(problems, INTERNAL * rtol, chunk)
    times, seen, ends = _run(batch)
    return [
        _result(problem, batch, i, times[i], [_row(one, i) for one in seen], ends[i], rtol)
        for i, problem in enumerate(problems)
    ]


def end_state(problem: Problem, rtol: float) -> Mapping[str, np.ndarray]:
    """The trained parameters by name at the last time of a problem, or where it has stopped moving."""
    with jax.enable_x64(True):
        batch = batch_of([problem], rtol, Chunk([0], 1, False, Charts.of([problem.scores]), len(problem.where)))
        _run(batch)
    end = {name: np.asarray(value)[0] for name, value in batch.y.items()}
    return {name: value + batch.shift[0] if name == "a" else value for name, value in end.items()}


def _row(observed: Observed, i: int) -> Observed:
    return Observed(*(value[i] for value in observed))


def _run(batch: Batch) -> tuple[np.ndarray, list[Observed], list[int]]:
    """All flows, looked at at every time asked for and some more: the times (b, m), the m looks, and for each flow
    the number of looks until it ended."""
    each = [looks(wanted_times(p)) for p in batch.problems]
    count = max(map(len, each))
    times = np.stack([np.append(t, np.full(count - len(t), t[-1])) for t in each])
    seen, ends = [], [count] * len(each)
    for index in range(count):
        batch.advance(times[:, index])
        seen.append(batch.look())
        for i, ended in enumerate(batch.ended):
            if ended is not None and ends[i] == count:
                ends[i] = index + 1
        if not batch.alive().any():
            break
    return times, seen, ends


def wanted_times(problem: Problem) -> np.ndarray:
    """The times asked for as t, (k,); 0 below the least normal number, where compiled programs count as 0 too."""
    t = np.exp(problem.log_t)
    return np.where(t < np.finfo(float).tiny, 0.0, t)


def looks(times: np.ndarray) -> np.ndarray:
    """The times asked for, 0, and some between: from t = 1 on two a decade at least, so that rest is seen in time."""
    last = times[-1]
    if last == 0:
        return times
    first = max(min(1e-2 * max(times[times > 0].min(), 1e-3 * last), 1.0), float(np.finfo(float).tiny))
    count = max(LOOKS, int(2 * np.log10(last / first)))
    return np.unique(np.concatenate([[0.0], np.geomspace(first, last, count).clip(max=last), times]))


def _result(
    problem: Problem, batch: Batch, i: int, times: np.ndarray, seen: Sequence[Observed], end: int, rtol: float
) -> Result:
    """The result of flow ``i``, which ended at the look before ``end``."""
    ended, cut = batch.ended[i], None
    times, seen = times[:end], list(seen[:end])
    if ended in ("kink", "step limit", "diverged"):
        cut = max(len(times) - 1, 1)  # later looks than the first, at 0, are taken where the flow ended, not in time
    times, places = np.unique(times[:cut], return_index=True)
    seen = [seen[int(k)] for k in places]
    wanted = wanted_times(problem)
    with np.errstate(divide="ignore"):
        path = _path(problem, np.log(times), seen)
    place = np.searchsorted(times, wanted).clip(max=len(times) - 1)
    reached = (wanted <= times[-1]) | (ended == "converged")
    asked = blanked(_path(problem, problem.log_t, [seen[int(k)] for k in place]), reached)
    status, message = _status(batch, i, float(times[-1]), asked.s[-1], reached)
    if not np.isfinite(asked.at(reached).s).all() or np.isnan(asked.at(reached).objective).any():
        status, message = "diverged", f"The path leaves what numbers can hold before t = {times[-1]:.6g}."
    return result_from(
        problem.name,
        asked,
        status=status,
        message=message,
        distribution=declares_distribution(problem.scores),
        make_checks=partial(
            check_path,
            path,
            softmax=getattr(problem.scores, "name", "") == "softmax",
            logistic=problem.loss.linear,
            tied=not problem.model.own,
            tolerance=100 * rtol,
        ),
        stats={
            "engine": "ordinary time",
            "steps": int(batch.steps[i]),
            "rejected": int(batch.rejected[i]),
            "solver": PLAN[batch.stage[i]][0],
            "converged_at": float(times[-1]) if ended == "converged" else None,
            "kinks": [{"log_t": float(np.log(t)) if t else -np.inf, "key": key} for t, key in batch.kinks[i]],
            "internal_rtol": INTERNAL * rtol,
        },
    )


def _path(problem: Problem, log_t: np.ndarray, seen: Sequence[Observed]) -> Path:
    fields: dict[str, Any] = {name: np.stack([getattr(one, name) for one in seen]) for name in Observed._fields}
    if "target" not in problem.data:
        fields["u"] = None
    return Path(log_t=log_t, **fields)


def _status(batch: Batch, i: int, last: float, s: np.ndarray, reached: np.ndarray) -> tuple[str, str]:
    """What happened to flow ``i`` and what can be done about it; s (n,) are the weights at the last time."""
    ended = batch.ended[i]
    if ended == "converged" or reached.all():
        return "converged" if ended == "converged" else "ok", _said(batch.problems[i], ended, last, s)
    if ended == "kink":
        t, key = batch.kinks[i][-1]
        what = f"At t = {t:.6g} coordinate {key} may leave its kink or not: the path is not unique from there on"
        return "kink", f"{what}; ask for earlier times, start elsewhere, or use a smooth score map."
    if ended == "diverged":
        return (
            "diverged",
            f"The path leaves what numbers can hold after t = {last:.6g}; scale the problem, or ask earlier.",
        )
    kink = "σ may have a kink there, where steps stall; ask for earlier times, or use a smooth score map"
    why = "it is stiff or grows without bound; ask for earlier times" if batch.smooth(i) else kink
    return "step limit", f"The steps allowed were used up at t = {batch.t[i]:.6g}; {why}."


def _said(problem: Problem, ended: str | None, last: float, s: np.ndarray) -> str:
    """The sentence for a flow that got to every time."""
    rest = f"Nothing moves any more from t = {last:.6g} on." if ended == "converged" else ""
    if not s.any():
        return f"{rest or 'Every time asked for was reached.'} No key has weight."
    tied = shared_lead(problem, s)
    if tied:
        keys = ", ".join(map(str, tied))
        return f"{rest} Coordinates {keys} start tied and stay tied: they share the lead for ever.".strip()
    return rest or "Every time asked for was reached."
