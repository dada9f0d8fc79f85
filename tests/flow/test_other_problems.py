"""Problems of all losses, models, score maps and several sizes, against SciPy in all parameters, written by hand."""

import numpy as np
import pytest
from numpy_flow import KINKED, integrate

from polariscope import flow

SMOOTH = (
    "softmax", "square", "sigmoid-normalized", "elu-normalized", "softmax-off-by-one", "sigmoid", "identity",
    "entmax-1.5",
)  # fmt: skip
TIMES = [0.1, 3.0, 50.0, 1e3]


def conditioned(d, condition_number, seed):
    """X (d + 1, d) with singular values from 1 to 1/κ, and y in its range."""
    random = np.random.default_rng(seed)
    left, right = (np.linalg.qr(random.normal(size=(rows, d)))[0] for rows in (d + 1, d))
    X = left * np.geomspace(1.0, 1.0 / condition_number, d) @ right.T
    return {"X": X.tolist(), "y": (X @ random.normal(size=d)).tolist()}


def start(loss, scores, n, d, seed, **more):
    """A problem from which maps with kinks lose keys."""
    problem = flow.random_problem(loss, scores=scores, n=n, d=d, scale=0.5, seed=seed, t=TIMES)
    logits = np.array(problem["a0"])
    if scores in KINKED:
        logits = 0.4 * logits if scores == "sparsemax" else 0.2 + np.abs(logits)
    named = {"name": f"{more.get('model', 'value')} {loss} {scores} n={n} seed={seed}", "a0": logits.tolist()}
    return problem | named | more


def keys(n, seed):
    random = np.random.default_rng(seed)
    return {"K0": random.normal(size=(n, 2)).tolist(), "q0": random.normal(size=2).tolist()}


REGRESSIONS = (
    ("softmax", 1.0), ("softmax", 10.0), ("softmax", 100.0), ("square", 10.0), ("elu-normalized", 100.0),
    ("softmax-off-by-one", 100.0), ("sigmoid", 100.0), ("identity", 10.0),
)  # fmt: skip
# Eight of a kind at most, which are compiled in half the time that more take.
MADE = [
    *(start("logistic", scores, 30, 6, seed) for seed, scores in enumerate(SMOOTH, 100)),
    *(start("exponential", scores, 2, 1, seed) for seed, scores in enumerate(KINKED, 200)),
    *(start("exponential", "softmax", 5, 3, 205, temperature=temperature) for temperature in (0.3, 4.0)),
    start("exponential", "entmax-1.5", 5, 3, 206, temperature=2.0),
    *(start("regression", scores, 6, 4, 300, **conditioned(4, number, 301)) for scores, number in REGRESSIONS),
    *(start("kl", scores, 3, 7, seed) for seed, scores in enumerate((*KINKED, "square"), 400)),
    start("kl", "softmax", 3, 7, 410) | {"t": [1.0, 1e4]},
    start("kl", "sigmoid-normalized", 3, 7, 411, temperature=0.5),
    *(start("cross-entropy", scores, 4, 4, seed, model="tied") for seed, scores in enumerate(SMOOTH[::2], 500)),
    *(start("square", scores, 5, 2, seed, model="query", **keys(5, seed)) for seed, scores in enumerate(SMOOTH[::3])),
]
PROBLEMS = {f"{i} {p['name']}": p for i, p in enumerate(MADE)}


@pytest.fixture(scope="module")
def solved():
    return dict(zip(PROBLEMS, flow.solve_many(PROBLEMS.values()), strict=True))


@pytest.mark.parametrize("name", PROBLEMS)
def test_weights_equal_those_of_scipy(solved, name):
    problem, got = PROBLEMS[name], solved[name]
    reached = np.isfinite(got.s).all(axis=1)
    assert reached[0]
    assert got.complete or (got.status == "kink" and problem["scores"] in KINKED)
    np.testing.assert_allclose(got.s[reached], integrate(problem, problem["t"])[reached], rtol=0, atol=1e-8)
