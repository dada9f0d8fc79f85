"""Phase diagrams: how random flows end, over two axes and many seeds."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from polariscope import scores as score_maps
from polariscope.flow.cell import MOST_NUMBERS, Cell
from polariscope.flow.charts import declares_distribution
from polariscope.flow.grid_cells import LEADERS, NO_START, grid_summary
from polariscope.flow.grid_folder import GridFolder
from polariscope.flow.grid_spec import GridSpec, read_spec
from polariscope.flow.outcomes import winner_of
from polariscope.flow.problem import NoStart, Problem, read_problem
from polariscope.flow.result import Result
from polariscope.flow.solver import Progress, solve_many
from polariscope.flow.winners import initial_leaders

CHUNK = 64
"""Flows that are solved, and saved, at a time, unless V0 is large."""
MOST_MAPS = 16
"""Score maps in such a portion: each makes the program that is compiled longer."""
_TYPES = {
    "seed": "int64",
    "status": "str",
    "log_t": "float64",
    "reached": "bool",
    "distribution": "bool",
    "entropy": "float64",
    "normalized_entropy": "float64",
    "max_s": "float64",
    "log_objective": "float64",
    "winner": "Int64",
    "u_leader": "Int64",
    "s_leader": "Int64",
    "won_by_u_leader": "boolean",
    "won_by_s_leader": "boolean",
}


@dataclass(frozen=True)
class Job:
    """One flow of a phase diagram; ``place`` is its place in the table, ``key`` the values of its axes."""

    place: int
    cell: Cell
    seed: int
    key: Mapping[str, Any]


def grid(spec: Any, folder: Path | str | None = None, progress: Progress | None = None) -> pd.DataFrame:
    """How random flows end, for every combination of the values of one or two axes, with every seed.

    Args:
        spec: a `GridSpec`, a mapping of the same keys, or the path of a YAML file.
        folder: where the tables are written (see `GridFolder`). What an earlier run with the same spec has written
            there is not solved again, so that a run that was interrupted goes on where it was.
        progress: called with (done, total, name) after each flow.

    Returns:
        One row per cell, seed and time, in the order of the spec. The columns are the axes and

        - seed, log_t, status (that of the flow, or "no start" where the score map does not define the start);
        - reached: whether the flow got to this time; if not, numbers are NaN and the winner is missing;
        - entropy, normalized_entropy, max_s, log_objective as in `Result`; distribution: whether σ gives distributions,
          without which entropies are NaN;
        - winner: the coordinate with the largest weight at this time; -1 for a tie;
        - u_leader, s_leader: those with the largest u = Vᵀβ* and s at the start, -1 for a tie; u_leader is missing for
          losses without β* (for regression it is the least-squares solution);
        - won_by_u_leader, won_by_s_leader: whether that is the winner; missing where either is missing or tied.

    Raises:
        InputError: for a spec that cannot be read, and a folder that holds something else.

    Example:
        >>> spec = {"axes": {"scale": [0.1, 1.0]}, "fixed": {"n": 4}, "seeds": 3, "log_t": 20}
        >>> len(grid(spec))
        6
    """
    spec = read_spec(spec)
    chunks = _chunks(spec)
    store = None if folder is None else GridFolder.open(Path(folder), spec)
    total = sum(map(len, chunks))
    parts, done = [], 0
    for index, chunk in enumerate(chunks):
        part = None if store is None else store.part(index, _keys(chunk, spec))
        if part is None:
            part = _solve(chunk, spec, _shifted(progress, done, total))
            if store is not None:
                store.save(index, part)
        parts.append(part)
        done += len(chunk)
        if progress is not None:
            progress(done, total, f"part {index + 1} of {len(chunks)}")
    places = [job.place for chunk in chunks for job in chunk for _ in spec.times]
    table = pd.concat(parts, ignore_index=True).iloc[np.argsort(places, kind="stable")].reset_index(drop=True)
    table = table[[*spec.axes, *_TYPES]]
    if store is not None:
        store.finish(table, grid_summary(table))
    return table


def _chunks(spec: GridSpec) -> list[list[Job]]:
    """All flows, in portions of one shape and about `CHUNK`, which do not depend on the order of the axes.

    A program is compiled for a list of score maps. So every portion holds all score maps of its shape, in one order, up
    to `MOST_MAPS`.
    """
    jobs = [
        Job(i * len(spec.seeds) + k, cell, seed, {name: getattr(cell, name) for name in spec.axes})
        for i, cell in enumerate(spec.cells)
        for k, seed in enumerate(spec.seeds)
    ]
    chunks = []
    ranks = {maps: rank for rank, maps in enumerate(sorted({_maps(job.cell) for job in jobs}))}

    def program(job: Job) -> tuple[str, int]:
        return str(job.cell.shape), ranks[_maps(job.cell)] // MOST_MAPS

    jobs.sort(key=lambda job: (program(job), _free(job.cell), job.seed, _maps(job.cell)))
    for _, group in groupby(jobs, key=program):
        members = list(group)
        maps = len({_maps(job.cell) for job in members})
        blocks = [members[first : first + maps] for first in range(0, len(members), maps)]
        size = min(CHUNK, MOST_NUMBERS // members[0].cell.entries)
        count = -(-len(members) // max(size, maps))
        for part in np.array_split(np.arange(len(blocks)), count):
            chunks.append([job for block in part for job in blocks[block]])
    return chunks


def _maps(cell: Cell) -> tuple[str, float]:
    return cell.scores, cell.temperature


def _free(cell: Cell) -> tuple[float, ...]:
    return cell.scale, cell.target_norm, cell.condition_number or 0.0


def _keys(chunk: Sequence[Job], spec: GridSpec) -> pd.DataFrame:
    """The columns that say which flow and time a row is about."""
    rows = [{**job.key, "seed": job.seed, "log_t": log_t} for job in chunk for log_t in spec.times]
    return pd.DataFrame(rows)


def _shifted(progress: Progress | None, done: int, total: int) -> Progress | None:
    return None if progress is None else lambda more, _, name: progress(done + more, total, name)


def _solve(chunk: Sequence[Job], spec: GridSpec, progress: Progress | None) -> pd.DataFrame:
    """The rows of some flows."""
    raw = [job.cell.problem(job.seed, spec.times) for job in chunk]
    read: list[Problem | None] = []
    for one in raw:
        try:
            read.append(read_problem(one))
        except NoStart:
            read.append(None)
    good = [one for one, problem in zip(raw, read, strict=True) if problem is not None]
    results = iter(solve_many(good, rtol=spec.rtol, progress=progress) if good else ())
    found: list[dict[str, Any]] = []
    for job, problem in zip(chunk, read, strict=True):
        same = {**job.key, "seed": job.seed, "distribution": declares_distribution(score_maps.get(job.cell.scores))}
        if problem is None:
            found += [{**same, "log_t": log_t, "status": NO_START, "reached": False} for log_t in spec.times]
        else:
            found += [same | row for row in _rows(problem, next(results))]
    return pd.DataFrame(found, columns=[*chunk[0].key, *_TYPES]).astype(_TYPES)


def _rows(problem: Problem, result: Result) -> Iterable[dict[str, Any]]:
    """What is said of a flow at each of its times."""
    leaders = dict(zip(LEADERS, initial_leaders(problem), strict=True))
    for k, log_t in enumerate(result.log_t):
        s = result.s[k]
        reached = bool(np.isfinite(s).all())
        winner = winner_of(problem, s) if reached else None
        row: dict[str, Any] = {"log_t": log_t, "status": result.status, "reached": reached, "winner": winner}
        for name in ("entropy", "normalized_entropy", "log_objective"):
            values = getattr(result, name)
            row[name] = np.nan if values is None else values[k]
        row["max_s"] = s.max()
        for name, leader in leaders.items():
            row[f"{name}_leader"] = leader
            clear = winner is not None and leader is not None and min(winner, leader) >= 0
            row[f"won_by_{name}_leader"] = winner == leader if clear else None
        yield row
