"""What a model is: parameters (V, a), the logits they give, and the predictor β."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Model:
    """Parameters V (d, n) and a (n,), and two maps of them.

    Args:
        name: its name in problems.
        logits: (V, a) to the attention logits, (n,).
        beta: (V, s) to the predictor, (d,).
        square: whether V must be square (d = n).
    """

    name: str
    logits: Callable[[Any, Any], Any]
    beta: Callable[[Any, Any], Any]
    square: bool = False
