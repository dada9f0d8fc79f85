"""How flows end: converged, at a kink, out of bounds; and functions of one's own."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from polariscope import flow
from polariscope.flow.laws.tied_path import tied_path


def test_a_loss_without_a_minimum_diverges():
    problem = flow.random_problem("logistic", n=4, seed=1) | {"loss": lambda beta: -jnp.sum(beta**2)}
    result = flow.solve(problem, t=[0.01, 1e3])
    assert result.status == "diverged"
    assert not result.complete
    assert np.isnan(result.s[-1]).all()


def test_functions_of_ones_own_equal_the_registered_ones():
    problem = flow.random_problem("square", n=4, seed=2)
    target = np.array(problem["target"])
    own = problem | {"loss": lambda beta: 0.5 * jnp.sum((beta - target) ** 2), "scores": jax.nn.softmax}
    one, other = flow.solve(problem, t=[0.5, 3.0]), flow.solve(own, t=[0.5, 3.0])
    np.testing.assert_allclose(one.s, other.s, rtol=0, atol=1e-12)
    assert one.entropy is not None
    assert other.entropy is None


def test_converged_flows_repeat_the_last_state():
    problem = flow.random_problem("square", n=4, seed=2)
    result = flow.solve(problem, t=[1.0, 1e5, 1e6])
    assert result.status == "converged"
    assert result.stats["converged_at"] < 1e5
    np.testing.assert_array_equal(result.s[1], result.s[2])
    V0, a0 = np.array(problem["V0"]), np.array(problem["a0"])
    s0 = np.exp(a0) / np.exp(a0).sum()
    resting = problem | {"target": (V0 @ s0).tolist()}
    still = flow.solve(resting, t=[10.0])
    assert still.status == "converged"
    np.testing.assert_allclose(still.s[0], s0, rtol=0, atol=1e-12)


def test_time_zero_is_the_start():
    for loss in ("logistic", "square"):
        problem = flow.random_problem(loss, n=4, seed=3)
        result = flow.solve(problem, t=[0.0])
        a0 = np.array(problem["a0"])
        np.testing.assert_allclose(result.a[0], a0, rtol=0, atol=1e-14)
        np.testing.assert_allclose(result.s[0], np.exp(a0) / np.exp(a0).sum(), rtol=0, atol=1e-14)
        assert result.t.tolist() == [0.0]


def test_small_times_are_exact():
    problem = flow.random_problem("logistic", n=4, seed=4)
    u = np.array(problem["V0"]).T @ np.array(problem["target"])
    s = np.exp(problem["a0"]) / np.exp(problem["a0"]).sum()
    result = flow.solve(problem, t=[1e-9, 1e-7])
    moved = (result.u - u) / result.t[:, None]
    np.testing.assert_allclose(moved, np.tile(s / (1 + np.exp(u @ s)), (2, 1)), rtol=1e-5, atol=2e-6)
    np.testing.assert_allclose(result.tau, result.t / (1 + np.exp(u @ s)), rtol=1e-6)


def test_late_times_in_ordinary_time_equal_path_time():
    """Two classes: the margin is ⟨(1, -1), β⟩, and the logistic loss of it is solved in path time."""
    start = flow.random_problem("cross-entropy", n=5, d=2, seed=1) | {"label": 0}
    late = [1.0, 35.0, 45.0, 200.0, 600.0]
    ordinary = flow.solve(start, log_t=late)
    path = flow.solve(start | {"loss": "logistic", "target": [1.0, -1.0]}, log_t=late)
    assert ordinary.status == "ok"
    assert ordinary.stats["steps"] < 4000
    np.testing.assert_allclose(ordinary.s, path.s, rtol=0, atol=1e-9)
    np.testing.assert_allclose(ordinary.log_objective, path.log_objective, rtol=1e-8)


@pytest.mark.parametrize(("n", "seed"), [(2, 0), (8, 0), (8, 1)])
def test_the_tied_model_gets_to_late_times(n, seed):
    """Against implicit steps in path time, at early and late times."""
    made = flow.random_problem("logistic", n=n, scale=0.35, seed=seed) | {"model": "tied"}
    path, U = tied_path(flow.read_problem(made), np.linspace(0.05, 400.0, 40_000))
    places = np.searchsorted(path.log_t, [1.0, 40.0, 0.5 * min(path.log_t[-1], 600.0), min(path.log_t[-1], 600.0)]) - 1
    result = flow.solve(made, log_t=path.log_t[places])
    assert result.status == "ok"
    assert result.stats["steps"] < 4000
    np.testing.assert_allclose(result.s, path.s[places], rtol=0, atol=1e-6)
    np.testing.assert_allclose(result.column_norms, np.linalg.norm(U[places], axis=1), rtol=1e-4)
    np.testing.assert_allclose(result.log_objective, path.log_objective[places], rtol=1e-5)


def test_values_of_hidden_keys_do_not_matter():
    start = {"a0": [0.0] * 4, "target": [1.0], "where": [True, True, True, False], "loss": "logistic"}
    problems = [
        start | {"model": "value", "scores": "softmax", "V0": [[1.0, 2.0, 3.0, hidden]]} for hidden in (1.0, 1e20)
    ]
    one, other = flow.solve_many(problems, t=[0.0, 100.0])
    np.testing.assert_array_equal(one.s, other.s)
    assert one.s[-1, 2] > one.s[-1, 1] > one.s[-1, 0]
