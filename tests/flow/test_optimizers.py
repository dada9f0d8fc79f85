"""Discrete optimizers: against loops written by hand, their limits for small steps, and the distance to a path."""

import numpy as np
import optax
import pytest
from numpy_flow import velocity
from scipy.special import expit, softmax

from polariscope import flow
from polariscope.errors import InputError
from polariscope.flow.dense_path import dense_path
from polariscope.flow.optimizers import get, heavy_ball, run

K = np.array([0, 1, 2, 5, 40])
LOGISTIC = flow.random_problem("logistic", n=4, d=3, seed=1)


def last(problem, name, eta, steps):
    """s after so many steps."""
    return run(flow.read_problem(problem), get(name), np.array([eta, eta]), np.append(K[:-1], steps)).s[0, -1]


def updates(name, eta):
    """A function from (gradient, parameters) to the step, with its own memory, by the textbook."""
    memory = {"m": 0.0, "v": 0.0, "k": 0}

    def adam(g):
        memory["k"] += 1
        memory["m"] = 0.9 * memory["m"] + 0.1 * g
        memory["v"] = 0.999 * memory["v"] + 0.001 * g**2
        m, v = memory["m"] / (1 - 0.9 ** memory["k"]), memory["v"] / (1 - 0.999 ** memory["k"])
        return m / (np.sqrt(v) + 1e-8)

    def momentum(g):
        memory["m"] = 0.9 * memory["m"] + g
        return memory["m"]

    return {
        "gd": lambda g, y: eta * g,
        "sign": lambda g, y: eta * np.sign(g),
        "heavy-ball": lambda g, y: eta * momentum(g),
        "nesterov": lambda g, y: eta * (g + 0.9 * momentum(g)),
        "adam": lambda g, y: eta * adam(g),
        "adamw": lambda g, y: eta * (adam(g) + 0.01 * y),
    }[name]


def by_hand(problem, name, eta):
    V, a = np.array(problem["V0"]), np.array(problem["a0"])
    shape, update, seen = V.shape, updates(name, eta), []
    for k in range(K[-1] + 1):
        logits = a if problem["model"] == "value" else V @ a
        if k in K:
            seen.append(softmax(logits))
        gradient = -np.concatenate([part.ravel() for part in velocity(problem, {"V": V, "a": a}).values()])
        y = np.append(V.ravel(), a)
        y = y - update(gradient, y)
        V, a = y[: V.size].reshape(shape), y[V.size :]
    return np.array(seen)


@pytest.mark.parametrize("name", list(flow.optimizers.REGISTRY))
def test_every_optimizer_is_the_textbook_loop(name):
    etas = np.array([0.05, 0.2])
    found = run(flow.read_problem(LOGISTIC), get(name), etas, K)
    for eta, s in zip(etas, found.s, strict=True):
        np.testing.assert_allclose(s, by_hand(LOGISTIC, name, eta), rtol=0, atol=1e-12)


@pytest.mark.parametrize(("loss", "model"), [("regression", "value"), ("kl", "tied")])
def test_gradient_descent_on_other_losses_and_models(loss, model):
    problem = flow.random_problem(loss, n=4, d=4, seed=1) | {"model": model}
    found = run(flow.read_problem(problem), get("gd"), np.array([0.1]), K)
    np.testing.assert_allclose(found.s[0], by_hand(problem, "gd", 0.1), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "problem", [LOGISTIC, flow.random_problem("square", n=4, d=3, seed=1)], ids=lambda p: p["loss"]
)
def test_gradient_descent_follows_the_flow_to_first_order(problem):
    coarse = flow.compare(problem, "gd", 0.04, 100, saves=20)
    assert coarse.t[-1] == 4.0
    fine = np.abs(last(problem, "gd", 0.02, 200) - coarse.flow_s[-1]).max()
    assert 1.8 < coarse.distance[-1] / fine < 2.2
    assert coarse.path_distance[-1] < coarse.distance[-1]
    assert coarse.status == "ok"


def test_momentum_follows_the_flow_on_its_own_clock():
    fine = flow.compare(LOGISTIC, "heavy-ball", 5e-4, 800, saves=20)
    assert fine.t[-1] == pytest.approx(800 * 5e-4 / (1 - 0.9))
    coarse = np.abs(last(LOGISTIC, "heavy-ball", 1e-3, 400) - fine.flow_s[-1]).max()
    assert 1.7 < coarse / fine.distance[-1] < 2.3
    steps = flow.compare(LOGISTIC, "heavy-ball", 5e-4, 800, saves=20, clock="steps")
    assert steps.t[-1] == pytest.approx(800 * 5e-4)
    assert steps.distance[-1] > 20 * fine.distance[-1]
    np.testing.assert_array_equal(steps.s, fine.s)
    np.testing.assert_allclose(steps.path_distance, fine.path_distance, rtol=0, atol=2 * fine.path_spacing)
    # On the path it is further on than ηk, and the place found says how far.
    assert np.exp(steps.path_log_t[-1]) == pytest.approx(fine.t[-1], rel=0.05)


@pytest.mark.parametrize("name", ["adam", "sign"])
def test_adam_and_sign_descent_leave_the_path_however_small_their_steps(name):
    coarse, fine = (flow.compare(LOGISTIC, name, 4e-3 / m, 500 * m, saves=20) for m in (1, 4))
    assert fine.path_distance.max() > 0.03
    assert fine.path_distance.max() > 100 * (fine.path_error + fine.path_spacing)
    assert fine.path_distance.max() == pytest.approx(coarse.path_distance.max(), rel=0.2)


