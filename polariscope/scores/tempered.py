"""A score map at another temperature."""

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

from polariscope.errors import InputError
from polariscope.scores._base import Array, ScoreMap


@dataclass(frozen=True)
class Tempered(ScoreMap):
    """σ(a/τ), with Jᵀg that of σ at a/τ, divided by τ.

    Args:
        inner: σ.
        temperature: τ > 0.
    """

    inner: ScoreMap
    temperature: float

    def _weights(self, xp: Any, a: Array, visible: Array | None) -> Array:
        return self.inner._weights(xp, a / self.temperature, visible)

    def _pullback(self, xp: Any, a: Array, s: Array, g: Array, visible: Array | None) -> Array:
        return self.inner._pullback(xp, a / self.temperature, s, g, visible) / self.temperature

    def _kinks(self, xp: Any, a: Array, visible: Array | None) -> Array:
        return self.temperature * self.inner._kinks(xp, a / self.temperature, visible)


def temperature(score_map: ScoreMap, temperature: float) -> Tempered:
    """The score map a ↦ σ(a/τ). It promises what σ promises: dividing by τ > 0 changes none of the properties.

    Args:
        score_map: σ, by itself, not by name.
        temperature: τ. Small τ makes softmax and the sparse maps greedy; relu, l1, sum, square and uniform, which are
            homogeneous, do not change. The quotients a/τ must be numbers: infinite ones give NaN.

    Raises:
        InputError: for τ that is not a positive finite number, and for anything that is not a score map.

    Example:
        >>> import numpy
        >>> from polariscope.scores import get
        >>> temperature(get("softmax"), 2)
        Tempered(name='softmax/τ=2', ...
    """
    if not isinstance(score_map, ScoreMap):
        raise InputError(
            "score map", got=repr(score_map), expected="a ScoreMap", fix="get one by name with scores.get(…)"
        )
    if not isinstance(temperature, Real) or isinstance(temperature, bool) or not 0 < temperature < math.inf:
        raise InputError("temperature", got=repr(temperature), expected="a positive finite number", fix="try 1.0")
    value = float(temperature)
    label = repr(value).removesuffix(".0")
    return Tempered(
        name=f"{score_map.name}/τ={label}",
        summary=f"{score_map.summary}, at a/{label}",
        properties=score_map.properties,
        source=score_map.source,
        inner=score_map,
        temperature=value,
    )
