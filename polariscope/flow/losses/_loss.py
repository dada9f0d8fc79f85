"""What a loss is: a differentiable function of the predictor β, and the data it needs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

Data = Mapping[str, Any]


def _accept(data: Mapping[str, np.ndarray]) -> None:
    """Accepts every data set of the right shapes."""


@dataclass(frozen=True)
class Loss:
    """A loss ℓ(β; data).

    Args:
        name: its name in problems.
        value: ℓ as a JAX function of ``beta`` (d,) and the data; its gradient is taken by automatic differentiation.
        needs: key of the problem to its shape in letters, with d the length of β: ``{"X": "md", "y": "m"}``.
        check: refuses data for which ℓ makes no sense (InputError).
        log_value: log ℓ, for losses that fall below what a float can hold; ``None`` takes the logarithm of ``value``.
        clock: the name of the change of time that makes the value model's path independent of the loss, if there is
            one: ``"path"`` for losses that depend on β through ⟨target, β⟩ alone.
    """

    name: str
    value: Callable[[Any, Data], Any]
    needs: Mapping[str, str]
    check: Callable[[Mapping[str, np.ndarray]], None] = _accept
    log_value: Callable[[Any, Data], Any] | None = None
    clock: str | None = None

    def __hash__(self) -> int:
        return hash((self.name, self.value))
