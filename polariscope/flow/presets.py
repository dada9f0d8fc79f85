"""Problems made to order: named recipes and random ones, with independent random streams for every part."""

from collections.abc import Callable
from typing import Any

import numpy as np

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


def random_problem(
    loss: str,
    *,
    scores: Any = "softmax",
    n: int = 8,
    d: int | None = None,
    scale: float = 1.0,
    seed: int = 0,
    t: Any = (1.0,),
) -> dict[str, Any]:
    """A value-model problem at a random state: V0 and a0 with entries scale·N(0, 1), random data for the loss.

    Targets are uniform on the unit sphere; X has d + 1 rows of N(0, 1)/√d and y = X·(a unit vector); p is uniform on
    the simplex.

    Raises:
        InputError: for an unknown loss, or n, d or seed that are not counts.
    """
    d = n if d is None else d
    for what, value, least in (("n", n, 1), ("d", d, 1), ("seed", seed, 0)):
        if not isinstance(value, int | np.integer) or value < least:
            raise InputError(
                what, got=repr(value), expected=f"an integer of at least {least}", fix=f"choose another {what}"
            )
    if loss not in _DATA:
        raise unknown_name("loss", loss, _DATA)
    random = streams(int(seed))
    start = {"V0": scale * random["V0"].normal(size=(d, n)), "a0": scale * random["a0"].normal(size=n)}
    parts = start | _DATA[loss](random, int(d))
    lists = {key: value.tolist() for key, value in parts.items()}
    return {"model": "value", "scores": scores, "loss": loss, **lists, "t": list(t)}


def _unit(random: np.random.Generator, d: int) -> np.ndarray:
    vector = random.normal(size=d)
    return vector / np.linalg.norm(vector)


def _target(random: dict[str, np.random.Generator], d: int) -> dict[str, np.ndarray]:
    return {"target": _unit(random["target"], d)}


def _regression(random: dict[str, np.random.Generator], d: int) -> dict[str, np.ndarray]:
    X = random["X"].normal(size=(d + 1, d)) / np.sqrt(d)
    return {"X": X, "y": X @ _unit(random["y"], d)}


def _distribution(random: dict[str, np.random.Generator], d: int) -> dict[str, np.ndarray]:
    return {"p": random["p"].dirichlet(np.ones(d))}


def _label(random: dict[str, np.random.Generator], d: int) -> dict[str, np.ndarray]:
    return {"label": np.array(random["label"].integers(d))}


_DATA: dict[str, Callable[[dict[str, np.random.Generator], int], dict[str, np.ndarray]]] = {
    "logistic": _target,
    "exponential": _target,
    "cross-entropy": _label,
    "square": _target,
    "regression": _regression,
    "kl": _distribution,
}
