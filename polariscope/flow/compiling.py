"""How JAX programs are compiled here."""

from collections.abc import Callable, Sequence
from functools import partial
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


def one_and_many(solve: Callable[..., Any], static: Sequence[str]) -> tuple[Any, Any]:
    """Two compiled forms of ``solve(*arrays, rtol, **static)``: for one flow, and for a leading axis of flows."""
    one = jax.jit(solve, static_argnames=static, compiler_options=QUICK)

    @partial(jax.jit, static_argnames=static, compiler_options=QUICK)
    def many(*arguments: Any, **how: Any) -> Any:
        *arrays, rtol = arguments
        return jax.vmap(lambda *rows: solve(*rows, rtol, **how))(*arrays)

    return one, many


def few_or_many(one: Any, many: Any, arrays: tuple[Any, ...], rtol: float, **static: Any) -> Any:
    """``solve`` for every flow of the leading axis, as NumPy arrays: in turn if they are few, else side by side."""
    leaves = jax.tree.leaves(arrays)
    count = len(leaves[0])
    if count > FEW:
        return jax.tree.map(np.asarray, many(*arrays, rtol, **static))
    rows = [one(*jax.tree.map(lambda v, i=i: v[i], arrays), rtol, **static) for i in range(count)]
    return jax.tree.map(lambda *parts: np.stack([np.asarray(p) for p in parts]), *rows)
