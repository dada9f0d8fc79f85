"""Solving problems: which engine, in which groups, and what comes back."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from numbers import Real
from threading import Lock
from typing import Any

import jax

from polariscope.errors import InputError
from polariscope.flow import path_engine, time_engine
from polariscope.flow.compiling import by_kind
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
    telling = Lock()

    def solve_group(group: tuple[Any, list[int]]) -> None:
        engine, members = group
        with jax.enable_x64(True):
            for place, result in engine.solve_group([read[i] for i in members], rtol):
                with telling:
                    results[members[place]] = result
                    if progress is not None:
                        progress(len(results), len(read), result.name)

    groups = _groups(read)
    if len(groups) == 1:
        solve_group(groups[0])
    else:  # groups share nothing, and compiling them takes longer than solving them
        with ThreadPoolExecutor(max_workers=min(len(groups), os.cpu_count() or 1)) as pool:
            for done in [pool.submit(solve_group, group) for group in groups]:
                done.result()
    return [results[i] for i in range(len(read))]


def _groups(problems: Sequence[Problem]) -> list[tuple[Any, list[int]]]:
    """Indices of problems that share an engine and a compilation."""
    groups: dict[Any, tuple[Any, list[int]]] = {}
    for index, problem in enumerate(problems):
        engine = next(e for e in ENGINES if e.serves(problem))
        groups.setdefault((engine.__name__, engine.group_key(problem)), (engine, []))[1].append(index)
    return [
        (engine, [members[i] for i in part])
        for engine, members in groups.values()
        for part in by_kind([problems[i].scores for i in members])
    ]
