"""Reading problems: a gradient flow to solve, checked in full before anything runs."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from polariscope import scores as score_maps
from polariscope.errors import InputError
from polariscope.flow import losses, models
from polariscope.flow.arrays import array, check_shapes, needed, visible
from polariscope.flow.charts import declares, masks
from polariscope.flow.losses._loss import Loss
from polariscope.flow.models._model import Model
from polariscope.flow.own_functions import as_loss, as_score_map, try_loss, try_score_map
from polariscope.flow.times import read_times
from polariscope.scores.tempered import Tempered

LARGEST_WEIGHT = 1e12
"""A start with a weight beyond this is at a pole of the score map, but for rounding."""
KEYS = ("model", "scores", "loss", "V0")
OPTIONAL = ("temperature", "where")
MEANT = {"temp": "temperature", "T": "temperature", "mask": "where", "visible": "where"}
"""Other names of the optional keys, which are refused."""


class NoStart(InputError):
    """A problem that is well formed, but whose start the score map does not define."""


@dataclass(frozen=True, eq=False)
class Problem:
    """Gradient flow of L(V, a) = ℓ(V σ(a)) from (V0, a0), wanted at given times.

    Args:
        name: for messages and tables.
        model: value or tied.
        scores: the score map σ.
        loss: ℓ.
        parameters: where the flow starts, by name: V (d, n) and what the model needs.
        data: what the loss needs, by key.
        where: the keys that are visible, boolean (n,).
        log_t: times as log t, increasing, (k,); log 0 is -inf.
    """

    name: str
    model: Model
    scores: Any
    loss: Loss
    parameters: Mapping[str, np.ndarray]
    data: Mapping[str, np.ndarray]
    log_t: np.ndarray
    where: np.ndarray

    @property
    def V0(self) -> np.ndarray:
        """Values at the start, (d, n)."""
        return self.parameters["V"]

    @property
    def a0(self) -> np.ndarray:
        """What results call a, at the start, (n,): the logits, or the tied model's parameter."""
        return self.model.shown(self.parameters)


def read_problem(raw: Any, *, label: str = "problem", t: Any = None, log_t: Any = None) -> Problem:
    """A problem from the mapping form of problem files; ``t`` or ``log_t`` replace the times in it.

    Raises:
        InputError: for unknown names, missing keys, wrong shapes, numbers that are not finite, times out of order;
            `NoStart` for logits at which the score map is not defined.
    """
    return _named(raw, label, _given(t, log_t))


def _given(t: Any, log_t: Any) -> np.ndarray | None:
    """The times given as arguments, if any."""
    return None if t is None and log_t is None else read_times({}, t, log_t)


def _named(raw: Any, label: str, times: np.ndarray | None) -> Problem:
    """A problem, with its name in what is wrong with it; ``times`` replace its own."""
    if not isinstance(raw, Mapping):
        raise InputError(label, got=type(raw).__name__, expected="an object with " + ", ".join(KEYS), fix="see docs")
    name = str(raw.get("name") or label)
    try:
        return _read(raw, name, times)
    except InputError as problem:
        what = (
            problem.what if name == "problem" else f"{label if name == label else f'{label} ({name})'}: {problem.what}"
        )
        raise type(problem)(what, got=problem.got, expected=problem.expected, fix=problem.fix) from None


def _read(raw: Mapping[str, Any], name: str, times: np.ndarray | None) -> Problem:
    known = {"model": models.REGISTRY, "scores": score_maps.REGISTRY, "loss": losses.REGISTRY}
    for key, registry in known.items():  # a misspelt name is a better message than a missing key
        if key in raw and not callable(raw[key]):
            registry.get(raw[key])
    _refuse_missing(raw, KEYS)
    _refuse_misspelt(raw)
    model, loss = models.get(raw["model"]), as_loss(raw["loss"])
    _refuse_missing(raw, [*KEYS, *(f"{name}0" for name in model.needs)])
    shapes = {"V": "dn", **model.needs}
    parameters = {name: array(raw[f"{name}0"], f"{name}0", len(shape)) for name, shape in shapes.items()}
    data = {key: needed(raw, loss, key, len(shape)) for key, shape in loss.needs.items()}
    check_shapes(model, loss, parameters, data)
    loss.check(data, len(parameters["V"]))
    scores = as_score_map(raw["scores"], raw.get("temperature"))
    where = visible(raw.get("where"), parameters["V"].shape[1])
    if not where.all() and not masks(scores):
        raise InputError(
            "where", got="a mask with a function of your own", expected="a registered score map", fix="leave it out"
        )
    own = not isinstance(raw["loss"], str)
    if own or _may_lack_start(scores):
        s = _start(scores, model.logits(parameters), where)
        if own:
            try_loss(loss, parameters["V"] @ s, data)
    times = read_times(raw) if times is None else times
    return Problem(name, model, scores, loss, parameters, data, times, where)


def _refuse_missing(raw: Mapping[str, Any], wanted: Sequence[str]) -> None:
    missing = [key for key in wanted if key not in raw]
    if missing:
        raise InputError(
            "missing keys",
            got=", ".join(map(str, raw)) or "none",
            expected=", ".join(wanted),
            fix=f"add {', '.join(missing)}",
        )


def _refuse_misspelt(raw: Mapping[str, Any]) -> None:
    """Other keys are notes, such as the results in a file of references; but a temperature is not lost to a typo."""
    for key in raw:
        if key not in OPTIONAL and (near := _near(str(key))):
            raise InputError("key", got=repr(key), expected=" or ".join(OPTIONAL), fix=f"did you mean {near[0]!r}?")


@lru_cache(maxsize=256)  # lists of problems have the same keys again and again
def _near(key: str) -> list[str]:
    """The optional key that this may be meant to be, if there is one."""
    return [MEANT[key]] if key in MEANT else difflib.get_close_matches(key, OPTIONAL, n=1, cutoff=0.8)


def _may_lack_start(scores: Any) -> bool:
    """Whether weights may be undefined: not for maps that ignore shifts, but quotients by a temperature overflow."""
    return isinstance(scores, Tempered) or not declares(scores, "shift_invariant")


def _start(scores: Any, logits: np.ndarray, where: np.ndarray) -> np.ndarray:
    """The weights at the start, (n,). Refuses logits at a pole of f(a)/Σf(a), where no flow can start."""
    if not isinstance(scores, score_maps.ScoreMap):
        return try_score_map(scores, logits)
    s = np.asarray(scores(logits, where) if masks(scores) else scores(logits))
    pole = scores.properties.sums_to_one and not scores.properties.non_negative
    if not (np.abs(s) < (LARGEST_WEIGHT if pole else np.inf)).all():
        raise NoStart(
            "starting point",
            got=f"logits at which the score map {scores.name} is not defined"
            + (": their sum is 0, but for rounding, a pole of a/Σa" if pole else ""),
            expected="finite attention weights",
            fix="move a0 away from the pole" if pole else "make a0 smaller",
        )
    return s


def read_problems(raw: Any, *, t: Any = None, log_t: Any = None) -> list[Problem]:
    """One problem or a list of them, always as a list. Raises InputError with the place in the list."""
    if isinstance(raw, Sequence) and not isinstance(raw, str):
        if not raw:
            raise InputError("problems", got="an empty list", expected="at least one problem", fix="add one")
        times = _given(t, log_t)
        return [_named(one, f"problem {i}", times) for i, one in enumerate(raw)]
    return [read_problem(raw, t=t, log_t=log_t)]
