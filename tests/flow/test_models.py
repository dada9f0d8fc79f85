"""The keys models against the value model and SciPy; losses that are one another in another form."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.special import expit, softmax

from polariscope import flow

TIMES = [0.5, 5.0, 50.0]


def start(model, loss="logistic"):
    random = np.random.default_rng(3)
    problem = flow.random_problem(loss, n=4, d=3, scale=0.5, seed=3) | {"model": model}
    return problem | {"K0": random.normal(size=(4, 2)).tolist(), "q0": [0.6, -0.8]}


@pytest.mark.parametrize("model", ["keys", "query", "keys-query"])
def test_keys_models_equal_scipy(model):
    problem = start(model)
    V0, K0, q0, target = (np.array(problem[key]) for key in ("V0", "K0", "q0", "target"))

    def velocity(_, y):
        V, K, q = y[:12].reshape(3, 4), y[12:20].reshape(4, 2), y[20:]
        s = softmax(K @ q)
        pull = expit(-target @ V @ s) * target
        p = s * (V.T @ pull - s @ V.T @ pull)
        moved = np.outer(p, q) * (model != "query"), K.T @ p * (model != "keys")
        return np.concatenate([np.outer(pull, s).ravel(), moved[0].ravel(), moved[1]])

    begin = np.concatenate([V0.ravel(), K0.ravel(), q0])
    path = solve_ivp(velocity, (0, TIMES[-1]), begin, method="DOP853", rtol=1e-12, atol=1e-13, t_eval=TIMES)
    wanted = np.array([softmax(y[12:20].reshape(4, 2) @ y[20:]) for y in path.y.T])
    np.testing.assert_allclose(flow.solve(problem, t=TIMES).s, wanted, rtol=0, atol=1e-9)


def test_trained_keys_are_the_value_model_if_the_query_has_length_one():
    problem = start("keys")
    plain = problem | {"model": "value", "a0": (np.array(problem["K0"]) @ problem["q0"]).tolist()}
    one, other = flow.solve(problem, t=TIMES), flow.solve(plain, t=TIMES)
    np.testing.assert_allclose(one.s, other.s, rtol=0, atol=1e-9)
    np.testing.assert_allclose(one.a, other.a, rtol=0, atol=1e-8)


@pytest.mark.parametrize("name", ["K0", "q0"])
def test_missing_keys_are_named(name):
    problem = start("keys")
    del problem[name]
    with pytest.raises(ValueError, match=name):
        flow.solve(problem, t=TIMES)


def test_cross_entropy_of_two_classes_is_the_logistic_loss_of_their_difference():
    problem = flow.random_problem("cross-entropy", n=4, d=2, scale=0.5, seed=4) | {"label": 1}
    logistic = problem | {"loss": "logistic", "target": [-1.0, 1.0]}
    one, other = flow.solve(problem, t=TIMES), flow.solve(logistic, t=TIMES)
    np.testing.assert_allclose(one.s, other.s, rtol=0, atol=1e-9)
    np.testing.assert_allclose(one.log_objective, other.log_objective, rtol=0, atol=1e-8)


def test_cross_entropy_is_kl_to_one_class():
    problem = flow.random_problem("cross-entropy", n=4, d=3, scale=0.5, seed=5) | {"label": 2}
    kl = problem | {"loss": "kl", "p": [0.0, 0.0, 1.0]}
    one, other = flow.solve(problem, t=TIMES), flow.solve(kl, t=TIMES)
    np.testing.assert_allclose(one.s, other.s, rtol=0, atol=1e-9)


@pytest.mark.parametrize("label", [3, -1, 0.5])
def test_labels_that_name_no_class(label):
    with pytest.raises(ValueError, match="label"):
        flow.solve(flow.random_problem("cross-entropy", n=4, d=3) | {"label": label}, t=TIMES)


def test_exponential_and_logistic_loss_share_the_path():
    """1/r is 1 + e^z for one and e^z for the other, so at equal path time τ their times differ by τ."""
    problem = flow.preset("logistic", n=8, seed=1)
    fast = flow.solve(problem | {"loss": "exponential"}, log_t=[1.0, 5.0, 30.0, 1e3])
    again = flow.solve(problem, log_t=np.logaddexp(fast.log_t, np.log(fast.tau)))
    np.testing.assert_allclose(again.s, fast.s, rtol=0, atol=1e-9)
    np.testing.assert_allclose(fast.log_objective, -(fast.s * fast.u).sum(1), rtol=1e-12)
