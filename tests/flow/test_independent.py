"""Fresh problems of other kinds, and hard starts, against SciPy in all parameters or in path time."""

import numpy as np
import pytest
from numpy_flow import integrate
from scipy.integrate import solve_ivp
from scipy.special import softmax

from polariscope import flow

TIMES = [0.3, 2.0, 20.0, 300.0]


@pytest.mark.parametrize("margin", [-30.0, 25.0])
def test_logistic_softmax_from_a_large_margin(margin):
    problem = flow.random_problem("logistic", n=8, d=3, scale=0.3, seed=7)
    target = np.array(problem["target"])
    problem["V0"] = (np.array(problem["V0"]) + margin * target[:, None]).tolist()
    times = [1.0, 20.0, 40.0, 100.0]
    result = flow.solve(problem, t=times)
    np.testing.assert_allclose(result.s, integrate(problem, times), rtol=0, atol=1e-9)
    V0, s0 = np.array(problem["V0"]), softmax(problem["a0"])
    start = flow.solve(problem, t=[0.0])
    assert start.log_objective[0] == pytest.approx(np.log(np.logaddexp(0, -target @ V0 @ s0)), abs=1e-12)


@pytest.mark.parametrize(
    ("loss", "scores", "model"), [("regression", "elu-normalized", "value"), ("logistic", "sigmoid", "tied")]
)
def test_other_losses_maps_and_models(loss, scores, model):
    for seed in (3, 4):
        problem = flow.random_problem(loss, scores=scores, n=4, d=4, scale=0.5, seed=seed) | {"model": model}
        result = flow.solve(problem, t=TIMES)
        assert result.complete
        np.testing.assert_allclose(result.s, integrate(problem, TIMES, "LSODA"), rtol=0, atol=1e-8)


def test_one_curve_two_clocks():
    """From V(0) = 0, logistic and square loss follow the same path, which SciPy integrates in path time."""
    problem = flow.preset("logistic", n=8, seed=2) | {"V0": np.zeros((8, 8)).tolist()}
    problem["target"] = (2.0 * np.array(problem["target"])).tolist()

    def path(tau, y):
        u, a = y[:8], y[8:]
        s = softmax(a)
        return np.concatenate([4.0 * s, s * (u - s @ u)])

    start = np.concatenate([np.zeros(8), problem["a0"]])
    solution = solve_ivp(path, (0, 12), start, method="DOP853", rtol=1e-12, atol=1e-13, dense_output=True)
    for loss in ("logistic", "square"):
        result = flow.solve(problem | {"loss": loss}, t=[0.2, 1.0, 3.0, 5.0])
        tau = result.u.sum(axis=1) / 4.0
        np.testing.assert_allclose(result.s, softmax(solution.sol(tau)[8:].T, axis=1), rtol=0, atol=1e-8)
        if loss == "logistic":
            np.testing.assert_allclose(result.tau, tau, rtol=1e-9)
    end = flow.solve(problem | {"loss": "square"}, t=[1e3])
    assert end.status == "converged"
    assert end.s[-1] @ end.u[-1] == pytest.approx(4.0, abs=1e-8)


def test_a_leader_that_is_overtaken():
    """The first to lead in s has the smallest u; the change of leader must not cost accuracy."""
    problem = flow.random_problem("logistic", n=8, scale=1.0, seed=11)
    u = np.array(problem["V0"]).T @ np.array(problem["target"])
    problem["a0"] = (-0.2 * u).tolist()
    result = flow.solve(problem, t=[0.1, 30.0, 1000.0])
    assert result.s[0].argmax() == u.argmin()
    assert result.s[-1].argmax() == u.argmax()
    np.testing.assert_allclose(result.s, integrate(problem, result.t), rtol=0, atol=1e-9)
    assert {check.name: check.holds for check in result.checks}["order of s"] is None


def test_tighter_tolerances_tend_to_one_answer():
    problem = flow.preset("logistic", n=8, seed=12)
    times = np.geomspace(0.1, 1e6, 20)
    exact = flow.solve(problem, log_t=times, rtol=1e-12).s
    errors = [np.abs(flow.solve(problem, log_t=times, rtol=rtol).s - exact).max() for rtol in (1e-5, 1e-7, 1e-9)]
    for rtol, error in zip((1e-5, 1e-7, 1e-9), errors, strict=True):
        assert error <= 3 * rtol
    assert errors[0] > errors[1] > errors[2]


def test_column_norms_are_those_of_v():
    problem = flow.random_problem("logistic", n=8, d=3, scale=0.5, seed=13)
    target, V0 = np.array(problem["target"]), np.array(problem["V0"])
    result = flow.solve(problem, t=[0.0, 5.0, 500.0])
    for u, norms in zip(result.u, result.column_norms, strict=True):
        V = V0 + np.outer(target, u - V0.T @ target) / (target @ target)
        np.testing.assert_allclose(norms, np.linalg.norm(V, axis=0), rtol=1e-9)