def test_adam_becomes_sign_descent_when_its_memory_is_short_in_time():
    apart = []
    for eta in (1e-4, 1e-5):
        ends = [last(LOGISTIC, name, eta, round(2 / eta)) for name in ("adam", "sign")]
        apart.append(np.abs(ends[0] - ends[1]).max())
    assert apart[1] < apart[0] / 5


def test_sign_descent_of_two_tokens_in_closed_form():
    problem = flow.random_problem("logistic", n=2, d=3, seed=4)
    V0, a0, target = (np.array(problem[key]) for key in ("V0", "a0", "target"))
    eta, up = 0.01, np.sign(np.subtract(*(V0.T @ target)))
    found = run(flow.read_problem(problem), get("sign"), np.array([eta]), K)
    s = expit(a0[0] - a0[1] + 2 * up * eta * K)
    np.testing.assert_allclose(found.s[0], np.stack([s, 1 - s], axis=1), rtol=0, atol=1e-13)
    margin = (V0.T @ target) @ found.s[0].T + eta * K * np.abs(target).sum()
    np.testing.assert_allclose(found.objective[0], np.logaddexp(0, -margin), rtol=1e-12)


def test_the_leader_of_u_wins_sign_descent_from_any_start():
    for seed in range(8):
        problem = flow.random_problem("logistic", n=4, d=3, scale=0.5, seed=seed)
        u = np.array(problem["V0"]).T @ np.array(problem["target"])
        assert last(problem, "sign", 0.05, 2000).argmax() == u.argmax()


def test_the_path_is_close_to_its_own_points_and_as_far_from_others_as_a_search_says():
    path = dense_path(LOGISTIC, np.array([1e-2, 1.0]), 1e3, 1e-9)
    times = np.geomspace(1e-3, 500, 37)
    distance, log_t = path.nearest(flow.solve(LOGISTIC, t=times).s)
    assert distance.max() < 2 * path.error + 1e-6
    np.testing.assert_allclose(log_t[20:], np.log(times[20:]), rtol=0, atol=0.05)
    others = np.random.default_rng(0).dirichlet(np.ones(4), size=10)
    every = np.concatenate([path.s[:1], flow.solve(LOGISTIC, log_t=np.linspace(-4, 40, 3000)).s])
    searched = np.abs(others[:, None] - every).max(axis=2).min(axis=1)
    np.testing.assert_allclose(path.nearest(others)[0], searched, rtol=0, atol=2e-3)
    assert (path.nearest(others)[0] <= searched + path.error + path.spacing / 2).all()


def test_a_run_that_diverges_says_so_and_is_nan_from_there_on():
    problem = flow.random_problem("square", n=4, d=3, seed=1)
    lost, fine = flow.compare_many(problem, "gd", [50.0, 0.01], 100, saves=20)
    assert (lost.status, fine.status) == ("diverged", "ok")
    first = int(np.isnan(lost.s).any(axis=1).argmax())
    assert f"before step {lost.k[first]}" in lost.message
    for values in (lost.s, lost.objective, lost.distance, lost.path_distance, lost.normalized_entropy):
        assert np.isfinite(values[:first]).all()
        assert np.isnan(values[first:]).all()
    assert lost.winner == -1
    assert np.isfinite(fine.path_distance).all()
    assert fine.winner == fine.flow_winner


def test_optimizers_of_ones_own():
    read = flow.read_problem(LOGISTIC)
    etas = np.array([0.1, 0.2])
    mine = run(read, get(lambda eta: optax.sgd(eta, momentum=0.9)), etas, K)
    np.testing.assert_array_equal(mine.s, run(read, get("heavy-ball"), etas, K).s)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"optimizer": "adamm"}, "adam"),
        ({"step_size": 0.0}, "positive"),
        ({"step_size": "much"}, "positive"),
        ({"steps": 0}, "steps"),
        ({"saves": 1.5}, "saves"),
        ({"clock": "wall"}, "effective"),
        ({"problem": 3}, "problem"),
        ({"problem": LOGISTIC | {"loss": "logistics"}}, "logistic"),
    ],
)
def test_bad_input(change, message):
    arguments = {"problem": LOGISTIC, "optimizer": "gd", "step_size": 0.1, "steps": 10} | change
    with pytest.raises(InputError, match=message):
        flow.compare(**arguments)
    with pytest.raises(InputError, match="momentum"):
        heavy_ball(1.0)


def test_objectives_are_the_loss_of_the_weights():
    problem = flow.random_problem("regression", n=4, d=4, seed=5)
    found = run(flow.read_problem(problem), get("gd"), np.array([0.01]), K)
    V0, a0 = np.array(problem["V0"]), np.array(problem["a0"])
    beta = V0 @ softmax(a0)
    X, y = np.array(problem["X"]), np.array(problem["y"])
    assert found.objective[0, 0] == pytest.approx(np.sum((X @ beta - y) ** 2), rel=1e-12)
    drop = found.objective[0, 0] - found.objective[0, 1]
    square = sum(np.sum(part**2) for part in velocity(problem, {"V": V0, "a": a0}).values())
    assert drop == pytest.approx(0.01 * square, rel=0.2)
