"""Kinks of relu, L1, sparsemax and the elementwise relu: located, crossed, and refused where the path is not unique."""

import json

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.special import expit

from polariscope import flow, scores
from polariscope.files import plain

TIMES = [1.0, 10.0, 100.0, 1000.0]


def start(scores_name, loss, seed):
    """A start from which several keys lose their weight."""
    problem = flow.random_problem(loss, scores=scores_name, n=5, d=3, scale=0.5, seed=seed)
    a0 = np.array([0.4, 0.7, 0.5, 0.6, 0.8]) if scores_name != "sparsemax" else 0.2 * np.array(problem["a0"])
    return problem | {"a0": a0.tolist()}


def by_scipy(problem, times):
    """s in all parameters with the map as it is. Past a kink its velocity is 0, so an overshoot rests."""
    V0, a0, target = (np.array(problem[key]) for key in ("V0", "a0", "target"))
    d, n = V0.shape
    score_map = scores.get(problem["scores"])

    def velocity(_, y):
        V, a = y[: d * n].reshape(d, n), y[d * n :]
        s = score_map(a)
        beta = V @ s
        g = -expit(-target @ beta) * target if problem["loss"] == "logistic" else beta - target
        return np.concatenate([-np.outer(g, s).ravel(), -score_map.vjp(a, V.T @ g)])

    begin = np.concatenate([V0.ravel(), a0])
    path = solve_ivp(velocity, (0, times[-1]), begin, method="RK45", rtol=1e-9, atol=1e-11, t_eval=times)
    return np.array([score_map(y[d * n :]) for y in path.y.T])


@pytest.mark.parametrize("loss", ["logistic", "square"])
@pytest.mark.parametrize("name", ["relu", "sparsemax", "relu-elementwise"])
def test_crossed_kinks_equal_scipy_on_the_map_as_it_is(name, loss):
    crossed = 0
    for result, problem in zip(
        flow.solve_many([start(name, loss, seed) for seed in range(4)], t=TIMES),
        [start(name, loss, seed) for seed in range(4)],
        strict=True,
    ):
        assert result.complete or result.status == "kink"
        reached = np.isfinite(result.s).all(axis=1)
        assert reached[0]
        np.testing.assert_allclose(result.s[reached], by_scipy(problem, TIMES)[reached], rtol=0, atol=3e-7)
        crossed += len(result.stats["kinks"])
    assert crossed >= (1 if name == "relu-elementwise" else 3)  # else this test tests nothing


@pytest.mark.parametrize("loss", ["logistic", "square"])
def test_positive_logits_make_l1_and_relu_one_flow(loss):
    """At 0 relu has no velocity left and L1 one that points back: both rest there."""
    for seed in range(3):
        one, other = (flow.solve(start(name, loss, seed), t=TIMES) for name in ("relu", "l1"))
        np.testing.assert_allclose(one.s, other.s, rtol=0, atol=1e-9)
        assert one.stats["kinks"] == other.stats["kinks"]


@pytest.mark.parametrize("name", ["relu", "l1", "sparsemax"])
def test_all_but_one_key_lose_their_weight_one_by_one(name):
    problem = start(name, "logistic", 5)
    result = flow.solve(problem, log_t=[1.0, 50.0, 1e6])
    alive = int((scores.get(name)(np.array(problem["a0"])) > 0).sum())
    assert result.status == "ok"
    assert len(result.stats["kinks"]) == alive - 1
    assert sorted(result.s[-1]) == [0.0] * 4 + [1.0]
    assert np.diff([kink["log_t"] for kink in result.stats["kinks"]]).min() > 0


@pytest.mark.parametrize("loss", ["logistic", "square"])
@pytest.mark.parametrize("name", ["relu", "l1"])
def test_a_start_on_a_kink_that_may_be_left_or_not(name, loss):
    problem = start(name, loss, 1) | {"a0": [0.0, 0.5, 1.0, 1.5, 2.0]}
    V0 = 0.1 * np.outer(problem["target"], [9.0, 1.0, 1.0, 1.0, 1.0])
    result = flow.solve(problem | {"V0": V0.tolist()}, t=[0.1, 1.0])
    assert result.status == "kink"
    assert "not unique" in result.message
    assert np.isnan(result.s).all()
    json.dumps(plain(result.to_dict()), allow_nan=False)
    rests = flow.solve(problem | {"V0": (-V0).tolist()}, t=[0.1, 1.0])
    assert rests.complete
    assert (rests.s[:, 0] == 0).all()


def test_no_weight_at_all_rests():
    problem = start("relu", "logistic", 1) | {"a0": [-1.0, -2.0, -0.5, -1.0, -3.0]}
    result = flow.solve(problem, t=[1.0, 100.0])
    assert result.status == "converged"
    assert (result.s == 0).all()


def test_hidden_keys_have_no_part_in_the_flow():
    full = flow.random_problem("logistic", n=5, d=3, scale=0.5, seed=3)
    V0, a0 = np.array(full["V0"]), np.array(full["a0"])
    shown = np.array([True, False, True, True, False])
    for loss in ("logistic", "square"):
        for name in ("softmax", "relu", "square", "sparsemax"):
            masked = full | {"loss": loss, "scores": name, "where": shown.tolist(), "a0": (a0 + 1).tolist()}
            less = masked | {"V0": V0[:, shown].tolist(), "a0": (a0 + 1)[shown].tolist()}
            less.pop("where")
            one, other = flow.solve(masked, t=TIMES), flow.solve(less, t=TIMES)
            np.testing.assert_allclose(one.s[:, shown], other.s, rtol=0, atol=1e-9)
            assert (one.s[:, ~shown] == 0).all()


@pytest.mark.parametrize("loss", ["logistic", "square"])
def test_temperature_is_a_change_of_units(loss):
    """With b = a/T, ḃ is 1/T² of what it is at T = 1; V is not rescaled, so only homogeneous maps do not notice."""
    problem = flow.random_problem(loss, scores="square", n=4, d=3, seed=2)
    one, other = flow.solve(problem, t=TIMES), flow.solve(problem | {"temperature": 3.0}, t=TIMES)
    np.testing.assert_allclose(one.s, other.s, rtol=0, atol=1e-9)
    soft = problem | {"scores": "softmax"}
    scaled = {"scores": lambda a: scores.get("softmax")(a / 3.0)}
    one, other = flow.solve(soft | {"temperature": 3.0}, t=TIMES), flow.solve(soft | scaled, t=TIMES)
    np.testing.assert_allclose(one.s, other.s, rtol=0, atol=1e-9)
