"""Problems made to order: named recipes and random ones, with independent random streams for every part."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import ortho_group

from polariscope.errors import InputError, unknown_name
from polariscope.flow import losses

DEFAULT_T = [1.0, 10.0, 1e2, 1e3, 1e4, 1e6, 1e8, 1e10, 1e12]
STREAMS = ("target", "V0", "a0", "X", "y", "p", "label", "K0", "q0")
"""Names of the random streams; new ones go to the end, so that the numbers of the others stay."""


def streams(seed: int) -> dict[str, np.random.Generator]:
    """One independent generator per part of a problem, so that a part does not depend on which others are drawn."""
    children = np.random.SeedSequence(seed).spawn(len(STREAMS))
    return {name: np.random.default_rng(child) for name, child in zip(STREAMS, children, strict=True)}


def preset(name: str = "logistic", n: int = 8, d: int | None = None, seed: int = 0, t: Any = None) -> dict[str, Any]:
    """A problem by recipe: softmax, value model; target a random unit vector, V0 and a0 with entries 0.1·N(0, 1).

    With the logistic and the square loss these are the scales of the paper's toy experiments. There the first row of V0
    repeats the target's random numbers; here every part has a stream of its own.

    Args:
        name: logistic | exponential | cross-entropy | square | regression | kl, the loss.
        n: number of keys. d: dimension of the predictor, n by default.
        seed: a non-negative integer.
        t: times, 1 to 10¹² by default for the logistic and the exponential loss, to 10³ for the others.
    """
    if name not in losses.REGISTRY:
        raise unknown_name("preset", name, losses.REGISTRY)
    problem = random_problem(name, n=n, d=d, scale=0.1, seed=seed)
    times = DEFAULT_T if losses.get(name).linear else [v for v in DEFAULT_T if v <= 1e3]
    return {"name": f"{name}-{n}-seed{seed}", **problem, "t": times if t is None else t}


@dataclass(frozen=True)
class Wanted:
    """What the data of a loss shall be like: dimension d, ‖β*‖, and the condition number κ of X, or None."""

    d: int
    target_norm: float
    condition_number: float | None


def random_problem(
    loss: str,
    *,
    scores: Any = "softmax",
    n: int = 8,
    d: int | None = None,
    scale: float = 1.0,
    seed: int = 0,
    t: Any = (1.0,),
    target_norm: float = 1.0,
    condition_number: float | None = None,
) -> dict[str, Any]:
    """A value-model problem at a random state: V0 and a0 with entries scale·N(0, 1), random data for the loss.

    Targets β* are uniform on the sphere of radius ``target_norm``; X has d + 1 rows of N(0, 1)/√d and y = Xβ*; p is
    uniform on the simplex. With ``condition_number`` = κ, X = P diag(σ) Qᵀ with random orthonormal columns P (d + 1, d)
    and Q (d, d), and singular values σ from 1 down to 1/κ, at equal ratios.

    Raises:
        InputError: for an unknown loss, n, d or seed that are not counts, and a target norm or condition number that
            is out of range or that the loss has no use for.
    """
    d = n if d is None else d
    for what, value, least in (("n", n, 1), ("d", d, 1), ("seed", seed, 0)):
        if not isinstance(value, int | np.integer) or value < least:
            raise InputError(
                what, got=repr(value), expected=f"an integer of at least {least}", fix=f"choose another {what}"
            )
    wanted = Wanted(int(d), target_norm, condition_number)
    check_data(loss, wanted)
    random = streams(int(seed))
    start = {"V0": scale * random["V0"].normal(size=(d, n)), "a0": scale * random["a0"].normal(size=n)}
    parts = start | _DATA[loss](random, wanted)
    lists = {key: value.tolist() for key, value in parts.items()}
    return {"model": "value", "scores": scores, "loss": loss, **lists, "t": list(t)}


def check_data(loss: str, wanted: Wanted) -> None:
    """Refuses data that the loss has no use for, or that cannot be made (InputError)."""
    if loss not in _DATA:
        raise unknown_name("loss", loss, _DATA)
    norm, kappa = wanted.target_norm, wanted.condition_number
    if not 0 < norm < np.inf:
        raise InputError("target_norm", got=repr(norm), expected="a positive finite number", fix="try 1.0")
    if norm != 1 and _DATA[loss] in (_distribution, _label):
        fix = "leave target_norm out, or take another loss"
        raise InputError("target_norm", got=f"the {loss} loss", expected="a loss that fits a vector", fix=fix)
    if kappa is None:
        return
    if loss != "regression":
        fix = "leave condition_number out, or take the regression loss"
        raise InputError("condition_number", got=f"the {loss} loss", expected="the regression loss, with X", fix=fix)
    if not 1 <= kappa < np.inf:
        raise InputError("condition_number", got=repr(kappa), expected="a finite number of at least 1", fix="try 10")
    if wanted.d == 1 and kappa != 1:
        raise InputError(
            "condition_number", got=f"{kappa!r} in one dimension", expected="1 for d = 1", fix="take d of at least 2"
        )


def _unit(random: np.random.Generator, d: int) -> np.ndarray:
    vector = random.normal(size=d)
    return vector / np.linalg.norm(vector)


def _target(random: dict[str, np.random.Generator], wanted: Wanted) -> dict[str, np.ndarray]:
    return {"target": wanted.target_norm * _unit(random["target"], wanted.d)}


def _regression(random: dict[str, np.random.Generator], wanted: Wanted) -> dict[str, np.ndarray]:
    d, kappa = wanted.d, wanted.condition_number
    if kappa is None:
        X = random["X"].normal(size=(d + 1, d)) / np.sqrt(d)
    else:
        P, Q = (ortho_group.rvs(size, random_state=random["X"])[:, :d] for size in (d + 1, d))
        X = P * np.geomspace(1.0, 1.0 / kappa, d) @ Q.T
    return {"X": X, "y": X @ (wanted.target_norm * _unit(random["y"], d))}


def _distribution(random: dict[str, np.random.Generator], wanted: Wanted) -> dict[str, np.ndarray]:
    return {"p": random["p"].dirichlet(np.ones(wanted.d))}


def _label(random: dict[str, np.random.Generator], wanted: Wanted) -> dict[str, np.ndarray]:
    return {"label": np.array(random["label"].integers(wanted.d))}


_DATA: Mapping[str, Callable[[dict[str, np.random.Generator], Wanted], dict[str, np.ndarray]]] = {
    "logistic": _target,
    "exponential": _target,
    "cross-entropy": _label,
    "square": _target,
    "regression": _regression,
    "kl": _distribution,
}
