"""What a loss is: a differentiable function of the predictor β, and the data it needs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

Data = Mapping[str, Any]


def _accept(data: Mapping[str, np.ndarray], d: int) -> None:
    """Accepts every data set of the right shapes."""


@dataclass(frozen=True)
class Link:
    """How a loss ℓ depends on a margin m: ℓ = f(m), f decreasing, everything in the log domain.

    Args:
        log_value: log f(m).
        log_slowness: -log(-f'(m)), the logarithm of the time that a unit of path time takes.
        slope: its derivative.

    All take NumPy or JAX arrays and hold for margins of any size.
    """

    log_value: Callable[[Any], Any]
    log_slowness: Callable[[Any], Any]
    slope: Callable[[Any], Any]


@dataclass(frozen=True)
class Loss:
    """A loss ℓ(β; data).

    Args:
        name: its name in problems.
        value: ℓ as a JAX function of ``beta`` (d,) and the data; its gradient is taken by automatic differentiation.
        needs: key of the problem to its shape in letters, with d the length of β: ``{"X": "md", "y": "m"}``.
        check: refuses data for which ℓ makes no sense (InputError); called with the data and d.
        log_value: log ℓ, for losses that fall below what a float can hold; ``None`` takes the logarithm of ``value``.
        margin: m(β; data), for losses that depend on β through a margin alone: ℓ = f(m). Their flow is ascent on m with
            a clock of its own, so it can be followed to margins at which the gradient of ℓ is no number any more.
        link: f, where there is a margin.
        linear: whether the margin is ⟨target, β⟩. Then all of V's motion is along the target.
    """

    name: str
    value: Callable[[Any, Data], Any]
    needs: Mapping[str, str]
    check: Callable[[Mapping[str, np.ndarray], int], None] = _accept
    log_value: Callable[[Any, Data], Any] | None = None
    margin: Callable[[Any, Data], Any] | None = None
    link: Link | None = None
    linear: bool = False

    def __hash__(self) -> int:
        return hash((self.name, self.value))
