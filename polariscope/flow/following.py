"""Paths followed side by side in path time, round by round: in each, every path moves by one smooth leg."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from polariscope.flow import path_time
from polariscope.flow.charts import Charts
from polariscope.flow.chunks import Chunk
from polariscope.flow.clock import Steps, bounds, coefficients, margin
from polariscope.flow.compiling import QUICK
from polariscope.flow.kinks import cut, leave, undecided
from polariscope.flow.paths import Paths, Pieces, in_order, standing
from polariscope.flow.problem import Problem
from polariscope.flow.tracks import Track, elapsed, matter, track_of, weights

MAX_STEPS = 512
"""Accepted and rejected steps of one leg; a leg that needs more goes on in the next round."""
MOST_STEPS = 4096
"""Steps of a whole path, beyond which it counts as too stiff."""
SIZE = 64
"""Steps refined by one call: what they need stays in a processor's cache."""

_integrate = jax.jit(path_time.integrate, static_argnames=("charts", "steps"), compiler_options=QUICK)


class Taken(NamedTuple):
    """The accepted steps of some paths, in arrays as long as the longest path needs.

    Attributes:
        x: the knots, (paths, knots). D, q: states there, (paths, knots, n).
        accepted, rejected: how many steps of each, (paths,). limited: whether they were all that are allowed, (paths,).
        h: the step that each would try next, (paths,).
    """

    x: np.ndarray
    D: np.ndarray
    q: np.ndarray
    accepted: np.ndarray
    rejected: np.ndarray
    limited: np.ndarray
    h: np.ndarray


_inside = jax.jit(path_time.inside, static_argnames="charts", compiler_options=QUICK)


def follow(problems: Sequence[Problem], rtol: float, chunk: Chunk, *, everywhere: bool = False) -> Paths:
    """The path of each problem, to the last time wanted of it or to where it ends before.

    Args:
        rtol: tolerance of each step, relative and absolute.
        chunk: how to follow them.
        everywhere: whether all steps are known inside; if not, those are that matter to the times asked for.
    """
    tracks = [track_of(p, chunk.length) for p in problems]
    for track in tracks:
        undecided(track)
    rounds: list[Pieces] = []
    lanes, todo = chunk.size if chunk.together else 1, np.arange(len(tracks))
    while len(todo := np.array([i for i in todo if tracks[i].ended is None], int)):
        found = _round([tracks[i] for i in todo], chunk.charts, rtol, lanes, everywhere)
        rounds += [] if found is None else [found._replace(owner=todo[found.owner])]
    begun = np.unique(np.concatenate([np.zeros(0, int), *(found.owner for found in rounds)]))
    if len(stay := np.setdiff1d(np.arange(len(tracks)), begun)):
        rounds.append(standing(tracks, stay))
    return Paths(tracks, chunk.charts, in_order(rounds))


