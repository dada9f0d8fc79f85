"""A flow's path as a curve: dense points of s, whatever the clock, and the distance of other points from it."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline, PchipInterpolator
from scipy.spatial import KDTree

from polariscope.errors import InputError
from polariscope.flow import path_engine
from polariscope.flow.charts import declares, declares_distribution
from polariscope.flow.ordinary_time import start_weights
from polariscope.flow.problem import read_problem
from polariscope.flow.solver import solve
from polariscope.flow.time_engine import LAST
from polariscope.flow.tracks import norm_of
from polariscope.scores import ScoreMap

FIRST, ROUNDS = 96, 10
"""Times of the first pass over a path, and how often they are refined."""
LARGEST_GAP = 0.005
"""Solved points whose weights differ by more are given one between them."""
POINTS, BETWEEN = 8192, 128
"""Points of the curve, at equal lengths; and points looked at around the nearest of them."""
FAR = 1e3
"""log t, for ‖β*‖ up to 1, to which a path of distributions is followed in path time: what is left is below 1e-5."""
LATTICE = 1e-3
"""Times are rounded to multiples of it in r, so that none are too close for a spline."""


@dataclass(frozen=True, eq=False)
class DensePath:
    """The curve t ↦ s(t), from t = 0 to the end that was solved.

    Attributes:
        r: log(1 + log(1 + t/t₀)) at the points, (p,). log_t0: log t₀.
        s: (p, n), at equal lengths along the curve in the maximum norm.
        spline: s as a function of r.
        spacing: the length of curve between neighbours: no place of it is further than half of that from a point.
        error: the largest error of the spline halfway between solved points, before those were added to it.
        status: of the flow that made it.
    """

    r: np.ndarray
    log_t0: float
    s: np.ndarray
    spline: Any
    spacing: float
    error: float
    status: str

    @property
    def log_t(self) -> np.ndarray:
        """log t of the points, (p,)."""
        return log_time(self.r, self.log_t0)

    @cached_property
    def tree(self) -> KDTree:
        """The points, for searching."""
        return KDTree(self.s)

    def nearest(self, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """min over t of max|s - s(t)| for points (m, n), and log t there, both (m,); NaN for NaN.

        The nearest of the points is found, then the curve between its neighbours is searched.
        """
        distance, where = np.full((2, len(s)), np.nan)
        for i in np.flatnonzero(np.isfinite(s).all(axis=1)):
            index = int(self.tree.query(s[i], p=np.inf)[1])
            low, high = self.r[max(index - 1, 0)], self.r[min(index + 1, len(self.r) - 1)]
            r = np.append(np.linspace(low, high, BETWEEN + 1), self.r[index])
            far = np.abs(self.spline(r) - s[i]).max(axis=1)
            best = int(far.argmin())
            distance[i], where[i] = far[best], log_time(r[best], self.log_t0)
        return distance, where


def log_time(r: Any, log_t0: float) -> Any:
    """log t of r = log(1 + log(1 + t/t₀))."""
    q = np.expm1(r)
    with np.errstate(divide="ignore"):
        return log_t0 + q + np.log(-np.expm1(-q))


def dense_path(problem: Mapping[str, Any], times: np.ndarray, beyond: float, rtol: float) -> DensePath:
    """The path of a problem's flow.

    Args:
        problem: as for `solve`; its times are not used.
        times: positive times of interest. The first is t₀, below which t is looked at linearly, above it in log t and
            then in log log t.
        beyond: the path is followed to this times the last of them, or to `FAR`.
    """
    read = read_problem(problem, t=[1.0])
    log_t0 = float(np.log(times.min()))
    log_last = min(float(np.log(beyond * times.max())), LAST - 1)
    if path_engine.serves(read) and declares_distribution(read.scores):
        log_last = max(log_last, FAR * max(1.0, norm_of(read)))
    r, s = np.zeros(1), start_weights(read)[None]
    seen = np.append(np.log(times), log_last) - log_t0  # log(t/t₀)
    wanted = np.log1p(np.logaddexp(0.0, seen))
    new = np.append(wanted, np.linspace(0, wanted[-1], FIRST))
    new = LATTICE * np.unique(np.maximum(1, np.round(new / LATTICE)))
    whole = solve(problem, log_t=log_time(new, log_t0), rtol=rtol)
    r, s = _merged(r, s, new, whole.s)
    if len(r) < 2:
        raise InputError(f"flow of {read.name}", got=whole.message, expected="a path to compare with", fix="see solve")
    for _ in range(ROUNDS):
        new = _middles(r)[np.abs(np.diff(s, axis=0)).max(axis=1) > LARGEST_GAP]
        if len(new) == 0:
            break
        r, s = _merged(r, s, new, solve(problem, log_t=log_time(new, log_t0), rtol=rtol).s)
    between = solve(problem, log_t=log_time(_middles(r), log_t0), rtol=rtol).s
    smooth = declares(read.scores, "smooth") or not isinstance(read.scores, ScoreMap)
    interpolant = CubicSpline if smooth else PchipInterpolator  # which does not overshoot at kinks
    error = float(np.abs(interpolant(r, s)(_middles(r)) - between).max())
    r, s = _merged(r, s, _middles(r), between)
    return _at_equal_lengths(r, interpolant(r, s), log_t0, error, whole.status)


def _middles(r: np.ndarray) -> np.ndarray:
    return (r[1:] + r[:-1]) / 2


def _merged(r: np.ndarray, s: np.ndarray, more: np.ndarray, more_s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All points in order, without those that were not reached."""
    good = np.isfinite(more_s).all(axis=1)
    order = np.argsort(np.append(r, more[good]))
    return np.append(r, more[good])[order], np.concatenate([s, more_s[good]])[order]


def _at_equal_lengths(r: np.ndarray, spline: Any, log_t0: float, error: float, status: str) -> DensePath:
    fine = np.unique(np.linspace(r[:-1], r[1:], 17))
    length = np.append(0.0, np.cumsum(np.abs(np.diff(spline(fine), axis=0)).max(axis=1)))
    at = np.interp(np.linspace(0, length[-1], POINTS), length, fine)
    points = spline(at)
    return DensePath(at, log_t0, points, spline, float(length[-1]) / (POINTS - 1), error, status)
