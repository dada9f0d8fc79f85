"""Solved paths, many in one set of arrays: knots with their times, and polynomials on the steps that matter."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from polariscope.flow.charts import Charts
from polariscope.flow.chunks import MEMORY
from polariscope.flow.clock import DEGREE, Steps
from polariscope.flow.result import Path, concatenated
from polariscope.flow.tracks import Track, padded, weights


class Pieces(NamedTuple):
    """Steps of many paths, as they come out of one round.

    Attributes:
        owner: the path each step belongs to, (m,).
        right, log_t: x and log t at the right end of each, (m,).
        left, D, q: x and the states at the left end, (m,) and (m, n). where: keys that take part, (m, n).
        inside: whether the states inside a step are known, (m,). k of them are.
        flat, growing: as in `Steps`, (k, DEGREE + 1). inner_D, inner_q: Chebyshev coefficients, (k, DEGREE + 1, n).
    """

    owner: np.ndarray
    left: np.ndarray
    right: np.ndarray
    log_t: np.ndarray
    D: np.ndarray
    q: np.ndarray
    where: np.ndarray
    inside: np.ndarray
    flat: np.ndarray
    growing: np.ndarray
    inner_D: np.ndarray
    inner_q: np.ndarray


INNER = ("flat", "growing", "inner_D", "inner_q")


def in_order(rounds: Sequence[Pieces]) -> Pieces:
    """The steps of all rounds, path by path."""
    if len(rounds) == 1:
        return rounds[0]  # a round goes through its paths in order
    every = Pieces(*map(np.concatenate, zip(*rounds, strict=True)))
    order, inner = (np.argsort(owner, kind="stable") for owner in (every.owner, every.owner[every.inside]))
    pairs = zip(Pieces._fields, every, strict=True)
    return Pieces(*(value[inner if name in INNER else order] for name, value in pairs))


def standing(tracks: Sequence[Track], owner: np.ndarray) -> Pieces:
    """A step of no length for each of the paths ``owner`` (m,), which take none, at their start."""
    D, q, where = (np.stack([getattr(tracks[i], name) for i in owner]) for name in ("D", "q", "where"))
    x, flat = np.zeros(len(owner)), np.zeros((len(owner), DEGREE + 1))
    still = (np.concatenate([v[:, None], np.zeros((len(v), DEGREE, v.shape[1]))], axis=1) for v in (D, q))
    return Pieces(owner, x, x, x - np.inf, D, q, where, np.ones(len(owner), bool), flat, flat, *still)


@dataclass(frozen=True, eq=False)
class Paths:
    """Paths with one loss, in arrays of length n, padded where a problem is shorter.

    Args:
        tracks: how they went. charts: of their score maps. pieces: their steps, path by path.
    """

    tracks: Sequence[Track]
    charts: Charts
    pieces: Pieces

    @cached_property
    def first(self) -> np.ndarray:
        """Where the steps of each path begin, and the end, (paths + 1,)."""
        return np.searchsorted(self.pieces.owner, np.arange(len(self.tracks) + 1))

    @cached_property
    def place(self) -> np.ndarray:
        """Of each step among those that are known inside, (m,)."""
        return np.cumsum(self.pieces.inside) - 1

    @cached_property
    def steps(self) -> Steps:
        """The k steps that are known inside, with their clock."""
        pieces, link = self.pieces, self.tracks[0].problem.loss.link
        assert link is not None
        owner = pieces.owner[pieces.inside]
        ends = (pieces.left[pieces.inside], pieces.right[pieces.inside])
        return Steps(*ends, pieces.flat, pieces.growing, np.log(self._norms)[owner], link)

    def knots(self, path: int) -> np.ndarray:
        """log t at the knots of one path, (steps + 1,), -inf at the first."""
        return np.append(-np.inf, self.pieces.log_t[self.first[path] : self.first[path + 1]])

    def reached(self, path: int, log_t: np.ndarray) -> np.ndarray:
        """Whether the path reaches times (k,); one on which nothing moves any more reaches all."""
        track = self.tracks[path]
        still = track.ended == "ok" and not track.where.any()
        return (log_t <= self.knots(path)[-1]) | still

    def find(self, times: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Where times of each path are reached: place among the known steps, and x, both (times of all paths,).

        Args:
            times: as log t, for each path; not later than its last knot, unless nothing moves there.
        """
        start, step = [], []
        for index, log_t in enumerate(times):
            if len(log_t):
                knots = self.knots(index)
                local = np.clip(np.searchsorted(knots, log_t) - 1, 0, len(knots) - 2)
                start.append(knots[local])
                step.append(local + self.first[index])
        if not step:
            return np.zeros(0, int), np.zeros(0)
        steps = np.concatenate(step)
        assert self.pieces.inside[steps].all()
        inner = self.place[steps]
        wanted = np.minimum(np.concatenate([log_t for log_t in times if len(log_t)]), self.pieces.log_t[steps])
        x = self.steps.find(inner, np.concatenate(start), self.pieces.log_t[steps], wanted)
        return inner, x

    def at(self, inner: np.ndarray, x: np.ndarray, log_t: np.ndarray) -> Path:
        """The paths at points of known steps (m,); columns are padded. A few at a time, however many there are."""
        few = max(1, MEMORY // (256 * (DEGREE + 1) * self.pieces.q.shape[1]))
        parts = [self._at(inner[i : i + few], x[i : i + few], log_t[i : i + few]) for i in range(0, len(x), few)]
        return concatenated(parts) if parts else self._at(inner, x, log_t)

    def _at(self, inner: np.ndarray, x: np.ndarray, log_t: np.ndarray) -> Path:
        basis = self.steps.basis(inner, x)[:, None]
        D, q = ((basis @ c[inner])[:, 0] for c in (self.pieces.inner_D, self.pieces.inner_q))
        step = np.flatnonzero(self.pieces.inside)[inner]
        path = self._path(step, x, D, q, log_t)
        ends = self._ends[self.pieces.owner[step]]
        with np.errstate(over="ignore", invalid="ignore"):
            late = np.where(log_t > ends, log_t - ends, 0.0)  # τ grows with t where nothing moves
            return replace(path, tau=path.tau * np.exp(late))

    def at_knots(self, path: int, count: int) -> Path:
        """One path at the left ends of its first steps."""
        step = self.first[path] + np.arange(count)
        return self._path(
            step, self.pieces.left[step], self.pieces.D[step], self.pieces.q[step], self.knots(path)[:count]
        )

    def _path(self, step: np.ndarray, x: np.ndarray, D: np.ndarray, q: np.ndarray, log_t: np.ndarray) -> Path:
        owner, where = self.pieces.owner[step], self.pieces.where[step]
        which, norm = self._which[owner], self._norms[owner, None]
        s, a, sign = weights(self.charts.charts, which, q, where), np.empty(q.shape), self._signs[owner]
        for index, chart in enumerate(self.charts.charts):
            a[which == index] = chart.leave(q[which == index], sign[which == index])
        a += self._shifts[owner, None]
        u = D + np.expm1(x)[:, None] * s
        log_objective = self.steps.link.log_value(norm[:, 0] * (u * s).sum(-1))
        with np.errstate(over="ignore"):
            return Path(
                log_t=log_t, s=s, a=a, u=norm * u, objective=np.exp(log_objective), log_objective=log_objective,
                column_norms=np.hypot(self._across[owner], u), tau=np.expm1(x) / norm[:, 0],
            )  # fmt: skip

    @cached_property
    def _norms(self) -> np.ndarray:
        return np.array([track.norm for track in self.tracks])

    @cached_property
    def _which(self) -> np.ndarray:
        return np.array([self.charts.members.index(track.problem.scores) for track in self.tracks])

    @cached_property
    def _shifts(self) -> np.ndarray:
        return np.array([track.shift for track in self.tracks])

    @cached_property
    def _signs(self) -> np.ndarray:
        return np.stack([track.sign for track in self.tracks])

    @cached_property
    def _across(self) -> np.ndarray:
        return np.stack([padded(track.across, len(track.q)) for track in self.tracks])

    @cached_property
    def _ends(self) -> np.ndarray:
        """log t at the last knot of each path."""
        return np.append(-np.inf, self.pieces.log_t)[self.first[1:]]
