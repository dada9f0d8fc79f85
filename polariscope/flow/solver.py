"""Solving problems: which engine, in which groups, and what comes back."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from numbers import Real
from threading import Lock
from typing import Any, NamedTuple

import jax

from polariscope.errors import InputError
from polariscope.flow import path_engine, time_engine
from polariscope.flow.chunks import Chunk
from polariscope.flow.compiling import AT_ONCE, by_kind, make_room
from polariscope.flow.problem import Problem, read_problems
from polariscope.flow.result import Result

Progress = Callable[[int, int, str], None]
ENGINES = (path_engine, time_engine)
"""In order of preference: the first that serves a problem solves it."""


def solve(problem: Mapping[str, Any], t: Any = None, log_t: Any = None, rtol: float = 1e-9) -> Result:
    """Gradient flow of L(V, a) = ℓ(V σ(a)):  V̇ = -∇ℓ(β) sᵀ,  ȧ = -J(a)ᵀ Vᵀ ∇ℓ(β).

    Args:
        problem: mapping with model, scores, loss, V0 (d, n), a0 (n,), what the loss needs (target | X, y | p), and t
            or log_t. ``scores`` and ``loss`` may be JAX functions of one's own.
        t: times (k,), instead of those in the problem.
        log_t: the same as log t, for times that a float cannot hold.
        rtol: accuracy of s wanted; the engines integrate with a smaller tolerance.

    Returns:
        the flow at these times, with a status, checks and statistics.

    Raises:
        InputError: for a problem that cannot be read.

    Example:
        >>> solve(preset("logistic"), log_t=[1e6]).s.max() > 1 - 1e-11
        True
    """
    return solve_many([problem], t=t, log_t=log_t, rtol=rtol)[0]


def solve_many(
    problems: Iterable[Mapping[str, Any]],
    t: Any = None,
    log_t: Any = None,
    rtol: float = 1e-9,
    progress: Progress | None = None,
) -> list[Result]:
    """`solve` for a list. Problems of one kind and shape are compiled once and integrated side by side.

    Args:
        problems, t, log_t, rtol: as in `solve`; the times, if given, are for all.
        progress: called with (done, total, name) after each.
    """
    if not isinstance(rtol, Real) or not 1e-13 <= rtol <= 1e-2:
        raise InputError("rtol", got=repr(rtol), expected="1e-13 to 1e-2", fix="try 1e-9")
    read = read_problems(list(problems), t=t, log_t=log_t)
    results: dict[int, Result] = {}
    telling, devices = Lock(), count()

    def solve_one(job: Job) -> None:
        device = jax.devices()[next(devices) % jax.device_count()]
        with jax.enable_x64(True), jax.default_device(device):
            found = job.engine.solve_chunk([read[i] for i in job.members], job.chunk, rtol)
        for place, result in zip(job.members, found, strict=True):
            with telling:
                results[place] = result
                if progress is not None:
                    progress(len(results), len(read), result.name)

    kinds = _jobs(read)
    for some in (list(kinds)[first : first + AT_ONCE] for first in range(0, len(kinds), AT_ONCE)):
        new = make_room(some)  # the first job of each compiles what its others use
        _side_by_side(solve_one, [kinds[kind][0] for kind in new])
        _side_by_side(solve_one, [job for kind in some for job in kinds[kind][kind in new :]])
    return [results[i] for i in range(len(read))]


class Job(NamedTuple):
    """One chunk of flows; ``members`` are their places among all problems."""

    engine: Any
    members: list[int]
    chunk: Chunk


def _jobs(problems: Sequence[Problem]) -> dict[Any, list[Job]]:
    """All chunks, by what one compilation serves."""
    groups: dict[Any, tuple[Any, list[int]]] = {}
    for index, problem in enumerate(problems):
        engine = next(e for e in ENGINES if e.serves(problem))
        groups.setdefault((engine.__name__, engine.group_key(problem)), (engine, []))[1].append(index)
    kinds: dict[Any, list[Job]] = {}
    for key, (engine, members) in groups.items():
        for part in by_kind([problems[i].scores for i in members]):
            group = [members[i] for i in part]
            for chunk in engine.chunks([problems[i] for i in group]):
                job = Job(engine, [group[i] for i in chunk.members], chunk)
                kinds.setdefault((key, *chunk[1:]), []).append(job)
    return kinds


def _side_by_side(solve: Callable[[Job], None], jobs: Sequence[Job]) -> None:
    """All jobs, on as many threads as there are processors; they share nothing."""
    workers = min(len(jobs), max(os.cpu_count() or 1, jax.device_count()))
    if workers < 2:
        for job in jobs:
            solve(job)
        return
    with ThreadPoolExecutor(max_workers=workers) as pool:
        for done in [pool.submit(solve, job) for job in jobs]:
            done.result()
