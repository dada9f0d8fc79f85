"""Numbers as problems give them: read as arrays, of shapes that agree."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from polariscope.errors import InputError
from polariscope.flow.losses._loss import Loss
from polariscope.flow.models._model import Model


def needed(raw: Mapping[str, Any], loss: Loss, key: str, ndim: int) -> np.ndarray:
    """What a loss needs, as an array. Raises InputError where it is missing."""
    if key not in raw:
        raise InputError(
            f"missing {key}",
            got=", ".join(map(str, raw)),
            expected=f"{', '.join(loss.needs)} for the {loss.name} loss",
            fix=f"add {key}",
        )
    return array(raw[key], key, ndim)


def array(value: Any, what: str, ndim: int) -> np.ndarray:
    """A float64 array with ``ndim`` axes, none of them empty, all finite. Raises InputError naming ``what``."""
    kind = {0: "a number", 1: "a list of numbers", 2: "a list of rows of numbers, all of one length"}[ndim]
    try:
        numbers = np.array(value)
        if numbers.dtype.kind not in "iuf":  # not booleans, words, or integers beyond 64 bits
            raise TypeError
        result = numbers.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(
            what, got="something else than numbers, or rows of different lengths", expected=kind, fix=f"mend {what}"
        ) from None
    if result.ndim != ndim or result.size == 0:
        raise InputError(what, got=f"shape {result.shape}", expected=kind, fix=f"mend {what}")
    if not np.isfinite(result).all():
        raise InputError(what, got="NaN or infinite entries", expected="finite numbers", fix=f"mend {what}")
    return result


def check_shapes(
    model: Model, loss: Loss, parameters: Mapping[str, np.ndarray], data: Mapping[str, np.ndarray]
) -> None:
    """Every letter of a shape means one number: d and n from V0, others from where they come first."""
    V0 = parameters["V"]
    sizes = dict(zip("dn", V0.shape, strict=True))
    owner = {"d": "the rows of V0", "n": "the columns of V0"}
    if model.square and V0.shape[0] != V0.shape[1]:
        raise InputError(
            "V0", got=f"shape {V0.shape}", expected=f"a square matrix for the {model.name} model", fix="use d = n"
        )
    wanted = [(f"{name}0", parameters[name], letters) for name, letters in model.needs.items()]
    wanted += [(key, data[key], loss.needs[key]) for key in data]
    for key, value, letters in wanted:
        for letter, size in zip(letters, value.shape, strict=True):
            if sizes.setdefault(letter, size) != size:
                raise InputError(
                    f"shape of {key}",
                    got=str(value.shape),
                    expected=f"length {sizes[letter]}, as {owner.get(letter, 'the data before it')}",
                    fix=f"make {key} and V0 agree",
                )
            owner.setdefault(letter, f"the {'rows' if value.ndim == 2 else 'length'} of {key}")


def visible(raw: Any, n: int) -> np.ndarray:
    """The mask of a problem, all True by default."""
    if raw is None:
        return np.ones(n, bool)
    where = np.array(raw)
    if where.dtype != bool or where.shape != (n,) or not where.any():
        raise InputError(
            "where", got=repr(raw)[:80], expected=f"{n} booleans, True at visible keys, at least one", fix="mend where"
        )
    return where
