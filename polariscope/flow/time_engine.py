"""The engine for every loss and model: ordinary time, explicit steps, and implicit ones where those are too many."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import diffrax
import jax
import jax.numpy as jnp
import numpy as np

from polariscope.errors import InputError
from polariscope.flow.checks import check_path
from polariscope.flow.maps import Maps, declares, declares_distribution
from polariscope.flow.ordinary_time import Data, Observed, Piece, integrate
from polariscope.flow.problem import Problem
from polariscope.flow.result import Path, Result, blanked, joined, result_from
from polariscope.flow.times import padded
from polariscope.scores import ScoreMap

PLAN = (("explicit", 8192), ("implicit", 4096), ("explicit", 65536))
"""What is tried in turn, each from where the one before used up its steps. Implicit steps need a smooth score map."""
INTERNAL = 0.1
GRID = 64
LARGEST_IMPLICIT = 1500
"""Entries of V from which implicit steps, which factor a matrix of that size, cost more than they save."""
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
    return problem.model, problem.loss, problem.V0.shape, shapes, len(padded(problem.log_t))


def solve_group(problems: Sequence[Problem], rtol: float) -> Iterator[Result]:
    """Results of problems with one `group_key`, one after the other."""
    maps = Maps(tuple(dict.fromkeys(p.scores for p in problems)))
    for problem in problems:
        yield _solve(problem, maps, rtol)


def _solve(problem: Problem, maps: Maps, rtol: float) -> Result:
    times = np.exp(padded(problem.log_t))
    grid = _grid(times)
    pieces = _pieces(problem, maps, times, grid, rtol)
    ends = [float(piece.t) for piece in pieces]
    converged = bool(pieces[-1].result == diffrax.RESULTS.event_occurred._value)
    k = len(problem.log_t)
    asked = _path(problem.log_t, times[:k], [piece.asked for piece in pieces], ends)
    with np.errstate(divide="ignore"):
        seen = _path(np.log(grid), grid, [piece.seen for piece in pieces], ends)
    reached = times[:k] <= ends[-1]
    whole = joined(asked.at(reached), seen.at(grid <= ends[-1]))
    if converged:
        asked = _repeated(asked, reached, pieces[-1].end)
        reached = np.ones(k, dtype=bool)
    status, message = _status(problem, asked.at(reached), reached, ends[-1], converged)
    return result_from(
        problem.name,
        blanked(asked, reached) if "target" in problem.data else replace(blanked(asked, reached), u=None),
        status=status,
        message=message,
        distribution=declares_distribution(problem.scores),
        checks=check_path(
            whole,
            softmax=getattr(problem.scores, "name", "") == "softmax",
            logistic=problem.loss.name == "logistic",
            tied=problem.model.name == "tied",
            tolerance=100 * rtol,
        ),
        stats=_stats(pieces, ends, converged, rtol),
    )


def _grid(times: np.ndarray) -> np.ndarray:
    """Times from 0 to the last at which the path is looked at for checks, (GRID,)."""
    last = times[-1]
    if last == 0:
        return np.zeros(GRID)
    first = 1e-2 * max(times[times > 0].min(), 1e-3 * last)
    return np.append(0.0, np.geomspace(first, last, GRID - 1)).clip(max=last)


def _pieces(problem: Problem, maps: Maps, times: np.ndarray, grid: np.ndarray, rtol: float) -> list[Piece]:
    """The flow in as many pieces of `PLAN` as it takes."""
    which = jnp.array(maps.members.index(problem.scores))
    data = Data(dict(problem.data), which, jnp.array(INTERNAL * rtol))
    smooth = declares(problem.scores, "smooth") or not isinstance(problem.scores, ScoreMap)
    pieces: list[Piece] = []
    y, t = (problem.V0, problem.a0), 0.0
    for solver, max_steps in PLAN:
        if solver == "implicit" and problem.V0.size > LARGEST_IMPLICIT:
            continue
        piece = integrate(
            y, jnp.array(t), np.maximum(times, t), np.maximum(grid, t), data, INTERNAL * rtol,
            model=problem.model, maps=maps, loss=problem.loss, solver=solver, max_steps=max_steps,
        )  # fmt: skip
        pieces.append(jax.tree.map(np.asarray, piece))
        y, t = piece.y, float(piece.t)
        used_up = pieces[-1].result == diffrax.RESULTS.max_steps_reached._value
        if not used_up or not smooth or not all(np.isfinite(v).all() for v in pieces[-1].y):
            break
    return pieces


def _path(log_t: np.ndarray, times: np.ndarray, seen: list[Observed], ends: list[float]) -> Path:
    """What each piece saw of its own part, as one path."""
    part = np.minimum(np.searchsorted(ends, times), len(ends) - 1)
    index = np.arange(len(times))
    fields = {name: np.stack([getattr(one, name) for one in seen])[part, index] for name in Observed._fields}
    return Path(log_t=log_t, **fields)


def _repeated(asked: Path, reached: np.ndarray, end: Observed) -> Path:
    """The path with the converged state at the times after the end."""
    filled = {
        name: np.where(reached.reshape(-1, *[1] * np.ndim(last)), getattr(asked, name), last)
        for name, last in end._asdict().items()
    }
    return replace(asked, **filled)


def _status(problem: Problem, asked: Path, reached: np.ndarray, end: float, converged: bool) -> tuple[str, str]:
    if not np.isfinite(end) or not np.isfinite(asked.s).all() or not np.isfinite(asked.objective).all():
        return "diverged", f"The path leaves what numbers can hold at about t = {end:.6g}."
    if converged:
        return "converged", f"Nothing moves any more after t = {end:.6g}; later times repeat that state."
    if not reached.all():
        smooth = declares(problem.scores, "smooth")
        why = "the flow is stiff or grows without bound" if smooth else "a kink or a pole of σ may lie there"
        return "step limit", f"The steps allowed were used up at t = {end:.6g}; {why}."
    return "ok", "Every time asked for was reached."


def _stats(pieces: list[Piece], ends: list[float], converged: bool, rtol: float) -> dict[str, Any]:
    kinds = [solver for solver, _ in PLAN][: len(pieces)]
    return {
        "engine": "ordinary time",
        "steps": sum(int(piece.stats["num_accepted_steps"]) for piece in pieces),
        "rejected": sum(int(piece.stats["num_rejected_steps"]) for piece in pieces),
        "solvers": kinds,
        "converged_at": ends[-1] if converged else None,
        "internal_rtol": INTERNAL * rtol,
    }