def _round(rows: Sequence[Track], charts: Charts, rtol: float, lanes: int, everywhere: bool) -> Pieces | None:
    """One leg of every path: the tracks move on, what they did is returned; None if no step was taken."""
    taken, leg = _taken(rows, charts, rtol, lanes)
    owner, step = np.nonzero(np.arange(taken.x.shape[1] - 1) < taken.accepted[:, None])
    if not len(owner):
        for row in rows:
            row.ended = row.ended or "step limit"
        return None

    plain = _plain(leg, charts)

    def refine(owner: np.ndarray, step: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return _points(taken, owner, step, jax.tree.map(lambda v: v[owner], plain), charts)

    crossed = cut(rows, taken, refine)
    legs = jax.tree.map(lambda v: v[owner], leg)
    left, right = ((taken.x[owner, k], taken.D[owner, k], taken.q[owner, k]) for k in (step, step + 1))
    log_scale, link = np.log(legs.norm), rows[0].problem.loss.link
    assert link is not None
    margins = [margin(*_margin(charts, legs, D, q), x) for x, D, q in (left, right)]
    least, lengths = bounds(left[0], right[0], margins, log_scale, link)
    inside = matter(rows, owner, least, lengths) | everywhere
    D, q = refine(owner[inside], step[inside])
    flat, growing = (coefficients(v) for v in _margin(charts, jax.tree.map(lambda v: v[inside], legs), D, q))
    if inside.any():
        steps = Steps(left[0][inside], right[0][inside], flat, growing, log_scale[inside], link)
        lengths[inside] = steps.log_piece(np.arange(len(flat)), steps.right)
    log_t = _move(rows, taken, owner, lengths)
    for row, keys in crossed.items():
        leave(rows[row], keys)
    polynomials = (flat, growing, coefficients(D), coefficients(q))
    return Pieces(owner, left[0], right[0], log_t, left[1], left[2], legs.where, inside, *polynomials)


def _taken(rows: Sequence[Track], charts: Charts, rtol: float, lanes: int) -> tuple[Taken, path_time.Leg]:
    """The steps of one leg of every path, and the legs.

    Paths are followed ``lanes`` at a time (the last one repeated), so that later rounds compile nothing.
    """
    legs = _legs(rows, charts)
    start = [np.array([getattr(r, key) for r in rows]) for key in ("x", "D", "q", "h")]
    tried, arrays = [], (*start, _plain(legs, charts))
    for first in range(0, len(rows), lanes):
        index = np.minimum(np.arange(first, first + lanes), len(rows) - 1)
        some = jax.tree.map(lambda v, i=index: v[i], arrays)
        tried.append(jax.tree.map(np.asarray, _integrate(*some, rtol, charts=charts, steps=MAX_STEPS)))
    x, D, q, _ = start
    return _accepted(tried, x, np.concatenate([D, q], axis=1)), legs


def _plain(legs: path_time.Leg, charts: Charts) -> path_time.Leg:
    """Legs without a mask, if none hides a key now or later."""
    return legs._replace(where=None) if legs.where.all() and not charts.kinked else legs


def _accepted(tried: Sequence[path_time.Attempts], x: np.ndarray, y: np.ndarray) -> Taken:
    """The accepted ones of all attempts of paths that started at x (paths,), with states y (paths, 2n)."""
    rows, n = len(x), y.shape[1] // 2
    accepted = np.concatenate([t.accepted.sum(0) for t in tried])[:rows]
    knots = np.full((rows, accepted.max() + 1), np.nan)
    states = np.full((*knots.shape, 2 * n), np.nan)
    knots[:, 0], states[:, 0] = x, y
    first = 0
    for t in tried:
        lane, attempt = np.nonzero(t.accepted[: t.count].T[: rows - first])
        step = 1 + np.arange(len(lane)) - np.searchsorted(lane, lane)
        knots[first + lane, step] = t.x[attempt, lane]
        states[first + lane, step] = t.y[attempt, :, lane]
        first += t.accepted.shape[1]
    every = (np.concatenate([getattr(t, key) for t in tried])[:rows] for key in ("tried", "going", "h"))
    count, going, h = every
    return Taken(knots, states[..., :n], states[..., n:], accepted, count - accepted, going, h)


def _legs(rows: Sequence[Track], charts: Charts) -> path_time.Leg:
    return path_time.Leg(
        np.array([charts.members.index(r.problem.scores) for r in rows]),
        np.stack([r.where for r in rows]),
        np.array([r.norm for r in rows]),
        np.array([r.margin for r in rows]),
        np.full(len(rows), path_time.FURTHEST),
    )


def _margin(charts: Charts, leg: path_time.Leg, D: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Flat and growing part ‖β*‖⟨D, s⟩ and ‖β*‖⟨s, s⟩ of the margin z at states (m, …, n) of m legs."""
    between = tuple(range(1, q.ndim - 1))
    where = np.broadcast_to(np.expand_dims(leg.where, between), q.shape)
    s, norm = weights(charts.charts, leg.which, q, where), np.expand_dims(leg.norm, between)
    return norm * (D * s).sum(-1), norm * (s * s).sum(-1)


def _points(
    taken: Taken, owner: np.ndarray, step: np.ndarray, leg: Any, charts: Charts
) -> tuple[np.ndarray, np.ndarray]:
    """D and q at the Chebyshev points of steps, (steps, points, n), a few at a time."""
    left = (taken.x[owner, step], taken.x[owner, step + 1], taken.D[owner, step], taken.q[owner, step])
    found = []
    for first in range(0, len(owner), SIZE):
        index = np.minimum(np.arange(first, first + SIZE), len(owner) - 1)
        inner = _inside(*(v[index] for v in left), jax.tree.map(lambda v, i=index: v[i], leg), charts=charts)
        found.append([np.asarray(part)[: len(owner) - first] for part in inner])
    ends = ((taken.D[owner, step], taken.D[owner, step + 1]), (taken.q[owner, step], taken.q[owner, step + 1]))
    none = np.zeros((0, len(path_time.POINTS) - 2, taken.q.shape[-1]))
    return tuple(  # pyright: ignore[reportReturnType]
        np.concatenate([first[:, None], np.concatenate([none, *parts]), last[:, None]], axis=1)
        for (first, last), parts in zip(ends, zip(*found, strict=True) if found else ((), ()), strict=True)
    )


def _move(rows: Sequence[Track], taken: Taken, owner: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Puts every track at the end of its leg, says whether it ended there, and returns log t after each step.

    ``lengths``: log of the time that each step takes, of row ``owner``.
    """
    log_t, edges = np.empty(len(lengths)), np.searchsorted(owner, np.arange(len(rows) + 1))
    for index, row in enumerate(rows):
        mine, count = slice(edges[index], edges[index + 1]), int(taken.accepted[index])
        log_t[mine] = elapsed(row.log_t, lengths[mine])[1:]
        row.x, row.D, row.q = float(taken.x[index, count]), taken.D[index, count], taken.q[index, count]
        row.taken += count
        row.rejected += int(taken.rejected[index])
        row.h = float(taken.h[index])
        row.log_t = float(log_t[mine][-1]) if count else row.log_t
        _judge(row, count, limited=bool(taken.limited[index]))
    return log_t


def _judge(row: Track, count: int, *, limited: bool) -> None:
    """Whether a path has ended, and the margin to go on to if not."""
    short = row.problem.log_t[-1] - row.log_t
    if not np.isfinite([row.D, row.q]).all() or np.isnan(row.log_t):
        row.ended = "diverged"
    elif short <= 0 or (row.x >= path_time.FURTHEST and not row.where.any()):  # or nothing moves
        row.ended = "ok" if row.ended is None else row.ended
    elif count == 0 or row.x >= path_time.FURTHEST or row.taken + row.rejected >= MOST_STEPS:
        row.ended = "step limit"
    elif not limited and np.isfinite(short):
        row.margin += short + 1.0
