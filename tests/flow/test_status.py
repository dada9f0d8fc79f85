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


NOTHING = {"model": "value", "V0": [[1.0, 0.0, 3.0], [2.0, -1.0, 0.5]], "target": [0.6, 0.8]}


@pytest.mark.parametrize("loss", ["logistic", "exponential"])
@pytest.mark.parametrize(
    ("scores", "a0"), [("relu", [-1.0, -2.0, -3.0]), ("relu-elementwise", [-1.0, -2.0, -3.0]), ("l1", [0.0] * 3)]
)
def test_nothing_moves_for_ever_where_no_key_has_weight(loss, scores, a0):
    log_t = np.array([0.0, 100.0, 689.0, 1e3, 1e150])
    result = flow.solve(NOTHING | {"loss": loss, "scores": scores, "a0": a0}, log_t=log_t)
    assert result.status == "converged"
    assert "nothing moves" in result.message
    assert not result.s.any()
    slowness = {"logistic": np.log(2.0), "exponential": 0.0}[loss]  # of a loss of the margin 0
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(result.tau, np.exp(log_t - slowness), rtol=1e-9)
    np.testing.assert_allclose(result.column_norms, [np.linalg.norm(NOTHING["V0"], axis=0)] * 5, rtol=1e-15)
    assert all(check.holds is not False for check in result.checks)


def test_columns_of_values_as_large_as_floats_go():
    problem = flow.preset("logistic", n=3)
    start = np.array(problem["V0"])
    for scale, status in ((1e100, "ok"), (1e150, "ok"), (1e160, "diverged"), (1e300, "diverged")):
        large = flow.solve(problem | {"V0": (scale * start).tolist()}, log_t=[-1000.0, 0.0])
        assert large.status == status  # z moves at the rate of the square of V
        if large.complete:
            norms = scale * np.linalg.norm(start, axis=0)
            np.testing.assert_allclose(large.column_norms, [norms] * 2, rtol=1e-12)
            np.testing.assert_allclose(large.s[1] @ (large.u[1] / scale), 0.0, atol=1e-9)  # z stops where f' does


def test_the_rate_law_waits_for_values_of_the_start_to_be_small_beside_log_t():
    problem = flow.preset("logistic", n=3)
    large = problem | {"V0": (1e50 * np.array(problem["V0"])).tolist()}
    for log_t, judged in ((1e6, False), (1e60, True)):
        law = {check.name: check for check in flow.solve(large, log_t=[log_t]).checks}["rate law"]
        assert law.holds is (True if judged else None)
