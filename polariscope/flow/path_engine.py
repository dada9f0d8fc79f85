"""The engine for the value model with a loss of the margin: path time, with its clock read off afterwards."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import diffrax
import jax
import numpy as np
from jaxtyping import Array

from polariscope.flow import path_time
from polariscope.flow.checks import check_path
from polariscope.flow.clock import POINTS, Clock, clock_of, coefficients
from polariscope.flow.compiling import QUICK
from polariscope.flow.losses.logistic import log_softplus
from polariscope.flow.maps import Maps, declares_distribution, may_be_smooth, weights
from polariscope.flow.problem import Problem
from polariscope.flow.result import Path, Result, blanked, joined, result_from
from polariscope.flow.ties import tie, tied_lead

MAX_STEPS = (512, 4096)
"""Tried in turn, accepted and rejected steps together; the second only for maps without kinks, where it can help."""
CHUNK = 64
"""Steps of all paths together that are refined by one call."""
INTERNAL = 0.1
"""The steps are taken with this times the accuracy asked for: the errors of the knots add up to about ten of them."""


@dataclass(frozen=True, eq=False)
class Solved:
    """A path with its clock: Chebyshev coefficients of the states on every step."""

    clock: Clock
    D: np.ndarray
    a: np.ndarray
    limited: bool
    stats: dict[str, Any]

    def path(self, problem: Problem, step: np.ndarray, x: np.ndarray, log_t: np.ndarray) -> Path:
        """The path at points of its steps."""
        basis, norm = self.clock.basis(step, x), self.clock.norm
        D, a = (np.einsum("qk,qkn->qn", basis, c[step]) for c in (self.D, self.a))
        s, u, z = states(problem.scores, x, D, a)
        u, z = norm * u, norm * z
        moved = (u - start_of(problem)) / norm**2
        columns = np.sum(problem.V0**2, axis=0) + moved * (2 * start_of(problem) + norm**2 * moved)
        return Path(
            log_t=log_t, s=s, a=a, u=u, objective=np.logaddexp(0.0, -z),
            log_objective=log_softplus(-z), tau=np.expm1(x) / norm,
            column_norms=np.sqrt(np.maximum(columns, 0.0)),
        )  # fmt: skip


def states(scores: Any, x: np.ndarray, D: np.ndarray, a: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """s, û and ẑ = ⟨û, s⟩ of states (…, n)."""
    s = weights(scores, a)
    u = D + np.expm1(x)[..., None] * s
    return s, u, (u * s).sum(-1)


def serves(problem: Problem) -> bool:
    """Whether the path of this problem does not depend on the clock."""
    return problem.model.name == "value" and problem.loss.clock == "path"


def group_key(problem: Problem) -> int:
    """What one compilation serves: n."""
    return len(problem.a0)


@partial(jax.jit, static_argnames=("maps", "max_steps"), compiler_options=QUICK)
def _integrate(
    u0: Array, a0: Array, norm: Array, log_t: Array, which: Array, rtol: float, maps: Maps, max_steps: int
) -> path_time.Steps:
    one = partial(path_time.integrate, maps=maps, rtol=rtol, max_steps=max_steps)
    return jax.vmap(one)(u0, a0, norm, log_t, which)


@partial(jax.jit, static_argnames="maps", compiler_options=QUICK)
def _inside(x: Array, to: Array, D: Array, a: Array, which: Array, maps: Maps) -> path_time.State:
    return jax.vmap(partial(path_time.inside, maps=maps))(x, to, D, a, which)


def solve_group(problems: Sequence[Problem], rtol: float) -> Iterator[Result]:
    """Results of problems with one `group_key`."""
    maps = Maps(tuple(dict.fromkeys(p.scores for p in problems)))
    for problem, solved in zip(problems, _solved(problems, maps, rtol), strict=True):
        yield _result(problem, solved, rtol)


def _solved(problems: Sequence[Problem], maps: Maps, rtol: float) -> list[Solved]:
    """Each problem's path, with more steps, or integrated further, for those that did not get far enough."""
    found: dict[int, Solved] = {}
    slack, todo, tier = np.zeros(len(problems)), list(range(len(problems))), 0
    size = 1 << (len(problems) - 1).bit_length()
    for _ in range(8):
        batch = _batch([problems[i] for i in todo], slack[todo], maps, rtol, MAX_STEPS[tier], size)
        found.update(zip(todo, batch, strict=True))
        last = tier + 1 == len(MAX_STEPS) or not any(may_be_smooth(problems[i].scores) for i in todo)
        short = {i: problems[i].log_t[-1] - found[i].clock.log_t[-1] for i in todo}
        todo = [
            i
            for i in todo
            if 0 < short[i] < np.inf and not (found[i].limited and (last or not may_be_smooth(problems[i].scores)))
        ]
        for i in todo:
            slack[i] += 0.0 if found[i].limited else short[i] + 1.0
        tier += not last and any(found[i].limited for i in todo)
        if not todo:
            break
    return [found[i] for i in range(len(problems))]


