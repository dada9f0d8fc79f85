"""Derivatives of the winner's log-odds: central differences of solved flows, and closed forms at small times."""

import numpy as np
import pytest
from scipy.special import expit, softmax

from polariscope import flow
from polariscope.errors import InputError


def log_odds(problem, winner, **time):
    s = flow.solve(problem, rtol=1e-12, **time).s[0]
    return np.log(s[winner]) - np.log(np.delete(s, winner).sum())


def difference(problem, key, place, winner, h=1e-4, **time):
    """A central difference of fourth order."""
    values = []
    for step in (-2, -1, 1, 2):
        moved = np.array(problem[key])
        moved[place] += step * h
        values.append(log_odds(problem | {key: moved}, winner, **time))
    return np.dot([1, -8, 8, -1], values) / (12 * h)


def agrees(problem, found, **time):
    """Whether derivatives with respect to some entries of everything are central differences."""
    derivatives = {**{f"{key}0": value for key, value in found.parameters.items()}, **found.data}
    for key, values in derivatives.items():
        for place in ((0,) * values.ndim, tuple(k - 1 for k in values.shape)):
            wanted = difference(problem, key, place, found.winner, **time)
            np.testing.assert_allclose(values[place], wanted, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("log_t", [-1.0, 3.0, 50.0, 1e5])
def test_in_path_time(log_t):
    problem = flow.random_problem("logistic", n=4, d=3, scale=0.7, seed=3)
    problem["target"] = (1.5 * np.array(problem["target"])).tolist()
    found = flow.sensitivity(problem, log_t=log_t)
    agrees(problem, found, log_t=log_t)
    assert found.log_odds == pytest.approx(log_odds(problem, found.winner, log_t=log_t), abs=1e-9)
    assert found.clock_error <= 1e-12 * max(1e3, log_t)
    assert abs(found.a0.sum()) < 1e-8  # softmax ignores shifts of a
    # The path depends on V0 through V0ᵀβ* alone.
    target = np.array(problem["target"])
    along = np.outer(target, target @ found.V0) / (target @ target)
    np.testing.assert_allclose(found.V0, along, rtol=1e-9, atol=1e-12)


def test_in_ordinary_time():
    problem = flow.random_problem("regression", n=4, d=3, scale=0.7, seed=3)
    random = np.random.default_rng(0)
    problem |= {"model": "keys", "K0": random.normal(size=(4, 2)), "q0": random.normal(size=2)}
    found = flow.sensitivity(problem, t=2.0)
    assert sorted(found.parameters) == ["K", "V", "q"]
    agrees(problem, found, t=2.0)
    assert np.abs(found.parameters["K"].sum(axis=0)).max() < 1e-8
    assert found.clock_error == 0


def test_small_times_in_closed_form():
    """To first order in t: L = L₀(a) + t·r·Σⱼ (∂L₀/∂aⱼ) sⱼ(uⱼ - z), and its derivative with respect to u by hand."""
    problem = flow.random_problem("logistic", n=4, d=3, scale=0.7, seed=3)
    t = 1e-6
    found = flow.sensitivity(problem, t=t)
    V0, a0, target = (np.array(problem[key]) for key in ("V0", "a0", "target"))
    s, u = softmax(a0), V0.T @ target
    w, z = int(s.argmax()), u @ s
    assert found.winner == w
    others = np.where(np.arange(4) == w, 0, s / (1 - s[w]))
    gradient = np.eye(4)[w] - others
    np.testing.assert_allclose(found.a0, gradient, rtol=0, atol=10 * t)
    r = expit(-z)
    drive = (gradient * s) @ (u - z)
    by_u = t * (-r * (1 - r) * s * drive + r * (gradient * s - (gradient @ s) * s))
    np.testing.assert_allclose(found.V0, np.outer(target, by_u), rtol=0, atol=100 * t**2)
    start = flow.sensitivity(problem, t=0.0)
    assert start.log_t == -np.inf
    np.testing.assert_allclose(start.a0, gradient, rtol=0, atol=1e-14)
    assert not start.V0.any()
    assert not start.data["target"].any()


GOOD = flow.random_problem("logistic", n=4, d=3, seed=0)


@pytest.mark.parametrize(
    ("problem", "time", "message"),
    [
        (flow.random_problem("logistic", n=1, seed=0), {"t": 1.0}, "at least 2"),
        (GOOD | {"scores": "sigmoid"}, {"t": 1.0}, "distributions"),
        (GOOD | {"scores": lambda a: a}, {"t": 1.0}, "distributions"),
        (GOOD, {"t": [1.0, 2.0]}, "one"),
        (GOOD | {"t": [1.0, 2.0]}, {}, "one"),
        (GOOD, {"t": -1.0}, "times from 0"),
        (GOOD | {"V0": [[0.1, 0.1, -2.0, -2.0]] * 3, "a0": [0.2, 0.2, 0.0, 0.0]}, {"t": 1.0}, "tie"),
        (GOOD | {"a0": [0.0, 0.0, 0.0, 800.0]}, {"t": 0.0}, "infinite"),
        (flow.random_problem("square", n=3, seed=0), {"log_t": 1e3}, "at most"),
        (GOOD | {"scores": "relu", "a0": [2.0, 1.0, 0.1, 0.1]}, {"log_t": 3.0}, "kink"),
    ],
)
def test_bad_input(problem, time, message):
    with pytest.raises(InputError, match=message):
        flow.sensitivity(problem, **time)
