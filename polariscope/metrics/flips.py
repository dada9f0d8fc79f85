"""Whether one token decides a prediction."""

from typing import Any

from array_api_compat import array_namespace

from polariscope.errors import InputError
from polariscope.scores._base import Array


def flip_rate(predicted: Array, wanted: Array) -> Array:
    """The fraction of changed inputs whose prediction became the label that the change argues for.

        flip rate = mean of 1{predicted = wanted}

    Args:
        predicted: predicted labels after the change (swapping or mixing in one token), integers of any shape.
        wanted: the label each prediction would have if the changed token alone decided it, of the same shape.

    Returns:
        A fraction in [0, 1]: 1 where the token decides everything, 0 where it decides nothing.

    Raises:
        InputError: for labels that are not integers, for different shapes, and for no labels at all.
    """
    xp = _labels("predicted labels", predicted)
    _labels("wanted labels", wanted)
    if tuple(predicted.shape) != tuple(wanted.shape) or 0 in predicted.shape:
        raise InputError(
            "labels",
            got=f"shapes {tuple(predicted.shape)} and {tuple(wanted.shape)}",
            expected="two arrays of one shape, not empty",
            fix="give one wanted label per prediction",
        )
    count = xp.sum(xp.astype(predicted == wanted, xp.int32))
    size = 1
    for n in predicted.shape:
        size *= n
    return count / size


def _labels(what: str, x: Array) -> Any:
    try:
        xp = array_namespace(x)
    except TypeError:
        raise InputError(
            what, got=type(x).__name__, expected="an array of integers", fix="convert it, for example to NumPy"
        ) from None
    if not xp.isdtype(x.dtype, "integral"):
        raise InputError(what, got=f"dtype {x.dtype}", expected="integers", fix="give class indices or token ids")
    return xp
