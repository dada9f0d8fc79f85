r"""Coordinates in which a score map is smooth, so that flows are solved piece by piece and neither stall nor stiffen.

relu, L1, sparsemax and the elementwise relu are smooth as long as the same keys have weight: there they equal a smooth
map of these keys alone. A key whose weight falls to 0 stays there (see `docs/flow.md`), so a flow is a chain of smooth
pieces, each on fewer keys. The smooth map is defined beyond the kink too, so a step may overshoot it and be cut back.

a²/Σa² is softmax(q) with q = log a². Losers' q falls like a power of path time where a itself decays faster and faster,
which is stiff.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from array_api_compat import array_namespace
from jaxtyping import Array

from polariscope import scores as score_maps
from polariscope.scores import Properties, ScoreMap
from polariscope.scores.homogeneous import total
from polariscope.scores.tempered import Tempered


def declares(score_map: Any, what: str) -> bool:
    """Whether a score map declares a property; a user's own function declares nothing."""
    return bool(getattr(getattr(score_map, "properties", None), what, False))


def masks(score_map: Any) -> bool:
    """Whether σ can be asked about some of the keys only."""
    if isinstance(score_map, Tempered):
        return masks(score_map.inner)
    return isinstance(score_map, ScoreMap) and getattr(score_map, "masks", True)


@dataclass(frozen=True)
class Chart:
    """σ in coordinates q, on the keys that have weight.

    Args:
        map: a smooth score map (or a JAX function), s = map(q) on the keys in ``where``.
        of: the score map that is described.
        floor: keys drop out when their weight falls to it; -inf where none does.
        temperature: τ of σ(a/τ).
    """

    map: Any
    of: Any
    floor: float = -np.inf
    temperature: float = 1.0

    def enter(self, a: Any) -> Any:
        """q of logits (n,), a NumPy or JAX array."""
        return a / self.temperature

    def leave(self, q: np.ndarray, sign: np.ndarray) -> np.ndarray:
        """Logits of coordinates q (…, n); ``sign`` is that of the logits at the start, which do not change it."""
        return self.temperature * q

    def shift(self, a: np.ndarray, where: np.ndarray) -> float:
        """From where logits are measured: near the largest, or 0 where that is as good, or σ does not ignore shifts.

        Floats near 10¹⁴ are too coarse to follow a path in. Multiples of a power of two are taken off without an error.
        """
        unit = np.exp2(np.floor(np.log2(1024.0 * self.temperature)))
        return float(unit * np.round(a[where].max() / unit)) if declares(self.of, "shift_invariant") else 0.0

    def active(self, a: np.ndarray, where: np.ndarray) -> np.ndarray:
        """Boolean (n,): the visible keys that have weight, or may get it."""
        return where

    def edge(self, a: np.ndarray, where: np.ndarray) -> np.ndarray:
        """Boolean (n,): the visible keys at which σ has a kink."""
        return where & (self.of.kinks(a, where) == 0) if self.floor == 0 else np.zeros(len(a), bool)

    def smooth(self, a: Any, sign: Any, where: Any) -> Any:
        """s of logits a on the smooth piece with the given signs and keys, defined beyond its ends."""
        return self.weights(a / self.temperature, where)

    def mean_payoff(self, s: Any, payoff: Any, where: Any) -> Any:
        """What a key's payoff must exceed for its weight to grow from 0."""
        return (s * payoff).sum()

    def weights(self, q: Any, where: Any) -> Any:
        """s, 0 outside ``where``; None stands for all keys, for which programs are several times faster."""
        return self.map(q, where) if masks(self.map) else self.map(q)

    def velocity(self, q: Array, u: Array, where: Array) -> Array:
        """dq/dτ = (∂q/∂a) Jᵀu."""
        if masks(self.map):
            return self.map.vjp(q, u, where) / self.temperature**2
        return jax.vjp(self.map, q)[1](u)[0]


def shown(where: Array | None, values: Array) -> Array:
    """Values (n,), 0 for keys that are hidden; ``where`` None hides none."""
    return values if where is None else jnp.where(where, values, 0.0)


class Positive(Chart):
    """Keys with positive logits: relu/Σ is "sum" on them."""

    def active(self, a: np.ndarray, where: np.ndarray) -> np.ndarray:
        return where & (a > 0)


class Elementwise(Positive):
    """The elementwise relu is the identity on keys with positive logits."""

    def mean_payoff(self, s: Any, payoff: Any, where: Any) -> Any:
        return 0.0


class Support(Chart):
    """Sparsemax is affine on its support."""

    def active(self, a: np.ndarray, where: np.ndarray) -> np.ndarray:
        return self.of(a, where) > 0

    def mean_payoff(self, s: Any, payoff: Any, where: Any) -> Any:
        return (payoff * where.astype(payoff.dtype)).sum() / where.sum().astype(payoff.dtype)


