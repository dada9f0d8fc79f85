"""Paths while they are being followed, leg by leg, and the solved paths: states and clock as polynomials on steps."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from polariscope.flow.charts import Chart, chart_of
from polariscope.flow.clock import Steps
from polariscope.flow.problem import Problem
from polariscope.flow.result import Path
from polariscope.flow.ties import tie
from polariscope.scores import ScoreMap


@dataclass(eq=False)
class Track:
    """A path on its way: where it is, which keys take part, and how it ended.

    Attributes:
        problem, chart: what is followed; n of the problem may be smaller than that of the arrays, which are padded.
        where: keys that take part, (n,). sign: of the logits at the start.
        x, D, q: the last state. log_t: its time. margin: at which the current leg stops.
        ended: None on the way, else "ok", "step limit", "diverged", "kink".
        kinks: (log t, key) of every key that lost its weight.
    """

    problem: Problem
    chart: Chart
    where: np.ndarray
    sign: np.ndarray
    x: float
    D: np.ndarray
    q: np.ndarray
    margin: float
    norm: float
    log_t: float = -np.inf
    ended: str | None = None
    taken: int = 0
    rejected: int = 0
    kinks: list[tuple[float, int]] = field(default_factory=list)


def norm_of(problem: Problem) -> float:
    """‖β*‖."""
    return float(np.linalg.norm(problem.data["target"]))


def start_of(problem: Problem) -> np.ndarray:
    """u(0) = V0ᵀβ*, with exact ties kept exact."""
    return tie(problem.V0.T @ problem.data["target"], problem.a0)


def track_of(problem: Problem, n: int) -> Track:
    """A path at its start, in arrays of length n."""
    chart, norm = chart_of(problem.scores), norm_of(problem)

    def padded(values: np.ndarray, fill: float = 0) -> np.ndarray:
        return np.append(values, np.full(n - len(values), fill, dtype=values.dtype))

    where = padded(chart.active(problem.a0) & problem.where, fill=False)
    return Track(
        problem,
        chart,
        where,
        padded(np.sign(problem.a0)),
        0.0,
        padded(start_of(problem) / norm),
        padded(chart.enter(problem.a0)),
        float(problem.log_t[-1]) + 2 * np.log(norm),
        norm,
    )


def weights(chart: Chart, q: np.ndarray, where: np.ndarray) -> np.ndarray:
    """s of coordinates (…, n); a function of one's own is applied row by row."""
    if isinstance(chart.map, ScoreMap):
        return chart.weights(q, where)
    rows = jax.vmap(chart.map)(q.reshape(-1, q.shape[-1]))
    return np.asarray(rows).reshape(q.shape)


def states(chart: Chart, x: np.ndarray, D: np.ndarray, q: np.ndarray, where: np.ndarray) -> tuple[np.ndarray, ...]:
    """s, û and ẑ = ⟨û, s⟩ of states (…, n)."""
    s = weights(chart, q, where)
    u = D + np.expm1(x)[..., None] * s
    return s, u, (u * s).sum(-1)


