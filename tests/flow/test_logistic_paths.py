"""Softmax with the logistic loss: against SciPy in all parameters, and the laws of its path."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.special import expit, softmax

from polariscope import flow

LONG = [0.1, 1.0, 10.0, 1e3, 1e6]


def in_all_parameters(problem, t):
    """s (k, n) by SciPy, integrating V and a themselves in t."""
    V0, a0, target = (np.array(problem[key], float) for key in ("V0", "a0", "target"))
    d, n = V0.shape

    def velocity(_, state):
        V, a = state[: d * n].reshape(d, n), state[d * n :]
        s = softmax(a)
        pull = expit(-target @ V @ s) * target
        payoff = V.T @ pull
        return np.concatenate([np.outer(pull, s).ravel(), s * (payoff - s @ payoff)])

    start = np.concatenate([V0.ravel(), a0])
    path = solve_ivp(velocity, (0, t[-1]), start, method="DOP853", t_eval=t, rtol=1e-12, atol=1e-13)
    return np.array([softmax(state[d * n :]) for state in path.y.T])


CASES = [(2, 3, 1.0, 0.1), (5, 2, 0.3, 1.0), (8, 8, 3.0, 0.1), (20, 4, 1.0, 2.0)]


@pytest.mark.parametrize(("n", "d", "norm", "scale"), CASES)
def test_equals_scipy_on_fresh_problems(n, d, norm, scale):
    problem = flow.random_problem("logistic", n=n, d=d, scale=scale, seed=17)
    problem["target"] = (norm * np.array(problem["target"])).tolist()
    t = [0.05, 0.7, 12.0, 300.0, 4000.0]
    got = flow.solve(problem, t=t)
    assert got.status == "ok"
    np.testing.assert_allclose(got.s, in_all_parameters(problem, t), rtol=0, atol=1e-8)


@pytest.mark.parametrize("n", [2, 8, 100])
def test_steps_and_rate_law_at_the_far_end(n):
    near, far = (flow.solve(flow.preset(n=n, seed=0), log_t=[log_t]) for log_t in (1e6, 1e12))
    assert near.stats["steps"] <= 130
    assert far.stats["steps"] <= 170
    for result, tolerance in ((near, 1e-3 if n <= 8 else 5e-3), (far, 1e-3)):
        rest = np.sort(result.s[0])[:-1].sum()
        assert abs(rest * result.log_t[0] ** 2 / (2 * (1 - 1 / n)) - 1) < tolerance


def test_both_clocks_agree():
    problem = flow.preset(n=6, seed=3)
    by_t, by_log = flow.solve(problem, t=np.exp(LONG[:3]).tolist()), flow.solve(problem, log_t=LONG[:3])
    np.testing.assert_allclose(by_t.s, by_log.s, rtol=0, atol=1e-11)
    np.testing.assert_allclose(by_t.log_t, by_log.log_t, rtol=1e-13)


def test_a_time_is_the_same_whatever_else_is_asked_for():
    problem = flow.preset(n=6, seed=4)
    together = flow.solve(problem, log_t=LONG)
    for index, log_t in enumerate(LONG):
        alone = flow.solve(problem, log_t=[log_t])
        np.testing.assert_allclose(alone.s[0], together.s[index], rtol=0, atol=2e-9)


def test_conserved_and_monotone():
    got = flow.solve(flow.preset(n=6, seed=5), log_t=LONG)
    np.testing.assert_allclose(got.s.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    total = np.sum(flow.preset(n=6, seed=5)["a0"])
    np.testing.assert_allclose(got.a.sum(axis=1), total, rtol=0, atol=1e-7)
    assert (np.diff(got.log_objective) < 0).all()
    assert (np.diff(got.tau) > 0).all()


def test_permuting_tokens_permutes_the_flow():
    problem = flow.preset(n=5, seed=6)
    order = np.array([3, 0, 4, 1, 2])
    moved = problem | {
        "V0": np.array(problem["V0"])[:, order].tolist(),
        "a0": np.array(problem["a0"])[order].tolist(),
    }
    one, other = flow.solve_many([problem, moved], log_t=LONG)
    np.testing.assert_allclose(one.s[:, order], other.s, rtol=0, atol=1e-9)


def test_only_projections_on_the_target_matter():
    problem = flow.preset(n=5, d=3, seed=7)
    V0, target = np.array(problem["V0"]), np.array(problem["target"])
    u = V0.T @ target
    flat = problem | {"V0": [u.tolist()], "target": [1.0]}
    one, other = flow.solve(problem, log_t=LONG), flow.solve(flat, log_t=LONG)
    np.testing.assert_allclose(one.s, other.s, rtol=0, atol=1e-9)
    np.testing.assert_allclose(one.u, other.u, rtol=1e-9, atol=1e-9)


def test_gradient_descent_tends_to_the_flow():
    problem = flow.preset(n=6, seed=8)
    V0, a0, target = (np.array(problem[key], float) for key in ("V0", "a0", "target"))
    exact = flow.solve(problem, t=[20.0]).s[0]
    errors = []
    for eta in (0.02, 0.01):
        V, a = V0.copy(), a0.copy()
        for _ in range(round(20 / eta)):
            s = softmax(a)
            pull = expit(-target @ V @ s) * target
            payoff = V.T @ pull
            V, a = V + eta * np.outer(pull, s), a + eta * s * (payoff - s @ payoff)
        errors.append(np.abs(softmax(a) - exact).max())
    assert errors[0] / errors[1] == pytest.approx(2, rel=0.1)


@pytest.mark.parametrize("log_t", [1e6, 1e8])
def test_steps_over_many_decades_need_no_warning(log_t):
    """Where s stays, one step goes to the end: z = z(0) + ‖β*‖²‖s‖²τ, and t = τ + (e^z - e^z(0))/z'."""
    start = flow.preset(n=4, seed=0)
    equal = start | {"V0": np.zeros((4, 4)).tolist(), "a0": [0.0] * 4}
    one = start | {"V0": np.array(start["V0"])[:, :1].tolist(), "a0": start["a0"][:1]}
    for problem, n in ((equal, 4), (one, 1), (start | {"scores": "uniform"}, 4)):
        got = flow.solve(problem, log_t=[1.0, 1e3, log_t])
        assert got.status == "ok"
        np.testing.assert_allclose(got.s, 1 / n, rtol=1e-12)
        np.testing.assert_allclose(got.log_objective[1:], -got.log_t[1:] + np.log(n), rtol=1e-12)


