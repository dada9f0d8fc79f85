"""Several score maps as one JAX function of an index, so that one compilation serves all of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from polariscope.scores import ScoreMap


@dataclass(frozen=True)
class Maps:
    """Score maps σ₀, σ₁, … chosen by a traced index."""

    members: tuple[Any, ...]

    def __call__(self, which: Array, a: Array) -> Array:
        """σ(a), (n,) to (n,)."""
        return _switch(which, self.members, a)

    def vjp(self, which: Array, a: Array, g: Array) -> Array:
        """Jᵀg: the map's own formula if it has one, else by automatic differentiation."""
        return _switch(which, [_vjp(m) for m in self.members], a, g)

    def sums_to_one(self, which: Array) -> Array:
        """Whether Σs = 1 for every a."""
        return jnp.array([declares(m, "sums_to_one") for m in self.members])[which]

    def shift_invariant(self, which: Array) -> Array:
        """Whether σ(a + c) = σ(a)."""
        return jnp.array([declares(m, "shift_invariant") for m in self.members])[which]


def _switch(which: Array, branches: Sequence[Any], *operands: Array) -> Array:
    if len(branches) == 1:
        return branches[0](*operands)
    return jax.lax.switch(which, [lambda *o, b=b: b(*o) for b in branches], *operands)


def _vjp(score_map: Any) -> Any:
    if hasattr(score_map, "vjp"):
        return lambda a, g: score_map.vjp(a, g)
    return lambda a, g: jax.vjp(score_map, a)[1](g)[0]


def declares(score_map: Any, what: str) -> bool:
    """Whether a score map declares a property; a user's own function declares nothing."""
    return bool(getattr(getattr(score_map, "properties", None), what, False))


def may_be_smooth(score_map: Any) -> bool:
    """Whether the map has no kinks, as far as is known: a user's own function is given the benefit of the doubt."""
    return declares(score_map, "smooth") or not isinstance(score_map, ScoreMap)


def declares_distribution(score_map: Any) -> bool:
    """Whether every row is a distribution, so that entropy is defined."""
    return declares(score_map, "sums_to_one") and declares(score_map, "non_negative")


def weights(score_map: Any, a: np.ndarray) -> np.ndarray:
    """σ over the last axis of a NumPy array; a user's own JAX function is applied row by row."""
    if isinstance(score_map, ScoreMap):
        return score_map(a)
    rows = jax.vmap(score_map)(a.reshape(-1, a.shape[-1]))
    return np.asarray(rows).reshape(a.shape)