def _batch(
    problems: Sequence[Problem], slack: np.ndarray, maps: Maps, rtol: float, max_steps: int, size: int
) -> list[Solved]:
    """Paths side by side, ``size`` of them (the last one repeated), so that a second try compiles nothing."""
    rows = [*problems, *[problems[-1]] * (size - len(problems))]
    which = np.array([maps.members.index(p.scores) for p in rows])
    steps = _integrate(
        np.stack([start_of(p) for p in rows]),
        np.stack([p.a0 for p in rows]),
        np.array([norm_of(p) for p in rows]),
        np.array([p.log_t[-1] for p in rows]) + np.append(slack, np.full(size - len(slack), slack[-1])),
        which,
        INTERNAL * rtol,
        maps,
        max_steps,
    )
    steps = jax.tree.map(lambda leaf: np.asarray(leaf)[: len(problems)], steps)
    ends = np.cumsum(steps.accepted)
    points = [np.split(c, ends[:-1]) for c in _points(steps, which, maps)]
    each = [jax.tree.map(lambda leaf, i=i: leaf[i], steps) for i in range(len(problems))]
    return [_read_off(*parts) for parts in zip(problems, each, *points, strict=True)]


def _points(steps: Any, which: np.ndarray, maps: Maps) -> tuple[np.ndarray, np.ndarray]:
    """D and a at the Chebyshev points of every real step of every path, (steps, points, n), in `CHUNK`s of steps."""
    path, step = np.nonzero(np.arange(steps.x.shape[1]) < steps.accepted[:, None])
    left = (steps.x[path, step], steps.x[path, step + 1], steps.D[path, step], steps.a[path, step], which[path])
    found = []
    for first in range(0, len(path), CHUNK):
        index = np.minimum(np.arange(first, first + CHUNK), len(path) - 1)
        inner = _inside(*(values[index] for values in left), maps=maps)
        found.append([np.asarray(part)[: len(path) - first] for part in inner])
    inner_D, inner_a = (np.concatenate(parts) for parts in zip(*found, strict=True))

    def with_ends(knots: np.ndarray, inner: np.ndarray) -> np.ndarray:
        return np.concatenate([knots[path, step][:, None], inner, knots[path, step + 1][:, None]], axis=1)

    return with_ends(steps.D, inner_D), with_ends(steps.a, inner_a)


def _read_off(problem: Problem, steps: Any, D: np.ndarray, a: np.ndarray) -> Solved:
    """The clock of a path from its states at the Chebyshev points of its steps."""
    count, norm = int(steps.accepted), norm_of(problem)
    x = steps.x[: count + 1]
    at = x[:-1, None] + np.diff(x)[:, None] * POINTS
    _, _, z = states(problem.scores, at, D, a)
    stats = {
        "engine": "path time",
        "steps": count,
        "rejected": int(steps.stats["num_rejected_steps"]),
        "evaluations": 13 * int(steps.stats["num_steps"]) + 1,
    }
    limited = bool(steps.result == diffrax.RESULTS.max_steps_reached._value)
    return Solved(clock_of(x, coefficients(norm * z), norm), coefficients(D), coefficients(a), limited, stats)


def norm_of(problem: Problem) -> float:
    """‖β*‖."""
    return float(np.linalg.norm(problem.data["target"]))


def start_of(problem: Problem) -> np.ndarray:
    """u(0) = V0ᵀβ*, with exact ties kept exact."""
    return tie(problem.V0.T @ problem.data["target"], problem.a0)


def _result(problem: Problem, solved: Solved, rtol: float) -> Result:
    clock = solved.clock
    reached = problem.log_t <= clock.log_t[-1]
    asked = blanked(solved.path(problem, *clock.find(problem.log_t), problem.log_t), reached)
    last = np.searchsorted(clock.log_t, problem.log_t[-1])
    steps = np.arange(min(last, len(clock.z)))
    knots = solved.path(problem, steps, clock.x[steps], clock.log_t[steps])
    status, message = _status(problem, solved, asked, reached)
    softmax = getattr(problem.scores, "name", "") == "softmax"
    return result_from(
        problem.name,
        asked,
        status=status,
        message=message,
        distribution=declares_distribution(problem.scores),
        checks=check_path(
            joined(knots, asked.at(reached)),
            softmax=softmax,
            logistic=True,
            tied=False,
            tolerance=100 * rtol,
            norm=norm_of(problem),
        ),
        stats={**solved.stats, "internal_rtol": INTERNAL * rtol},
    )


def _status(problem: Problem, solved: Solved, asked: Path, reached: np.ndarray) -> tuple[str, str]:
    last = solved.clock.log_t[-1]
    if not np.isfinite(last) or not np.isfinite(asked.at(reached).s).all():
        return "diverged", "The path leaves what numbers can hold."
    if not reached.all():
        return (
            "step limit",
            f"The steps allowed were used up at log t = {last:.6g}; the path is stiff or has a kink there.",
        )
    tied = tied_lead(asked.s[-1], start_of(problem), problem.a0)
    if tied:
        return "ok", f"Coordinates {', '.join(map(str, tied))} start tied and stay tied: they share the lead for ever."
    return "ok", "Every time asked for was reached."