def test_a_perfect_tie_stays_tied_and_says_so():
    problem = flow.preset(n=4, seed=0) | {"V0": np.zeros((4, 4)).tolist(), "a0": [0.0] * 4}
    got = flow.solve(problem, log_t=[1e3])
    np.testing.assert_allclose(got.s, 0.25, rtol=0, atol=1e-12)
    assert "tie" in got.message


def test_a_single_token_has_all_the_weight():
    got = flow.solve(flow.preset(n=1, seed=0), log_t=[10.0])
    assert got.s.tolist() == [[1.0]]
    assert got.status in ("ok", "converged")


def test_the_loss_does_not_underflow_in_the_log_domain():
    got = flow.solve(flow.preset(n=6, seed=0), log_t=[1e6])
    assert got.log_objective[0] == pytest.approx(-1e6, rel=1e-3)
    assert got.objective[0] == 0.0


@pytest.mark.parametrize("norm", [0.1, 2.0, 100.0])
def test_the_rate_law_knows_the_length_of_the_target(norm):
    problem = flow.preset(n=8, seed=0)
    problem["target"] = (norm * np.array(problem["target"])).tolist()
    checks = {check.name: check for check in flow.solve(problem, log_t=[1e6]).checks}
    assert checks["rate law"].holds
    assert checks["one-hot limit"].holds


def test_limits_are_not_judged_at_early_times():
    checks = {check.name: check for check in flow.solve(flow.preset(n=8, seed=0), log_t=[-5.0, 1.0]).checks}
    assert checks["one-hot limit"].holds is None
    assert checks["rate law"].holds is None
