"""The charts of several score maps in one program, and what score maps declare."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from polariscope.flow.chart import Chart, chart_of, declares, masks


@dataclass(frozen=True)
class Charts:
    """Charts of several score maps, chosen by a traced index, so that one compilation serves all of them."""

    members: tuple[Any, ...]

    @classmethod
    def of(cls, score_maps: Iterable[Any]) -> "Charts":
        """The charts of these score maps, each once and in an order that depends on their names alone."""
        return cls(tuple(sorted(dict.fromkeys(score_maps), key=lambda m: str(getattr(m, "name", "")))))

    def weights(self, which: Array, q: Array, where: Array) -> Array:
        """s, (n,)."""
        return _switch(which, [c.weights for c in self.charts], q, where)

    def velocity(self, which: Array, q: Array, u: Array, where: Array) -> Array:
        """dq/dτ, (n,)."""
        return _switch(which, [c.velocity for c in self.charts], q, u, where)

    def declares(self, which: Array, what: str) -> Array:
        """Whether the smooth map of the chart declares a property."""
        return jnp.array([declares(c.map, what) for c in self.charts])[which]

    def smooth(self, which: Array, a: Array, sign: Array, where: Array) -> Array:
        """s of logits on the smooth piece that is named by signs and keys, (n,)."""
        return _switch(which, [c.smooth for c in self.charts], a, sign, where)

    def whole(self, which: Array, a: Array, where: Array) -> Array:
        """s = σ(a) itself, with its kinks, (n,)."""
        maps = [lambda a, where, m=m: m(a, where) if masks(m) else m(a) for m in self.members]
        return _switch(which, maps, a, where)

    def mean_payoff(self, which: Array, s: Array, payoff: Array, where: Array) -> Array:
        """What a key's payoff must exceed for its weight to grow from 0."""
        means = [lambda *o, c=c: jnp.asarray(c.mean_payoff(*o), float) for c in self.charts]
        return _switch(which, means, s, payoff, where)

    def floor(self, which: Array) -> Array:
        """The weight at which keys drop out."""
        return jnp.array([c.floor for c in self.charts])[which]

    @property
    def kinked(self) -> bool:
        """Whether keys drop out in any of the charts."""
        return any(c.floor > -np.inf for c in self.charts)

    @cached_property
    def charts(self) -> list[Chart]:
        return [chart_of(m) for m in self.members]


def _switch(which: Array, branches: Sequence[Any], *operands: Array) -> Array:
    if len(branches) == 1:
        return branches[0](*operands)
    return jax.lax.switch(which, [lambda *o, b=b: b(*o) for b in branches], *operands)


def declares_distribution(score_map: Any) -> bool:
    """Whether every row is a distribution, so that entropy is defined."""
    return declares(score_map, "sums_to_one") and declares(score_map, "non_negative")
