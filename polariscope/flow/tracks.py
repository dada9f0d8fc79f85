"""Paths while they are being followed, leg by leg."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import jax
import numpy as np

from polariscope.flow.chart import Chart, chart_of
from polariscope.flow.problem import Problem
from polariscope.flow.ties import tie
from polariscope.scores import ScoreMap

FIRST = 1e-2
"""The first step tried, in x."""


@dataclass(eq=False)
class Track:
    """A path on its way: where it is, which keys take part, and how it ended.

    Attributes:
        problem, chart: what is followed; n of the problem may be smaller than that of the arrays, which are padded.
        where: keys that take part, (n,). sign: of the logits at the start.
        start: u at the start, with exact ties kept exact, (n of the problem,). norm: ‖β*‖.
        across: norms of V's columns without their part along the target, which never change, (n of the problem,).
        x, D, q: the last state. log_t: its time. margin: at which the current leg stops. h: the step to try next.
        ended: None on the way, else "ok", "step limit", "diverged", "kink".
        shift: from where logits are measured.
        kinks: (log t, key) of every key that lost its weight.
    """

    problem: Problem
    chart: Chart
    where: np.ndarray
    sign: np.ndarray
    start: np.ndarray
    across: np.ndarray
    x: float
    D: np.ndarray
    q: np.ndarray
    margin: float
    norm: float
    shift: float = 0.0
    log_t: float = -np.inf
    h: float = FIRST
    ended: str | None = None
    taken: int = 0
    rejected: int = 0
    kinks: list[tuple[float, int]] = field(default_factory=list)


def norm_of(problem: Problem) -> float:
    """‖β*‖."""
    return float(np.linalg.norm(problem.data["target"]))


def track_of(problem: Problem, n: int) -> Track:
    """A path at its start, in arrays of length n."""
    chart, norm, a0 = chart_of(problem.scores), norm_of(problem), problem.a0
    u, seen = problem.V0.T @ problem.data["target"], problem.where
    shift = chart.shift(a0, seen)
    start = np.where(seen, tie(np.where(seen, u, 0.0), a0), u)  # however large the values of hidden keys are
    return Track(
        problem,
        chart,
        where=padded(chart.active(a0, seen), n),
        sign=padded(np.sign(a0), n),
        start=start,
        across=np.hypot.reduce(problem.V0 - np.outer(problem.data["target"] / norm, u / norm)),
        x=0.0,
        D=padded(start / norm, n),
        q=padded(chart.enter(a0 - shift), n),
        shift=shift,
        margin=float(problem.log_t[-1]) + 2 * np.log(norm),
        norm=norm,
        ended=None if np.isfinite(np.where(seen, u / norm, 0.0) ** 2).all() else "diverged",
    )


def padded(values: np.ndarray, n: int) -> np.ndarray:
    """Values of length n, the last ones 0 or False."""
    if len(values) == n:
        return values
    return np.concatenate([values, np.zeros(n - len(values), values.dtype)])


def weights(charts: Sequence[Chart], which: np.ndarray, q: np.ndarray, where: np.ndarray) -> np.ndarray:
    """s of coordinates q (m, …, n), of which each of the m has its chart; a function of one's own goes row by row."""
    s = np.empty(q.shape)
    for index, chart in enumerate(charts):
        mine = which == index if len(charts) > 1 else np.s_[:]
        if isinstance(chart.map, ScoreMap):
            s[mine] = chart.weights(q[mine], where[mine])
        else:
            rows = jax.vmap(chart.map)(q[mine].reshape(-1, q.shape[-1]))
            s[mine] = np.asarray(rows).reshape(q[mine].shape)
    return s


def elapsed(log_t: float, lengths: np.ndarray) -> np.ndarray:
    """log t at the ends of m steps from log t on, (…, m + 1), if they take times of logs ``lengths`` (…, m)."""
    every = np.empty((*lengths.shape[:-1], lengths.shape[-1] + 1))
    every[..., 0], every[..., 1:] = log_t, lengths
    return np.logaddexp.accumulate(every, axis=-1)


def matter(rows: Sequence[Track], owner: np.ndarray, least: np.ndarray, most: np.ndarray) -> np.ndarray:
    """Which steps (m,), of rows ``owner``, matter to the times wanted: they may hold one, or add to it noticeably.

    Steps that add less than e^-40 of a time, and steps after it, are not needed.

    Args:
        least, most: bounds of the log of the time that each step takes, (m,).
    """
    found, edges = np.zeros(len(owner), bool), np.searchsorted(owner, np.arange(len(rows) + 1))
    lengths = np.stack([least, most])
    for index, row in enumerate(rows):
        mine, wanted = slice(edges[index], edges[index + 1]), row.problem.log_t
        before, until = elapsed(row.log_t, lengths[:, mine])
        following = np.append(wanted, np.inf)[wanted.searchsorted(before[:-1] - 1.0)]
        until = until[1:]
        found[mine] = (following <= until + 40.0) | ~row.where.any()  # where nothing moves, one step goes on for ever
    return found
