"""Losses and score maps as problems give them: by name, or as functions of one's own, which are tried at the start."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import numpy as np

from polariscope import scores as score_maps
from polariscope.errors import InputError
from polariscope.flow import losses
from polariscope.flow.losses._loss import Loss

COLDEST = 1e-150
"""Least temperature, and 1 divided by the largest: their squares must be numbers."""


@dataclass(frozen=True)
class OfBeta:
    """A user's function of β alone, called as the losses here are."""

    function: Any

    def __call__(self, beta: Any, data: Any) -> Any:
        return self.function(beta)


def as_loss(loss: Any) -> Loss:
    """A registered loss, a Loss, or any JAX function of β."""
    if isinstance(loss, Loss):
        return loss
    if callable(loss):
        return Loss(getattr(loss, "__name__", "custom"), OfBeta(loss), {})
    return losses.get(loss)


def as_score_map(scores: Any, temperature: Any) -> Any:
    """A registered score map, a ScoreMap or any JAX function of a; maps other than functions at a temperature."""
    score_map: Any = scores if callable(scores) else score_maps.get(scores)
    if temperature is None:
        return score_map
    if not isinstance(score_map, score_maps.ScoreMap):
        fix = "put it into the function, or use polariscope.scores.from_function"
        raise InputError("temperature", got="a score map of your own", expected="a named score map", fix=fix)
    tempered = score_maps.temperature(score_map, temperature)
    if not COLDEST <= tempered.temperature <= 1 / COLDEST:
        expected = f"{COLDEST:g} to {1 / COLDEST:g}"
        raise InputError("temperature", got=repr(temperature), expected=expected, fix="scale a0 and the temperature")
    return tempered


def try_loss(loss: Loss, beta: np.ndarray, data: Mapping[str, np.ndarray]) -> None:
    """Refuses a loss of one's own that is no finite real number with a finite gradient at β (d,)."""
    what, expected = "loss", "a JAX function of β (d,) that gives one finite real number, with a finite gradient"
    value, gradient = _tried(what, expected, loss.value, beta, dict(data))
    if not np.isfinite(value) or not np.isfinite(gradient).all():
        got = f"value {float(value):g} and gradient {np.array2string(gradient, threshold=8)} at the start"
        raise InputError(what, got=got, expected="finite numbers", fix="mend the function, or start elsewhere")


def try_score_map(score_map: Callable[[Any], Any], a: np.ndarray) -> np.ndarray:
    """The weights that a function of one's own gives logits a (n,), refused if they are no n finite real numbers."""
    what, expected = "scores", "a JAX function of the logits (n,) that gives n finite real numbers"
    total, _ = _tried(what, expected, _Total(score_map), a, None)
    with jax.enable_x64(True):
        s = np.asarray(score_map(a))
    if s.shape != a.shape:
        raise InputError(
            what, got=f"shape {s.shape}", expected=expected, fix="work entry by entry, or on the last axis"
        )
    if not np.isfinite(s).all() or not np.isfinite(total):
        raise InputError(what, got=f"weights {s} at the start", expected="finite numbers", fix="mend it, or change a0")
    return s


@dataclass(frozen=True)
class _Total:
    """The sum of the weights, whose gradient says whether σ can be differentiated."""

    function: Any

    def __call__(self, a: Any, _: Any) -> Any:
        return self.function(a).sum()


def _tried(what: str, expected: str, function: Any, at: np.ndarray, data: Any) -> tuple[np.ndarray, np.ndarray]:
    """Value and gradient of a scalar function; whatever it raises is bad input, said in one line."""
    try:
        hash(function)
        with jax.enable_x64(True):
            return jax.tree.map(np.asarray, _value_and_gradient(at, data, function=function))
    except Exception as problem:
        said = f"{type(problem).__name__}: {problem}".splitlines()[0][:160]
        fix = "use jax.numpy, and jnp.where instead of if; it must be hashable, as functions are"
        raise InputError(what, got=said, expected=expected, fix=fix) from problem


@partial(jax.jit, static_argnames="function")
def _value_and_gradient(at: Any, data: Any, *, function: Any) -> Any:
    return jax.value_and_grad(function)(at, data)
