"""The value model."""

from typing import Any

from polariscope.flow.models._model import Model


def logits(V: Any, a: Any) -> Any:
    """The logits are the parameters ``a`` themselves."""
    return a


def beta(V: Any, s: Any) -> Any:
    """β = V s."""
    return V @ s


MODEL = Model("value", logits, beta)
