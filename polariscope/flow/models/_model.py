"""What a model is: parameters, and the attention logits they give; its predictor is β = V σ(logits)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Parameters = Mapping[str, Any]


@dataclass(frozen=True)
class Model:
    """A model of one attention row.

    Args:
        name: its name in problems.
        logits: parameters by name, V (d, n) among them, to the attention logits (n,).
        needs: parameter other than V to its shape in letters; the problem gives its start as name + "0".
        trained: the parameters other than V that move; the others stay.
        own: whether a logit is moved by its own payoff alone, so that a key without one rests.
        square: whether V must be square (d = n).
        shown: parameters to what results call ``a``, (n,).
    """

    name: str
    logits: Callable[[Parameters], Any]
    needs: Mapping[str, str]
    trained: tuple[str, ...]
    shown: Callable[[Parameters], Any]
    own: bool = False
    square: bool = False

    def __hash__(self) -> int:
        return hash(self.name)
