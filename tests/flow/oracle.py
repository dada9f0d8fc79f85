"""Flows in 40 digits by Taylor series, in all parameters and ordinary time, written apart from the package.

Every quantity is a power series in time whose coefficients are computed one after the other, when asked for; the
parameters are the integrals of their own velocities. The series are summed at steps at which the last one is below the
tolerance.

Source: the method is the one of Jorba, Zou (2005), A software package for the numerical integration of ODEs by means of
high-order Taylor methods, Experimental Mathematics 14.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from functools import reduce
from operator import mul
from typing import Any

import numpy as np


@dataclass(eq=False)
class Series:
    """Σ cₖ hᵏ, with a rule that gives cₖ from coefficients that come before it."""

    rule: Callable[[int], Any]
    known: list[Any] = field(default_factory=list)

    def __getitem__(self, k: int) -> Any:
        while len(self.known) <= k:
            self.known.append(self.rule(len(self.known)))
        return self.known[k]

    def until(self, k: int) -> list[Any]:
        """The coefficients c₀ … cₖ."""
        self[k]
        return self.known[: k + 1]

    def __add__(self, other: "Series") -> "Series":
        return Series(lambda k: self[k] + other[k])

    def __sub__(self, other: "Series") -> "Series":
        return Series(lambda k: self[k] - other[k])

    def __neg__(self) -> "Series":
        return Series(lambda k: -self[k])

    def __mul__(self, other: "Series") -> "Series":
        return Series(lambda k: convolved(self, other, 0, k))

    def exp(self) -> "Series":
        """e = exp(x), from ė = ẋ e; NumPy's exp of an object array calls it."""
        slope = Series(lambda j: j * self[j])
        e = Series(lambda k: convolved(slope, e, 1, k) / k if k else self[0].exp())
        return e

    def inverse(self) -> "Series":
        """r = 1/x, from x r = 1."""
        r = Series(lambda k: -convolved(self, r, 1, k) / self[0] if k else 1 / self[0])
        return r

    def at(self, h: Any, order: int) -> Any:
        """The sum up to hᵒʳᵈᵉʳ."""
        return reduce(lambda total, k: total * h + self[k], range(order, -1, -1), Decimal(0))


def convolved(x: Series, y: Series, first: int, k: int) -> Any:
    """Σ xⱼ yₖ₋ⱼ over j from ``first`` to k."""
    return sum(map(mul, x.until(k)[first:], reversed(y.until(k - first))), Decimal(0))


def constants(values: Any) -> np.ndarray:
    """An object array of series without motion."""
    series = [Series(lambda k, c=Decimal(v): c if k == 0 else Decimal(0)) for v in np.ravel(values).tolist()]
    return np.array(series, dtype=object).reshape(np.shape(values))


def softmax(logits: np.ndarray) -> np.ndarray:
    e = np.exp(logits - constants(float(logits[0][0])))
    return e * e.sum().inverse()


def weights(problem: dict[str, Any], V: np.ndarray, a: np.ndarray) -> np.ndarray:
    return softmax(V @ a if problem["model"] == "tied" else a)


def velocity(problem: dict[str, Any], V: np.ndarray, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(V̇, ȧ) of softmax with the value or the tied model, for the logistic and the square loss."""
    target = constants(problem["target"])
    s = weights(problem, V, a)
    beta = V @ s
    if problem["loss"] == "square":
        force = target - beta
    else:
        force = target * (np.exp(target @ beta) + constants(1.0).item()).inverse()
    pull = V.T @ force
    back = s * (pull - s @ pull)
    if problem["model"] == "value":
        return np.outer(force, s), back
    return np.outer(force, s) + np.outer(back, a), V.T @ back


def shaped(problem: dict[str, Any], parameters: list[Series]) -> tuple[np.ndarray, np.ndarray]:
    """(V, a) of the parameters in one list."""
    flat, (d, n) = np.array(parameters, dtype=object), np.shape(problem["V0"])
    return flat[: d * n].reshape(d, n), flat[d * n :]


def moving(problem: dict[str, Any], y: list[Any]) -> list[Series]:
    """The parameters as series that start at y, each the integral of its velocity."""
    parameters = [Series(lambda k, start=start: start) for start in y]
    V, a = velocity(problem, *shaped(problem, parameters))
    for one, start, speed in zip(parameters, y, [*V.ravel(), *a], strict=True):
        one.rule = lambda k, start=start, speed=speed: speed[k - 1] / k if k else start
    return parameters


def integrate(
    problem: dict[str, Any], times: list[float], *, digits: int = 40, order: int = 40, shorten: int = 1
) -> np.ndarray:
    """The weights s at the increasing times, (len(times), n), as decimal numbers.

    Args:
        digits: of the arithmetic; the last terms of the series are below 10^(4 - digits).
        order: of the series.
        shorten: by how much the steps are shorter than that.
    """
    with localcontext(prec=digits):
        y, t, found = [Decimal(v) for v in [*np.ravel(problem["V0"]).tolist(), *problem["a0"]]], Decimal(0), []
        for end in map(Decimal, times):
            while t < end:
                parameters = moving(problem, y)
                h = min(end - t, Decimal(step(parameters, digits, order) / shorten))
                y, t = [one.at(h, order) for one in parameters], t + h
            found.append([one[0] for one in weights(problem, *shaped(problem, moving(problem, y)))])
        return np.array(found)


def step(parameters: list[Series], digits: int, order: int) -> float:
    """The step at which the last two terms of every series are below 10^(4 - digits)."""
    sizes = [(float(abs(one[k])), k) for one in parameters for k in (order - 1, order)]
    return min(10.0 ** ((4 - digits) / k) * size ** (-1 / k) for size, k in sizes if size > 0)
