"""What a score map is: the contract, the declared properties, and the one place where masks are applied."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from array_api_compat import array_namespace

from polariscope.errors import InputError

Array = Any
"""An array of NumPy, JAX (traced or not) or torch: they share no base class."""


@dataclass(frozen=True)
class Properties:
    """What a score map promises on every admissible row (see `ScoreMap.admissible`).

    Args:
        sums_to_one: Σⱼ sⱼ = 1.
        non_negative: sⱼ ≥ 0.
        shift_invariant: σ(a + c·1) = σ(a).
        full_support: every visible key has sⱼ ≠ 0, whatever its finite logit.
        smooth: σ is continuously differentiable; where it is not declared, σ has kinks.
    """

    sums_to_one: bool = False
    non_negative: bool = False
    shift_invariant: bool = False
    full_support: bool = False
    smooth: bool = False


@dataclass(frozen=True)
class ScoreMap(ABC):
    """A map σ from attention logits a (…, n) to attention weights s = σ(a) (…, n), one row at a time.

    The law, for every map, array library and row:

    - `vjp` is the transposed Jacobian of `__call__`, and equals what the library's own autodiff gives;
    - a property is declared if and only if it holds on every admissible row;
    - a hidden key has weight 0 and gradient 0, and its logit has no influence, be it NaN;
    - a row without a visible key has all weights and gradients 0;
    - NaN in a visible logit gives NaN, never a number.

    A family implements `_weights` and `_pullback`, and `_kinks` if σ has any; nothing else.

    Args:
        name: the name in the registry.
        summary: one line.
        properties: what it promises.
        source: author, year, arXiv; and where we deviate.
    """

    name: str
    summary: str
    properties: Properties
    source: str

    def __call__(self, a: Array, where: Array | None = None) -> Array:
        """The weights s = σ(a).

        Args:
            a: logits (…, n), floating point, of any of the three libraries.
            where: visible keys, boolean, broadcastable to the shape of ``a``; None: all of them.

        Returns:
            s, with the shape and dtype of ``a``.

        Raises:
            InputError: for anything that is not a floating-point array with at least one key, and for a mask that is
                not boolean or does not fit.
        """
        xp, a, visible = _enter(a, where)
        return hide(xp, self._weights(xp, a, visible), visible)

    def vjp(self, a: Array, g: Array, where: Array | None = None) -> Array:
        """The pullback Jᵀg, J = ∂σ/∂a, in closed form.

        Args:
            a: logits (…, n).
            g: the gradient with respect to the weights, (…, n).
            where: visible keys, as for `__call__`.

        Raises:
            InputError: as `__call__`, and for ``g`` of another shape.
        """
        xp, a, visible = _enter(a, where)
        if tuple(getattr(g, "shape", ())) != tuple(a.shape):
            raise InputError(
                "gradient g",
                got=f"shape {getattr(g, 'shape', type(g).__name__)}",
                expected=f"the shape of the logits, {tuple(a.shape)}",
                fix="broadcast it first",
            )
        g = hide(xp, g, visible)
        s = hide(xp, self._weights(xp, a, visible), visible)
        return hide(xp, self._pullback(xp, a, s, g, visible), visible)

    def admissible(self, a: Array, where: Array | None = None) -> Array:
        """Boolean (…,): the rows on which the declared properties hold, those with finite weights, not all of them 0.

        The others are rows without a visible key, rows with NaN, and the rows at which f(a)/Σf(a) is 0/0 or has a pole.
        """
        s = self(a, where)
        xp = array_namespace(s)
        mass = xp.sum(xp.abs(s), axis=-1)
        return xp.isfinite(mass) & (mass > 0)

    def kinks(self, a: Array, where: Array | None = None) -> Array:
        """Signed distances to the kinks of σ, one per key: one changes its sign exactly where σ is not differentiable.

        On every piece of a path on which no sign changes, the Jacobian is continuous. For relu, relu-elementwise and l1
        they are a itself, for sparsemax a − τ, the distance to the border of the support.

        Args:
            a: logits (…, n).
            where: visible keys, as for `__call__`; what stands at hidden keys means nothing.

        Returns:
            (…, n), in the units of a; (…, 0) for maps without kinks, and for functions of one's own, of which none are
            known.

        Raises:
            InputError: as `__call__`.
        """
        xp, a, visible = _enter(a, where)
        return self._kinks(xp, a, visible)

    def _kinks(self, xp: Any, a: Array, visible: Array | None) -> Array:
        """Signed distances, (…, n); of a map without kinks (…, 0)."""
        return a[..., :0]

    @abstractmethod
    def _weights(self, xp: Any, a: Array, visible: Array | None) -> Array:
        """σ(a) at the visible keys; what stands at hidden keys is ignored. Hidden logits arrive as 0."""

    @abstractmethod
    def _pullback(self, xp: Any, a: Array, s: Array, g: Array, visible: Array | None) -> Array:
        """Jᵀg at the visible keys, given s = σ(a). Hidden logits, weights and gradients arrive as 0."""


def hide(xp: Any, x: Array, visible: Array | None, fill: float = 0.0) -> Array:
    """``x`` with ``fill`` at the hidden keys."""
    return x if visible is None else xp.where(visible, x, fill)


def at_zero(a: Array, properties: Properties) -> Array:
    """The kinks of a map made of scalar functions whose only kink is at 0: a, or none if it is smooth."""
    return a[..., :0] if properties.smooth else a


def covariance(xp: Any, s: Array, g: Array) -> Array:
    """g − ⟨s, g⟩, the fitness minus the mean fitness of replicator dynamics."""
    return g - xp.sum(s * g, axis=-1, keepdims=True)


def _enter(a: Array, where: Array | None) -> tuple[Any, Array, Array | None]:
    """The namespace, the logits with 0 at hidden keys (so that nothing there reaches autodiff), and the mask."""
    xp = namespace("logits a", a)
    if where is None:
        return xp, a, None
    visible = mask(xp, a, where)
    return xp, xp.where(visible, a, 0.0), visible


def namespace(what: str, x: Array) -> Any:
    """The array namespace of a floating-point array with at least one entry on its last axis, or an InputError."""
    try:
        xp = array_namespace(x)
    except TypeError:
        raise InputError(
            what,
            got=type(x).__name__,
            expected="a NumPy, JAX or torch array",
            fix="convert it, for example with numpy.asarray(…, dtype=float)",
        ) from None
    if not xp.isdtype(x.dtype, "real floating"):
        raise InputError(
            what, got=f"dtype {x.dtype}", expected="real floating-point numbers", fix="convert it to a float dtype"
        )
    if x.ndim == 0 or x.shape[-1] == 0:
        raise InputError(
            what, got=f"shape {tuple(x.shape)}", expected="(…, n) with n ≥ 1", fix="put the keys on the last axis"
        )
    return xp


def mask(xp: Any, a: Array, where: Array) -> Array:
    """The mask as a boolean array of the same library. Float and integer masks are refused: their meaning varies."""
    visible = where if hasattr(where, "dtype") and array_namespace(where) is xp else xp.asarray(where)
    if not xp.isdtype(visible.dtype, "bool"):
        raise InputError(
            "mask where",
            got=f"dtype {visible.dtype}",
            expected="booleans, True at visible keys",
            fix="for an additive float mask give mask > finfo(dtype).min / 2",
        )
    shape, full = tuple(visible.shape), tuple(a.shape)
    fits = len(shape) <= len(full) and all(m in (1, n) for m, n in zip(shape[::-1], full[::-1], strict=False))
    if not fits:
        raise InputError(
            "mask where", got=f"shape {shape}", expected=f"one that broadcasts to {full}", fix="reshape it"
        )
    return visible
