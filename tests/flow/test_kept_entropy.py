"""What entropy regression and the square loss keep: by the length of the way, not by the condition number."""

import json
from pathlib import Path

import numpy as np
from scipy.stats import ortho_group

from polariscope import flow


def test_condition_number_matters_through_the_length_of_the_solution():
    """A stored problem with κ = 5, X = I with its solution, and the same X with a shorter solution."""
    stored = json.loads((Path(__file__).parents[1] / "data" / "flows.json").read_text())
    ill = next(p for p in stored if p["name"] == "regression-kappa5-20")
    solution = np.linalg.solve(np.array(ill["X"]), np.array(ill["y"]))
    well = ill | {"X": np.eye(20).tolist(), "y": solution.tolist()}
    short = ill | {"y": (np.array(ill["y"]) * 4.157 / np.linalg.norm(solution)).tolist()}
    ends = flow.solve_many([ill, well, short], t=[3e3])
    kept = [float(end.normalized_entropy[-1]) for end in ends]
    assert kept[0] < 0.2
    assert kept[1] < 0.3
    assert kept[2] > 0.99


def regression(n, seed, kappa):
    """Singular values evenly from 1 to 1/κ, y of length 4, a start of 10⁻³; and the length of the way of v."""
    random = np.random.default_rng([seed, n])
    P, Q = (ortho_group.rvs(n, random_state=random) for _ in range(2))
    y = random.normal(size=n)
    y *= 4 / np.linalg.norm(y)
    sigma = np.linspace(1, 1 / kappa, n)
    start = {"V0": 1e-5 * random.normal(size=(n, n)), "a0": 1e-3 * random.normal(size=n)}
    way = -np.expm1(-np.outer(np.exp(np.linspace(-12, 16, 4000)), sigma**2)) * (P.T @ y / sigma)
    made = {"model": "value", "scores": "softmax", "loss": "regression", "X": P * sigma @ Q.T, "y": y, **start}
    return made, np.linalg.norm(np.diff(way, axis=0), axis=1).sum()


def test_entropy_falls_with_the_length_of_the_way_not_with_the_condition_number():
    """A threshold at L = log(2/δ) + c; κ alone explains half of the variance."""
    for n in (4, 8):
        kappa = np.repeat([2.0, 4.0, 6.0, 8.0], 8)
        made = [regression(n, seed, k) for seed, k in zip(np.tile(range(8), 4), kappa, strict=True)]
        ends = flow.solve_many([problem for problem, _ in made], t=[1e4])
        assert {end.status for end in ends} == {"converged"}
        kept, length = np.array([end.normalized_entropy[-1] for end in ends]), np.array([way for _, way in made])
        threshold = np.log(2e3)
        assert (kept[length < threshold - 0.6] > 0.9).all()
        assert (kept[length > threshold + 6.4] < 0.2).all()
        assert np.sum(length > threshold + 6.4) > 5
        far = kappa >= 4
        explained = [np.corrcoef(x[far], np.log(kept[far]))[0, 1] ** 2 for x in (np.log(kappa), np.log(length))]
        assert explained[0] < 0.7
        assert explained[1] > 0.9


def test_half_the_entropy_is_lost_at_a_length_that_grows_like_the_logarithm_of_the_spread():
    """Straight ways: L at H = ½ log n less log(2/δ) does not know δ."""
    random = np.random.default_rng(0)
    direction, spread = np.eye(8)[0], random.normal(size=8)
    beyond = np.arange(-0.5, 4.5, 0.25)
    found = []
    for delta in (1e-2, 1e-4, 1e-7):
        start = {"model": "value", "scores": "softmax", "loss": "square", "V0": np.zeros((8, 8)), "a0": delta * spread}
        ends = [flow.shared_path(start | {"target": (np.log(2 / delta) + x) * direction}, t=[1e6]) for x in beyond]
        found.append(np.interp(-0.5, -np.array([end.normalized_entropy[-1] for end in ends]), beyond))
    np.testing.assert_allclose(found, found[-1], atol=0.01)
    assert 1 < found[-1] < 3
