"""How JAX programs are compiled here."""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np


def _accepted(options: dict[str, bool]) -> dict[str, bool]:
    """The options, or none of them where this version of XLA does not know one."""
    try:
        jax.jit(lambda: 0, compiler_options=options)()
    except jax.errors.JaxRuntimeError:
        return {}
    return options


QUICK = _accepted({"xla_cpu_use_fusion_emitters": False})
"""Halves the time that XLA takes on a CPU; programs this small run no slower."""
FEW = 8
"""Up to so many flows are solved one after the other: the program for one compiles in half the time."""
MANY = 64
"""From so many flows of one score map on, a program for them alone is worth its compilation."""
KINDS = 24
"""Of so many kinds of flows compiled programs are kept."""
AT_ONCE = 4
"""So many kinds are compiled before there is room to be made again."""
MAPS, MOST_MAPS = Path("/proc/self/maps"), Path("/proc/sys/vm/max_map_count")
"""Where Linux tells the pieces of memory that this process maps, one a line, and how many it may."""
_kept: set[Any] = set()


def crowded() -> bool:
    """Whether more than half the pieces of memory that this process may map are.

    The programs of one kind take up to 5,500 of the 65,530 that are usual. Without room for another, the compiler ends
    with an error. Systems other than Linux set no such limit.
    """
    try:
        with MAPS.open("rb") as maps:
            return sum(1 for _ in maps) > int(MOST_MAPS.read_text()) // 2
    except OSError:
        return False


def make_room(kinds: Sequence[Any]) -> list[Any]:
    """Those of the kinds that are not compiled yet; others' programs are dropped if all would be too many."""
    if len(_kept.union(kinds)) > KINDS or (crowded() and not _kept.issuperset(kinds)):
        jax.clear_caches()
        _kept.clear()
    new = [kind for kind in kinds if kind not in _kept]
    _kept.update(new)
    return new


def side_by_side(count: int, kinds: int) -> bool:
    """Whether flows with so many kinds of score maps are solved side by side, not one after the other.

    Side by side every kind is computed for every flow, and all take as many steps as the slowest.
    """
    return count > FEW and kinds == 1


def by_kind(kinds: Sequence[Any]) -> list[list[int]]:
    """Indices of flows in groups that are compiled together: one for each kind with many flows, one for the others."""
    counts = Counter(kinds)
    groups: dict[Any, list[int]] = {}
    for index, kind in enumerate(kinds):
        groups.setdefault(kind if counts[kind] >= MANY else None, []).append(index)
    return list(groups.values())


def one_and_many(solve: Callable[..., Any], static: Sequence[str]) -> tuple[Any, Any]:
    """Two compiled forms of ``solve(*arrays, rtol, **static)``: for one flow, and for a leading axis of flows."""
    one = jax.jit(solve, static_argnames=static, compiler_options=QUICK)

    @partial(jax.jit, static_argnames=static, compiler_options=QUICK)
    def many(*arguments: Any, **how: Any) -> Any:
        *arrays, rtol = arguments
        return jax.vmap(lambda *rows: solve(*rows, rtol, **how))(*arrays)

    return one, many


def each(one: Any, many: Any, arrays: tuple[Any, ...], rtol: float, *, together: bool, **static: Any) -> Any:
    """``solve`` for every flow of the leading axis, as NumPy arrays: side by side, or in turn."""
    if together:
        return jax.tree.map(np.asarray, many(*arrays, rtol, **static))
    count = len(jax.tree.leaves(arrays)[0])
    rows = [one(*jax.tree.map(lambda v, i=i: v[i], arrays), rtol, **static) for i in range(count)]
    return jax.tree.map(lambda *parts: np.stack([np.asarray(p) for p in parts]), *rows)
