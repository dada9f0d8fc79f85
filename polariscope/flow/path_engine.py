"""The engine for the value model with a loss of the margin ⟨β*, β⟩: path time, leg by leg, its clock read off after."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import diffrax
import jax
import numpy as np
from jaxtyping import Array

from polariscope.flow import path_time
from polariscope.flow.charts import Charts, declares_distribution, masks
from polariscope.flow.checks import check_path
from polariscope.flow.clock import POINTS, Steps, coefficients
from polariscope.flow.compiling import QUICK, each, one_and_many, side_by_side
from polariscope.flow.kinks import cut, leave, undecided
from polariscope.flow.problem import Problem
from polariscope.flow.result import Path, Result, blanked, joined, result_from
from polariscope.flow.ties import tied_lead
from polariscope.flow.tracks import Pieces, Solved, Track, find, matter, solved, start_of, track_of, weights

MAX_STEPS = 512
"""Accepted and rejected steps of one leg; a leg that needs more goes on in the next round."""
MOST_STEPS = 4096
"""Steps of a whole path, beyond which it counts as too stiff."""
TOGETHER = 512
"""Paths followed side by side; memory goes with this times MAX_STEPS times n."""
SIZES = (64, 4096)
"""Steps refined by one call: the larger number where there are as many."""
INTERNAL = 0.1
"""The steps are taken with this times the accuracy asked for: the errors of the knots add up to about ten of them."""
FEW = 32
"""Up to so many problems, all are padded to the longest: one compilation costs more than some hidden keys."""


def serves(problem: Problem) -> bool:
    """Whether the path of this problem lies in the span of the target and does not depend on the clock."""
    return problem.model.name == "value" and problem.loss.linear


def group_key(problem: Problem) -> Any:
    """What may be followed together: one loss; score maps that can hide keys, or one length."""
    return problem.loss, None if masks(problem.scores) else len(problem.a0)


def solve_group(problems: Sequence[Problem], rtol: float) -> Iterator[tuple[int, Result]]:
    """Results of problems with one `group_key`, each with its place in the list."""
    lengths = [len(p.a0) for p in problems]
    pad = masks(problems[0].scores)
    few = len(problems) <= FEW
    sizes = [(max(lengths) if few else 1 << (n - 1).bit_length()) if pad else n for n in lengths]
    for size in sorted(set(sizes)):
        members = [i for i, s in enumerate(sizes) if s == size]
        for first in range(0, len(members), TOGETHER):
            chunk = members[first : first + TOGETHER]
            paths = follow([problems[i] for i in chunk], size, rtol, everywhere=False)
            places = find(paths, [path.track.problem.log_t for path in paths])
            yield from ((i, _result(path, place, rtol)) for i, path, place in zip(chunk, paths, places, strict=True))


_one, _many = one_and_many(path_time.integrate, ("charts", "max_steps"))


@partial(jax.jit, static_argnames="charts", compiler_options=QUICK)
def _inside(x: Array, to: Array, D: Array, q: Array, leg: path_time.Leg, charts: Charts) -> path_time.State:
    return jax.vmap(partial(path_time.inside, charts=charts))(x, to, D, q, leg)


def follow(problems: Sequence[Problem], n: int, rtol: float, *, everywhere: bool = True) -> list[Solved]:
    """The path of each problem, to the last time wanted of it or to where it ends before.

    ``everywhere``: whether all steps are known inside; if not, those are that matter to the times asked for.
    """
    charts = Charts.of(p.scores for p in problems)
    tracks = [track_of(p, n) for p in problems]
    for track in tracks:
        undecided(track)
    together = side_by_side(len(problems), len(charts.members))
    size = 1 << (len(problems) - 1).bit_length() if together else 1
    rounds: list[Pieces] = []
    todo = list(range(len(tracks)))
    while todo:
        rounds += _round(tracks, todo, charts, INTERNAL * rtol, size, everywhere)
        todo = [i for i in todo if tracks[i].ended is None]
    return solved(tracks, rounds)


def _round(
    tracks: Sequence[Track], todo: list[int], charts: Charts, rtol: float, size: int, everywhere: bool
) -> list[Pieces]:
    """One leg of every path in ``todo``: the tracks move on, what they did is returned.

    Paths are followed ``size`` at a time (the last one repeated), so that later rounds compile nothing.
    """
    rows = [tracks[i] for i in todo]
    filled = [*rows, *[rows[-1]] * (size - len(rows))]
    leg = _legs(filled, charts)
    start = [np.stack([getattr(r, key) for r in filled]) for key in ("x", "D", "q")]
    taken = each(_one, _many, (*start, leg), rtol, together=size > 1, charts=charts, max_steps=MAX_STEPS)
    taken = jax.tree.map(lambda v: np.array(v[: len(rows)]), taken)
    path, step = np.nonzero(np.arange(taken.x.shape[1] - 1) < taken.accepted[:, None])

    def refine(path: np.ndarray, step: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return _points(taken, path, step, jax.tree.map(lambda v: np.asarray(v)[path], leg), charts)

    if not len(path):
        for row in rows:
            row.ended = row.ended or "step limit"
        return []
    crossed = cut(rows, taken, refine)
    where = np.asarray(leg.where)[path]
    D, q = (_between(v[path, step], v[path, step + 1]) for v in (taken.D, taken.q))
    left, right = taken.x[path, step], taken.x[path, step + 1]
    inside = np.ones(len(path), bool)
    if not everywhere:
        inside = matter(rows, path, _clock_steps(rows, path, (left, right, *_margin(rows, path, D, q, where))))
    D[inside], q[inside] = refine(path[inside], step[inside]) if inside.any() else (D[:0], q[:0])
    flat, growing = _margin(rows, path, D, q, where)
    steps = _clock_steps(rows, path, (left, right, flat, growing))
    log_t = _move(rows, taken, path, np.where(inside, *_log_lengths(steps, inside)))
    for row, keys in crossed.items():
        leave(rows[row], keys)
    owner = np.array(todo)[path]
    return [Pieces(owner, left, right, flat, growing, coefficients(D), coefficients(q), where, log_t)]


def _between(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Values at the Chebyshev points of steps, (m, points, n), on straight lines between their ends."""
    return left[:, None] + POINTS[:, None] * (right - left)[:, None]


