"""Laws of the late times of flows: how fast, to what constant, with what correction.

    >>> [rate.law for rate in rates(preset("logistic"))]
    ['softmax', 'clock']

A law is one file here and one line in ``REGISTRY``. `docs/theory.md` derives them.
"""

from collections.abc import Mapping
from typing import Any

from polariscope.flow.laws._law import Law, Rate, Series, fitted_slope
from polariscope.flow.problem import Problem, read_problem
from polariscope.flow.result import Result
from polariscope.registry import Registry

__all__ = ["REGISTRY", "Law", "Rate", "Series", "fitted_slope", "rates"]

_ROOM = "polariscope.flow.laws"
REGISTRY = Registry(
    "law",
    {
        "softmax": (f"{_ROOM}.tails:SOFTMAX", "1 - max s for softmax, linear margin"),
        "elu-normalized": (f"{_ROOM}.tails:ELU", "1 - max s for (elu + 1)/Σ, linear margin"),
        "sigmoid-normalized": (f"{_ROOM}.tails:SIGMOID_NORMALIZED", "1 - max s for sigmoid/Σ, linear margin"),
        "square": (f"{_ROOM}.square:LAW", "the second weight of a²/Σa², linear margin"),
        "sigmoid": (f"{_ROOM}.sigmoid:WEIGHTS", "1 - s_i for the elementwise sigmoid, linear margin"),
        "sigmoid-entropy": (f"{_ROOM}.sigmoid:ENTROPY", "entropy for the elementwise sigmoid, linear margin"),
        "clock": (f"{_ROOM}.clock:LAW", "log t along the path, linear margin"),
        "tied": (f"{_ROOM}.tied:LAW", "1 - max s for the tied model, logistic loss"),
        "stopped": (f"{_ROOM}.stopped:LAW", "1 - max s at the end, square loss, long targets"),
        "kept-spread": (f"{_ROOM}.kept_spread:LAW", "entropy at the end, losses that converge, almost uniform starts"),
        "approach": (f"{_ROOM}.approach:LAW", "the rate of convergence, losses that converge"),
    },
)


def rates(problem: Mapping[str, Any] | Problem, result: Result | None = None) -> tuple[Rate, ...]:
    """Every law that is about a problem, held against its flow at late times.

    Args:
        problem: as in `polariscope.flow.solve`; its own times are not used.
        result: its flow, to be judged at the times it has; by default flows are solved as far as each law needs.
            Laws that need flows of their own (tied, stopped, kept-spread, approach) do not look at it.

    Returns:
        one record per law that applies, in the order of ``REGISTRY``; none if there is no law for such problems.

    Raises:
        InputError: for a problem that cannot be read.
    """
    read = problem if isinstance(problem, Problem) else read_problem(problem, log_t=[0.0])
    laws = [law for law in map(REGISTRY.get, REGISTRY) if not law.applies(read)]
    solved: dict[Any, Result] = {}
    found = []
    for law in laws:
        if result is None and law.solve is not None and law.solve not in solved:
            solved[law.solve] = law.solve(read)
        found.append(law.rate(read, result or solved.get(law.solve)))
    return tuple(found)
