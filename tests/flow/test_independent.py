"""Fresh problems against SciPy in all parameters, and against gradient descent with smaller and smaller steps."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.special import softmax
from tests.flow.numpy_flow import integrate, velocity

from polariscope import flow

TIMES = [0.3, 2.0, 20.0, 300.0]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("norm", "scale"), [(1.0, 0.1), (3.0, 1.0), (0.2, 2.0)])
def test_logistic_softmax_of_any_target_norm(seed, norm, scale):
    problem = flow.random_problem("logistic", n=8, d=3, scale=scale, seed=100 + seed)
    problem["target"] = (norm * np.array(problem["target"])).tolist()
    result = flow.solve(problem, t=TIMES)
    np.testing.assert_allclose(result.s, integrate(problem, TIMES), rtol=0, atol=1e-9)


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


def test_the_flow_is_the_limit_of_gradient_descent():
    problem = flow.preset("logistic", n=8, seed=5)
    exact = flow.solve(problem, t=[10.0]).s[0]
    errors = []
    for steps in (500, 1000, 2000):
        V, a = np.array(problem["V0"]), np.array(problem["a0"])
        for _ in range(steps):
            moved = velocity(problem, V, a)
            V, a = V + 10.0 / steps * moved[0], a + 10.0 / steps * moved[1]
        errors.append(np.abs(softmax(a) - exact).max())
    ratios = np.array(errors[:-1]) / errors[1:]
    assert errors[-1] < 1e-3
    np.testing.assert_allclose(ratios, 2.0, atol=0.02)


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