class Fading(Chart):
    """Entmax-1.5: weights fade faster and faster, which is stiff, unless what is as good as 0 rests.

    Keys without weight stay in: they get some as soon as the threshold falls below them.
    """

    def _alive(self, q: Any, where: Any) -> Any:
        return self.map(q, where) > FADED

    def weights(self, q: Any, where: Any) -> Any:
        return self.map(q, self._alive(q, where))

    def velocity(self, q: Array, u: Array, where: Array) -> Array:
        return self.map.vjp(q, u, self._alive(q, where)) / self.temperature**2


class Absolute(Chart):
    """|a|/Σ|a| is "sum" of |a|; logits keep their signs."""

    def active(self, a: np.ndarray, where: np.ndarray) -> np.ndarray:
        return where & (a != 0)

    def enter(self, a: Any) -> Any:
        return abs(a) / self.temperature

    def leave(self, q: np.ndarray, sign: np.ndarray) -> np.ndarray:
        return self.temperature * sign * q

    def smooth(self, a: Any, sign: Any, where: Any) -> Any:
        return self.weights(sign * a / self.temperature, where)


class Square(Absolute):
    """a²/Σa² = softmax(q), q = log a²: q' = 2a'/a = (4/Σa²)(u - z)."""

    def enter(self, a: Any) -> Any:
        xp = array_namespace(a)
        return 2 * xp.log(xp.where(a == 0, 1.0, abs(a) / self.temperature))

    def leave(self, q: np.ndarray, sign: np.ndarray) -> np.ndarray:
        with np.errstate(under="ignore"):
            return self.temperature * sign * np.exp(0.5 * q)

    def smooth(self, a: Any, sign: Any, where: Any) -> Any:
        return self.of(a, where)

    def velocity(self, q: Array, u: Array, where: Array) -> Array:
        s = self.map(q, where)
        mass = jnp.sum(shown(where, jnp.exp(q))) * self.temperature**2
        return shown(where, 4.0 / mass * (u - jnp.vdot(s, u)))


class OffByOne(Chart):
    """Softmax with a null option of payoff 0, whose weight ν = 1/(1 + Σe^a) is too small to be left to 1 - Σs."""

    def velocity(self, q: Array, u: Array, where: Array) -> Array:
        s = self.weights(q, where)
        top = jnp.max(shown(where, q), initial=0.0)
        null = jnp.exp(-top) / (jnp.exp(-top) + jnp.sum(shown(where, jnp.exp(q - top))))
        best = u[jnp.argmax(s)]
        return s * (u - best - jnp.vdot(s, u - best) + null * best) / self.temperature**2


class Affine(ScoreMap):
    """a + (1 - Σa)/n over n visible keys: sparsemax while all of them have weight, and the same beyond."""

    def _weights(self, xp: Any, a: Any, visible: Any) -> Any:
        shown = xp.ones_like(a) if visible is None else xp.where(visible, xp.ones_like(a), 0.0)
        lack = (1.0 - xp.sum(a * shown, axis=-1, keepdims=True)) / xp.sum(shown, axis=-1, keepdims=True)
        return shown * (a + lack)

    def _pullback(self, xp: Any, a: Any, s: Any, g: Any, visible: Any) -> Any:
        shown = xp.ones_like(a) if visible is None else xp.where(visible, xp.ones_like(a), 0.0)
        return shown * (g - xp.sum(g * shown, axis=-1, keepdims=True) / xp.sum(shown, axis=-1, keepdims=True))


AFFINE = Affine(
    "affine", "a + (1 - Σa)/n", Properties(sums_to_one=True, shift_invariant=True, smooth=True), "see class"
)
GONE = 1e-12
"""Weights up to this at a kink count as 0: exact ties die together."""
FADED = 1e-25
"""A weight of entmax-1.5 that is as good as 0: it tends to 0 faster and faster and never gets there."""

KINDS: dict[str, Any] = {
    "relu": lambda m: Positive(total, m, 0.0),
    "l1": lambda m: Absolute(total, m, 0.0),
    "relu-elementwise": lambda m: Elementwise(score_maps.get("identity"), m, 0.0),
    "sparsemax": lambda m: Support(AFFINE, m, 0.0),
    "entmax-1.5": lambda m: Fading(m, m),
    "softmax-off-by-one": lambda m: OffByOne(m, m),
    "square": lambda m: Square(score_maps.get("softmax"), m),
}
"""Score maps by name that need coordinates of their own."""


@lru_cache(maxsize=256)
def chart_of(score_map: Any) -> Chart:
    """The coordinates for a score map, or for a function of one's own."""
    if isinstance(score_map, Tempered):
        inner = chart_of(score_map.inner)
        return replace(inner, of=score_map, temperature=inner.temperature * score_map.temperature)
    kind = KINDS.get(getattr(score_map, "name", ""))
    return kind(score_map) if kind else Chart(score_map, score_map)