def _clock_steps(rows: Sequence[Track], path: np.ndarray, pieces: tuple[np.ndarray, ...]) -> Steps:
    link = rows[0].problem.loss.link
    assert link is not None
    left, right, flat, growing = pieces
    return Steps(left, right, flat, growing, np.log(np.array([r.norm for r in rows]))[path], link)


def _log_lengths(steps: Steps, inside: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """log of the time that steps take: exact for those ``inside``, and an upper bound for all."""
    _, most = steps.bounds()
    exact = most.copy()
    if inside.any():
        exact[inside] = steps.log_piece(np.flatnonzero(inside), steps.right[inside])
    return exact, most


def _margin(
    rows: Sequence[Track], path: np.ndarray, D: np.ndarray, q: np.ndarray, where: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients of the two parts ‖β*‖⟨D, s⟩ and ‖β*‖⟨s, s⟩ of z on steps of rows ``path``."""
    s = np.empty(q.shape)
    for chart in dict.fromkeys(r.chart for r in rows):
        mine = np.array([r.chart == chart for r in rows])[path]
        s[mine] = weights(chart, q[mine], where[mine, None])
    norm = np.array([r.norm for r in rows])[path, None]
    return coefficients(norm * (D * s).sum(-1)), coefficients(norm * (s * s).sum(-1))


def _legs(rows: Sequence[Track], charts: Charts) -> path_time.Leg:
    return path_time.Leg(
        np.array([charts.members.index(r.problem.scores) for r in rows]),
        np.stack([r.where for r in rows]),
        np.array([r.norm for r in rows]),
        np.array([r.margin for r in rows]),
        np.full(len(rows), path_time.FURTHEST),
    )


def _points(taken: Any, path: np.ndarray, step: np.ndarray, leg: Any, charts: Charts) -> tuple[np.ndarray, np.ndarray]:
    """D and q at the Chebyshev points of steps, (steps, points, n), in chunks of one of two sizes."""
    left = (taken.x[path, step], taken.x[path, step + 1], taken.D[path, step], taken.q[path, step])
    chunk = SIZES[len(path) > SIZES[0] * 16]
    found = []
    for first in range(0, len(path), chunk):
        index = np.minimum(np.arange(first, first + chunk), len(path) - 1)
        inner = _inside(*(v[index] for v in left), jax.tree.map(lambda v, i=index: v[i], leg), charts=charts)
        found.append([np.asarray(part)[: len(path) - first] for part in inner])
    inner_D, inner_q = (np.concatenate(parts) for parts in zip(*found, strict=True))

    def with_ends(knots: np.ndarray, inner: np.ndarray) -> np.ndarray:
        return np.concatenate([knots[path, step][:, None], inner, knots[path, step + 1][:, None]], axis=1)

    return with_ends(taken.D, inner_D), with_ends(taken.q, inner_q)


def _move(rows: Sequence[Track], taken: Any, path: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Puts every track at the end of its leg, says whether it ended there, and returns log t after each step.

    ``lengths``: log of the time that each step takes, of row ``path``.
    """
    log_t, edges = np.empty(len(lengths)), np.searchsorted(path, np.arange(len(rows) + 1))
    for index, row in enumerate(rows):
        mine, count = slice(edges[index], edges[index + 1]), int(taken.accepted[index])
        log_t[mine] = np.logaddexp.accumulate(np.append(row.log_t, lengths[mine]))[1:]
        row.x, row.D, row.q = float(taken.x[index, count]), taken.D[index, count], taken.q[index, count]
        row.taken += count
        row.rejected += int(taken.stats["num_rejected_steps"][index])
        row.log_t = float(log_t[mine][-1]) if count else row.log_t
        _judge(row, count, limited=bool(taken.result[index] == diffrax.RESULTS.max_steps_reached._value))
    return log_t


def _judge(row: Track, count: int, *, limited: bool) -> None:
    """Whether a path has ended, and the margin to go on to if not."""
    short = row.problem.log_t[-1] - row.log_t
    if not np.isfinite([row.D, row.q]).all() or np.isnan(row.log_t):
        row.ended = "diverged"
    elif short <= 0:
        row.ended = "ok" if row.ended is None else row.ended
    elif count == 0 or row.x >= path_time.FURTHEST or row.taken + row.rejected >= MOST_STEPS:
        row.ended = "step limit"
    elif not limited and np.isfinite(short):
        row.margin += short + 1.0


def _result(path: Solved, place: tuple[np.ndarray, np.ndarray], rtol: float) -> Result:
    track = path.track
    problem = track.problem
    reached = (problem.log_t <= path.log_t[-1]) & (track.ended != "kink")
    asked = blanked(path.path(*place, problem.log_t), reached)
    status, message = _status(path, asked, reached)
    return result_from(
        problem.name,
        asked,
        status=status,
        message=message,
        distribution=declares_distribution(problem.scores),
        make_checks=lambda: _checks(path, asked.at(reached), rtol),
        stats={
            "engine": "path time",
            "steps": track.taken,
            "rejected": track.rejected,
            "evaluations": 13 * (track.taken + track.rejected) + 1,
            "kinks": [{"log_t": when, "key": key} for when, key in track.kinks],
            "internal_rtol": INTERNAL * rtol,
        },
    )


def _checks(path: Solved, asked: Path, rtol: float) -> tuple[Any, ...]:
    """What theory says, at the knots and at the times asked for."""
    problem = path.track.problem
    steps = np.arange(np.searchsorted(path.log_t, problem.log_t[-1]).clip(max=len(path.log_t) - 1))
    knots = path.path(steps, path.steps.left[steps], path.log_t[steps])
    return check_path(
        joined(knots, asked),
        softmax=getattr(problem.scores, "name", "") == "softmax",
        logistic=problem.loss.linear,
        tied=False,
        tolerance=100 * rtol,
        norm=path.track.norm,
    )


def _status(path: Solved, asked: Path, reached: np.ndarray) -> tuple[str, str]:
    track, last = path.track, path.log_t[-1]
    problem = track.problem
    if track.ended == "diverged" or not np.isfinite(asked.at(reached).s).all():
        return "diverged", "The path leaves what numbers can hold."
    if track.ended == "kink":
        keys = ", ".join(str(key) for _, key in track.kinks)
        return "kink", f"Coordinates {keys} start at a kink and may leave it or not: the path is not unique."
    if not reached.all():
        return "step limit", f"The steps allowed were used up at log t = {last:.6g}; the path is stiff there."
    if not track.where.any():
        return "converged", "No key has weight: nothing moves."
    tied = tied_lead(asked.s[-1], start_of(problem), problem.a0)
    if tied:
        return "ok", f"Coordinates {', '.join(map(str, tied))} start tied and stay tied: they share the lead for ever."
    return "ok", "Every time asked for was reached."
