"""The tied model: one matrix makes both the logits and the predictor."""

from typing import Any

from polariscope.flow.models._model import Model


def logits(V: Any, a: Any) -> Any:
    """The logits are U a, with U given as ``V``."""
    return V @ a


def beta(V: Any, s: Any) -> Any:
    """β = U s."""
    return V @ s


MODEL = Model("tied", logits, beta, square=True)
