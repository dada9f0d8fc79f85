"""The engine for the value model with a loss of the margin ⟨β*, β⟩: path time, leg by leg, its clock read off after."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from polariscope.flow.charts import Charts, declares_distribution, masks
from polariscope.flow.checks import check_path
from polariscope.flow.chunks import Chunk, in_chunks
from polariscope.flow.following import MAX_STEPS, follow
from polariscope.flow.paths import Paths
from polariscope.flow.problem import Problem
from polariscope.flow.result import Path, Result, joined, result_from
from polariscope.flow.ties import tied_lead

INTERNAL = 0.1
"""The steps are taken with this times the accuracy asked for: the errors of the knots add up to about ten of them."""
FEW = 32
"""Up to so many problems, all are padded to the longest: one compilation costs more than some hidden keys."""
TOGETHER = 256
"""Paths followed side by side."""


def serves(problem: Problem) -> bool:
    """Whether the path of this problem lies in the span of the target and does not depend on the clock."""
    return problem.model.name == "value" and problem.loss.linear


def group_key(problem: Problem) -> Any:
    """What may be followed together: one loss; score maps that can hide keys, or one length."""
    return problem.loss, None if masks(problem.scores) else len(problem.a0)


def chunks(problems: Sequence[Problem]) -> list[Chunk]:
    """Problems with one `group_key`, in chunks of one padded length."""
    lengths = [len(p.a0) for p in problems]
    if not masks(problems[0].scores):
        padded = lengths
    elif len(problems) <= FEW:
        padded = [max(lengths)] * len(lengths)
    else:
        padded = [1 << (n - 1).bit_length() for n in lengths]
    charts, found = Charts.of(p.scores for p in problems), []
    for n in sorted(set(padded)):
        members = [i for i, length in enumerate(padded) if length == n]
        found += in_chunks(members, TOGETHER, 8 * MAX_STEPS * (2 * n + 1), charts, n)
    return found


def solve_chunk(problems: Sequence[Problem], chunk: Chunk, rtol: float) -> list[Result]:
    """Results of the problems of one chunk."""
    with np.errstate(over="ignore", invalid="ignore"):  # such paths end as diverged
        paths = follow(problems, INTERNAL * rtol, chunk)
        reached = [paths.reached(i, p.log_t) for i, p in enumerate(problems)]
        found = paths.at(*_asked(paths, reached))
    ends = np.cumsum([r.sum() for r in reached])
    results = []
    for i, (problem, here, end) in enumerate(zip(problems, reached, ends, strict=True)):
        asked = _spread(found, slice(end - here.sum(), end), problem, here)
        results.append(_result(paths, i, asked, here, rtol))
    return results


def _asked(paths: Paths, reached: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Known steps, x and log t of every time that is reached."""
    times = [track.problem.log_t[here] for track, here in zip(paths.tracks, reached, strict=True)]
    return *paths.find(times), np.concatenate(times)


def _spread(found: Path, mine: slice, problem: Problem, reached: np.ndarray) -> Path:
    """One path at its times, without padding, NaN where they were not reached."""
    cut = _cut(found, mine, len(problem.a0))
    if not reached.all():
        full = {key: np.full((len(reached), *v.shape[1:]), np.nan) for key, v in cut.items()}
        for key, v in cut.items():
            full[key][reached] = v
        cut = full | {"log_t": problem.log_t}
    return Path(**cut)


def _cut(path: Path, rows: slice, n: int) -> dict[str, Any]:
    """Some rows of a path, and n of its columns."""
    return {key: value[rows, :n] if value.ndim == 2 else value[rows] for key, value in vars(path).items()}


def _result(paths: Paths, i: int, asked: Path, reached: np.ndarray, rtol: float) -> Result:
    track = paths.tracks[i]
    status, message = _status(paths, i, asked, reached)
    return result_from(
        track.problem.name,
        asked,
        status=status,
        message=message,
        distribution=declares_distribution(track.problem.scores),
        make_checks=partial(_checks, paths, i, asked, reached, rtol),
        stats={
            "engine": "path time",
            "steps": track.taken,
            "rejected": track.rejected,
            "evaluations": 13 * (track.taken + track.rejected) + 1,
            "kinks": [{"log_t": when, "key": key} for when, key in track.kinks],
            "internal_rtol": INTERNAL * rtol,
        },
    )


def _checks(paths: Paths, i: int, asked: Path, reached: np.ndarray, rtol: float) -> tuple[Any, ...]:
    """What theory says, at the knots and at the times asked for."""
    track, log_t = paths.tracks[i], paths.knots(i)
    problem = track.problem
    knots = paths.at_knots(i, int(np.searchsorted(log_t, problem.log_t[-1]).clip(max=len(log_t) - 1)))
    return check_path(
        joined(Path(**_cut(knots, slice(None), len(problem.a0))), asked.at(reached)),
        softmax=getattr(problem.scores, "name", "") == "softmax",
        logistic=problem.loss.linear,
        tied=False,
        tolerance=100 * rtol,
        norm=track.norm,
    )


def _status(paths: Paths, i: int, asked: Path, reached: np.ndarray) -> tuple[str, str]:
    track = paths.tracks[i]
    problem = track.problem
    if track.ended == "diverged" or not np.isfinite(asked.s[reached]).all():
        return "diverged", "The path leaves what numbers can hold; ask for earlier times, or scale V0 and a0."
    if track.ended == "kink":
        keys = ", ".join(str(key) for _, key in track.kinks)
        why = f"Coordinates {keys} start at a kink and may leave it or not: the path is not unique"
        return "kink", f"{why}; move a0 off the kink, or use a smooth score map."
    if not reached.all() and np.isneginf(track.log_t):
        why = "No step was short enough: the path starts too fast, as V0 is very large, or a0 very small"
        return "step limit", f"{why}. Scale them, or ask for a larger rtol."
    if not reached.all():
        why = f"The steps allowed were used up at log t = {track.log_t:.6g}; the path is stiff there"
        return "step limit", f"{why}. Ask for earlier times, or a larger rtol."
    if not track.where.any() and not asked.s[-1].any():
        return "converged", "No key has weight: nothing moves."
    tied = tied_lead(asked.s[-1], track.start, problem.a0)
    if tied:
        names = ", ".join(map(str, tied))
        return "ok", f"Coordinates {names} start tied and stay tied: they share the lead for ever."
    return "ok", "Every time asked for was reached."
