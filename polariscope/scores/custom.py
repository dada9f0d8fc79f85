"""A function of yours as a score map."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from array_api_compat import is_jax_namespace, is_torch_namespace

from polariscope.errors import InputError
from polariscope.scores._base import Array, Properties, ScoreMap


@dataclass(frozen=True)
class Custom(ScoreMap):
    """σ given by a function; Jᵀg by the autodiff of JAX or torch.

    Args:
        function: (a) → s or (a, where) → s, over the last axis.
        masks: whether it takes ``where``.
    """

    function: Callable[..., Array]
    masks: bool

    def _weights(self, xp: Any, a: Array, visible: Array | None) -> Array:
        if visible is not None and not self.masks:
            raise InputError(
                f"mask for the score map {self.name!r}",
                got="a function of the logits alone",
                expected="a function with a parameter named where",
                fix="add it: only the function knows what it does with hidden keys",
            )
        s = self.function(a, where=visible) if self.masks else self.function(a)
        if tuple(getattr(s, "shape", ())) != tuple(a.shape):
            raise InputError(
                f"weights of the score map {self.name!r}",
                got=f"shape {getattr(s, 'shape', type(s).__name__)}",
                expected=f"the shape of the logits, {tuple(a.shape)}",
                fix="work over the last axis and keep it",
            )
        return s

    def _pullback(self, xp: Any, a: Array, s: Array, g: Array, visible: Array | None) -> Array:
        def weights(x: Array) -> Array:
            return self._weights(xp, x, visible)

        if is_jax_namespace(xp):
            import jax

            return jax.vjp(weights, a)[1](g)[0]
        if is_torch_namespace(xp):
            import torch

            pull = torch.func.vjp(weights, a)[1]
            return pull(g)[0]
        raise InputError(
            f"gradient of the score map {self.name!r}",
            got="NumPy logits",
            expected="JAX or torch logits, whose autodiff differentiates your function",
            fix="convert the logits",
        )


def from_function(
    function: Callable[..., Array],
    *,
    name: str,
    properties: Properties = Properties(),
    summary: str = "a function of your own",
    source: str = "user",
) -> Custom:
    """A score map from a function of the logits, usable wherever a named one is; `REGISTRY.add` gives it a name.

    Args:
        function: f(a) → s, a and s (…, n), rows on the last axis. Only a function with a parameter named ``where``
            (None, or booleans of a shape that broadcasts to a) can be used with masks; it receives 0 at hidden logits,
            its weights at hidden keys are ignored.
        name: how results and messages call it.
        properties: what it promises. Nothing is assumed: metrics that need a property refuse without it.
        summary, source: for listings.

    Raises:
        InputError: if ``function`` cannot be called.
    """
    if not callable(function):
        raise InputError("score map", got=repr(function), expected="a function of the logits", fix="give a callable")
    try:
        masks = "where" in inspect.signature(function).parameters
    except ValueError:  # a built-in without a signature
        masks = False
    return Custom(name=name, summary=summary, properties=properties, source=source, function=function, masks=masks)