@dataclass(frozen=True, eq=False)
class Solved:
    """One path: its steps with their clock, and Chebyshev coefficients of D and q on each.

    Attributes:
        steps: (m,). log_t: at the knots, (m + 1,), -inf at the first.
        D, q: (m, DEGREE + 1, n). where: keys that take part in each step, (m, n).
        track: how it went.
    """

    steps: Steps
    log_t: np.ndarray
    D: np.ndarray
    q: np.ndarray
    where: np.ndarray
    track: Track

    def find(self, log_t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The step in which each log t is reached, and x there; times outside the path give its ends."""
        ((step, x),) = find([self], [log_t])
        return step, x

    def path(self, step: np.ndarray, x: np.ndarray, log_t: np.ndarray) -> Path:
        """The path at points of its steps."""
        track, problem = self.track, self.track.problem
        basis, n, norm = self.steps.basis(step, x), len(problem.a0), self.track.norm
        D, q = (np.einsum("qk,qkn->qn", basis, c[step]) for c in (self.D, self.q))
        s, u, z = states(track.chart, x, D, q, self.where[step])
        s, u, z = s[:, :n], norm * u[:, :n], norm * z
        start = start_of(problem)
        moved = (u - start) / norm**2
        columns = np.sum(problem.V0**2, axis=0) + moved * (2 * start + norm**2 * moved)
        link = problem.loss.link
        assert link is not None
        log_objective = link.log_value(z)
        with np.errstate(over="ignore"):
            return Path(
                log_t=log_t, s=s, a=track.chart.leave(q, track.sign)[:, :n], u=u, objective=np.exp(log_objective),
                log_objective=log_objective, tau=np.expm1(x) / norm, column_norms=np.sqrt(np.maximum(columns, 0.0)),
            )  # fmt: skip


def find(paths: Sequence[Solved], times: Sequence[np.ndarray]) -> list[tuple[np.ndarray, np.ndarray]]:
    """For each path the step in which each log t is reached, and x there, all of them at once."""
    first = np.cumsum([0, *(len(p.steps.left) for p in paths)])
    capped = [np.minimum(log_t, p.log_t[-1]) for p, log_t in zip(paths, times, strict=True)]
    local = [
        np.clip(np.searchsorted(p.log_t, log_t) - 1, 0, len(p.log_t) - 2)
        for p, log_t in zip(paths, capped, strict=True)
    ]
    keys = ("left", "right", "flat", "growing", "log_scale")
    parts: dict[str, Any] = {key: np.concatenate([getattr(p.steps, key) for p in paths]) for key in keys}
    joined = Steps(**parts, link=paths[0].steps.link)
    start = np.concatenate([p.log_t[step] for p, step in zip(paths, local, strict=True)])
    steps = np.concatenate([step + offset for step, offset in zip(local, first[:-1], strict=True)])
    x = joined.find(steps, start, np.concatenate(capped))
    ends = np.cumsum([len(log_t) for log_t in times])[:-1]
    return list(zip(local, np.split(x, ends), strict=True))


def matter(rows: Sequence[Track], path: np.ndarray, steps: Steps) -> np.ndarray:
    """Which steps (m,), of rows ``path``, matter to the times wanted: they may hold one, or add to it noticeably.

    The margin grows along a path, so the time that a step takes lies between bounds from its ends. Steps that add less
    than e^-40 of a time, and steps after it, are not needed.
    """
    least, most = steps.bounds()
    found, edges = np.zeros(len(path), bool), np.searchsorted(path, np.arange(len(rows) + 1))
    for index, row in enumerate(rows):
        mine, wanted = slice(edges[index], edges[index + 1]), row.problem.log_t
        before = np.logaddexp.accumulate(np.append(row.log_t, least[mine]))[:-1]
        until = np.logaddexp.accumulate(np.append(row.log_t, most[mine]))[1:]
        following = np.append(wanted, np.inf)[np.searchsorted(wanted, before - 1.0)]
        found[mine] = following <= until + 40.0
    return found


@dataclass(frozen=True, eq=False)
class Pieces:
    """Steps of many paths with their states, as they come out of one round.

    Attributes:
        owner: which path each step belongs to, (m,).
        left, right, flat, growing: as in `polariscope.flow.clock.Steps`.
        D, q, where: as in `Solved`.
        log_t: at the right end of each step, (m,).
    """

    owner: np.ndarray
    left: np.ndarray
    right: np.ndarray
    flat: np.ndarray
    growing: np.ndarray
    D: np.ndarray
    q: np.ndarray
    where: np.ndarray
    log_t: np.ndarray


def solved(tracks: Sequence[Track], rounds: Sequence[Pieces]) -> list[Solved]:
    """The paths, each from its steps in all rounds."""
    fields: dict[str, Any] = {key: np.concatenate([getattr(r, key) for r in rounds]) for key in vars(rounds[0])}
    order = np.argsort(fields["owner"], kind="stable")
    fields = {key: value[order] for key, value in fields.items()}
    edges = np.searchsorted(fields["owner"], np.arange(len(tracks) + 1))
    found = []
    for index, track in enumerate(tracks):
        one = {key: value[edges[index] : edges[index + 1]] for key, value in fields.items()}
        assert track.problem.loss.link is not None
        log_scale = np.full(len(one["left"]), np.log(track.norm))
        steps = Steps(one["left"], one["right"], one["flat"], one["growing"], log_scale, track.problem.loss.link)
        found.append(Solved(steps, np.append(-np.inf, one["log_t"]), one["D"], one["q"], one["where"], track))
    return found
