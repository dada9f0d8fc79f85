"""What a law of a flow's late times is, and how it is judged: ratios, and exponents by least squares."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from polariscope.flow import losses
from polariscope.flow.problem import Problem
from polariscope.flow.result import Result
from polariscope.scores import ScoreMap

SLOPE_TOLERANCE = 0.05
"""How far a fitted exponent may be from the expected one, relative to it."""


@dataclass(frozen=True, eq=False)
class Series:
    """A measured quantity beside what a law says of it, at k places.

    Attributes:
        where: the places, (k,); log t, or what the law's ``places`` names instead.
        quantity, predicted: measured, and to leading order, (k,).
        refined: predicted with the next order, which may use the state itself, (k,); None where there is none.
        x, y: coordinates in which the law is a straight line y = const + slope·x, (k,); None if it fixes no slope.
        slope: what the law says it is.
        note: what was found beside it.
    """

    where: np.ndarray
    quantity: np.ndarray
    predicted: np.ndarray
    refined: np.ndarray | None = None
    x: np.ndarray | None = None
    y: np.ndarray | None = None
    slope: float = np.nan
    note: str = ""


@dataclass(frozen=True)
class Rate:
    """How well a law describes one flow.

    Attributes:
        law, statement: its name, and what it says.
        holds: whether ``refined_ratio`` (``ratio`` where there is no refinement) is within ``tolerance`` of 1, and the
            exponent within 5 % of the expected one; None where the law cannot be judged, and ``note`` says why.
        quantity, predicted: measured and to leading order, at the last place.
        ratio: quantity / predicted there. refined_ratio: with the next order.
        exponent, exponent_error: slope and its standard error, by least squares over the last places, in the
            coordinates where the law is a straight line. The points lie on a smooth curve without noise: the error
            measures its curvature.
        expected_exponent: what the law says.
        where: the last place, log t or what the statement names.
        tolerance: of the ratio.
    """

    law: str
    statement: str
    holds: bool | None
    quantity: float | None = None
    predicted: float | None = None
    ratio: float | None = None
    refined_ratio: float | None = None
    exponent: float | None = None
    exponent_error: float | None = None
    expected_exponent: float | None = None
    where: float | None = None
    tolerance: float = 0.0
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Everything by name."""
        return asdict(self)


@dataclass(frozen=True)
class Law:
    """A law of the late times of some flows.

    Args:
        name: in the registry. statement: one line of mathematics.
        applies: why a problem is not one of those that the law is about, or "".
        solve: the flow at the times at which the law is looked at; None where ``series`` makes flows of its own.
        series: measured and predicted, from the problem and that flow; or why they cannot be compared, in words.
        tolerance: by how much the last ratio may differ from 1.
        loose: by how much the ratio to leading order may, where the judged one uses the state itself.
        last: the share of the places, from the end, that exponents are fitted to.
    """

    name: str
    statement: str
    applies: Callable[[Problem], str]
    solve: Callable[[Problem], Result] | None
    series: Callable[[Problem, Any], Series | str]
    tolerance: float = 0.01
    loose: float = np.inf
    last: float = 1 / 3

    def rate(self, problem: Problem, result: Result | None = None) -> Rate:
        """The law held against one flow, whether or not it is about such flows.

        Args:
            problem: the problem, read.
            result: its flow at late times, instead of one that is solved here.
        """
        if result is None and self.solve is not None:
            result = self.solve(problem)
        series = self.series(problem, result)
        if isinstance(series, str):
            return Rate(self.name, self.statement, None, tolerance=self.tolerance, note=series)
        return self._judge(series)

    def _judge(self, series: Series) -> Rate:
        known = np.flatnonzero(np.isfinite(series.quantity) & np.isfinite(series.predicted) & (series.quantity > 0))
        if len(known) == 0:
            return Rate(self.name, self.statement, None, tolerance=self.tolerance, note="nothing to measure")
        end = known[-1]
        ratio = float(series.quantity[end] / series.predicted[end])
        refined = None if series.refined is None else float(series.quantity[end] / series.refined[end])
        good = abs((ratio if refined is None else refined) - 1) <= self.tolerance and abs(ratio - 1) <= self.loose
        slope = error = expected = None
        if series.x is not None and series.y is not None:
            late = known[-max(3, round(self.last * len(known))) :]
            slope, error = fitted_slope(series.x[late], series.y[late])
            expected = float(series.slope)
            good = good and abs(slope - expected) <= SLOPE_TOLERANCE * abs(expected)
        return Rate(
            self.name, self.statement, bool(good), float(series.quantity[end]), float(series.predicted[end]),
            ratio, refined, slope, error, expected, float(series.where[end]), self.tolerance, series.note,
        )  # fmt: skip


def fitted_slope(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """The slope of y over x, (k,) each, by least squares, and its standard error; NaN for fewer than three points."""
    from scipy.stats import linregress

    if len(x) < 3:
        return np.nan, np.nan
    line: Any = linregress(x, y)
    return float(line.slope), float(line.stderr)


def flow_at(problem: Problem, log_t: np.ndarray, **changed: Any) -> Result:
    """The flow of a problem at other times, (k,), or with other parts, such as V0 or the target."""
    from polariscope.flow.solver import solve

    return solve(mapping(problem, **changed), log_t=log_t)


def mapping(problem: Problem, **changed: Any) -> dict[str, Any]:
    """The problem in the form that `solve` takes."""
    parts = {"name": problem.name, "model": problem.model.name, "scores": problem.scores, "loss": problem.loss.name}
    start = {f"{name}0": value for name, value in problem.parameters.items()}
    return {**parts, **start, **problem.data, "where": problem.where, **changed}


LINEAR = ("logistic", "exponential")
"""Losses of the margin ⟨β*, β⟩, which share their paths."""


def kind(problem: Problem) -> tuple[str, str, str]:
    """The names of model, score map and loss; a function of one's own is called "custom"."""
    known = problem.loss.name in losses.REGISTRY and losses.get(problem.loss.name) is problem.loss
    scores = problem.scores.name if isinstance(problem.scores, ScoreMap) else "custom"
    return problem.model.name, scores, problem.loss.name if known else "custom"


def only_for(*, model: str = "value", scores: tuple[str, ...] = (), of: tuple[str, ...] = (), n: int = 2) -> Any:
    """A law's ``applies``: for this model, these score maps and losses (all, if empty), and at least n keys.

    Laws count the keys, so none of them may be hidden. Score maps at a temperature have names of their own.
    """

    def why_not(problem: Problem) -> str:
        name, score_map, loss = kind(problem)
        wrong = [
            f"the {what} is {got}"
            for what, got, allowed in (("model", name, (model,)), ("score map", score_map, scores), ("loss", loss, of))
            if allowed and got not in allowed
        ]
        wrong += [f"n < {n}"] * (len(problem.a0) < n) + ["keys are hidden"] * (not problem.where.all())
        return ", ".join(wrong)

    return why_not
