"""Flows against an integration in 40 digits, made here; and that integration against a finer one of its own."""

import numpy as np
import oracle
import pytest
from scipy.special import softmax

from polariscope import flow

PROBLEMS = {
    "logistic": flow.random_problem("logistic", n=3, d=2, seed=1, t=[0.5, 10.0, 1000.0]),
    "square": flow.random_problem("square", n=3, d=2, seed=2, t=[0.5, 5.0]),
    "tied": flow.random_problem("logistic", n=2, d=2, seed=3, t=[1.0, 50.0]) | {"model": "tied"},
}
ORACLE = 1e-35
"""How far the weights are off in 40 digits, at most."""


@pytest.fixture(scope="module")
def exact():
    return {name: oracle.integrate(problem, problem["t"]) for name, problem in PROBLEMS.items()}


@pytest.mark.parametrize("name", PROBLEMS)
def test_half_the_step_more_terms_and_more_digits_change_nothing(name, exact):
    problem = PROBLEMS[name]
    finer = oracle.integrate(problem, problem["t"], digits=44, order=44, shorten=2)
    assert np.abs(finer - exact[name]).max() < ORACLE
    assert np.abs(finer.sum(axis=1) - 1).max() < ORACLE


@pytest.mark.parametrize(("rtol", "error"), [(1e-12, 1e-13), (1e-9, 1e-11)])
@pytest.mark.parametrize("name", PROBLEMS)
def test_weights_in_many_digits(name, rtol, error, exact):
    result = flow.solve(PROBLEMS[name], rtol=rtol)
    assert result.complete
    assert np.abs(result.s - exact[name].astype(float)).max() <= error


def test_the_paths_move():
    """So that agreement means something: the weights at the times are not those at the start."""
    for name in ("logistic", "square"):
        start = softmax(PROBLEMS[name]["a0"])
        assert np.abs(oracle.integrate(PROBLEMS[name], [0.5])[0].astype(float) - start).max() > 0.01
