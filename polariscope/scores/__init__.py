"""Score maps: from attention logits a to attention weights s = σ(a), written once for NumPy, JAX and torch.

    >>> import numpy
    >>> get("softmax")(numpy.array([0.0, 0.0]))
    array([0.5, 0.5])

The names of the paper's toy experiments stand for what they stand for there: ``relu``, ``l1``, ``sum`` and ``square``
are normalized, ``sigmoid`` is not. The other names say it (``relu-elementwise``, ``sigmoid-normalized``).
"""

from typing import Any

from polariscope.registry import Registry
from polariscope.scores._base import Properties, ScoreMap
from polariscope.scores.custom import from_function
from polariscope.scores.elementwise import identity, relu_elementwise, sigmoid, sigmoid_with_bias
from polariscope.scores.exponential import elu_normalized, sigmoid_normalized, softmax, softmax_off_by_one
from polariscope.scores.homogeneous import l1, relu, square, total, uniform
from polariscope.scores.sparse import entmax_1_5, sparsemax
from polariscope.scores.tempered import temperature

__all__ = ["REGISTRY", "Properties", "ScoreMap", "from_function", "get", "sigmoid_with_bias", "temperature"]

REGISTRY = Registry("score map", {})

for _map in (
    softmax,
    softmax_off_by_one,
    sigmoid,
    sigmoid_normalized,
    relu,
    relu_elementwise,
    l1,
    total,
    square,
    elu_normalized,
    identity,
    uniform,
    sparsemax,
    entmax_1_5,
):
    REGISTRY.add(_map.name, _map, _map.summary)


def get(name: str | ScoreMap) -> Any:
    """The score map of that name; a score map is returned as it is.

    Raises:
        InputError: for an unknown name, with the nearest known ones.
    """
    return name if isinstance(name, ScoreMap) else REGISTRY.get(name)
