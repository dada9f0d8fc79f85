"""The clock: how t grows along the path of the logistic and of the exponential loss."""

import numpy as np

from polariscope.flow.laws._law import LINEAR, Law, Series, only_for
from polariscope.flow.laws.tails import late
from polariscope.flow.problem import Problem
from polariscope.flow.result import Result
from polariscope.flow.tracks import norm_of

LATEST = 1e7
"""log t beyond which log t - z is lost in the relative accuracy of the two, 1e-10."""


def series(problem: Problem, result: Result) -> Series | str:
    """t e^{-z}, in the log domain, beside 1/(‖β*‖²‖s‖²): at late times z' = ‖β*‖²‖s‖² and t = e^z/z'."""
    assert result.u is not None
    z = (result.u * result.s).sum(axis=1)
    predicted = 1 / (np.sum(result.s**2, axis=1) * norm_of(problem) ** 2)
    with np.errstate(over="ignore"):
        quantity = np.where(result.log_t < LATEST, np.exp(result.log_t - z), np.nan)
    return Series(result.log_t, quantity, predicted, None, z, result.log_t, 1.0)


LAW = Law("clock", "t e^(-z) = 1/(‖β*‖²‖s‖²), so log t = z + O(1), as t → ∞", only_for(of=LINEAR, n=1), late, series)
