"""Where flows start: hidden logits, logits far from 0, keys without weight, and paths that take no step."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.special import expit

from polariscope import flow, scores

TIMES = [0.0, 1.0, 10.0]
LOSSES = ["logistic", "square"]
SHIFTED = [name for name in scores.REGISTRY if scores.get(name).properties.shift_invariant]


def problem(name, V0, a0, loss="logistic", **more):
    return {"model": "value", "scores": name, "loss": loss, "V0": V0, "a0": a0, "target": [1.0], **more}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", list(scores.REGISTRY))
def test_whatever_hidden_keys_hold_the_flow_is_that_of_the_others(name, loss):
    V0, a0 = [0.5, 0.3, -0.2], [0.2, 0.3, 0.9]
    alone = flow.solve(problem(name, [V0], a0, loss), t=TIMES)
    for logit in (-50.0, 2.3, 50.0):
        wider = problem(name, [[*V0[:2], 7.0, V0[2]]], [*a0[:2], logit, a0[2]], loss, where=[True, True, False, True])
        got = flow.solve(wider, t=TIMES)
        assert got.status == alone.status
        np.testing.assert_allclose(got.s[:, [0, 1, 3]], alone.s, rtol=0, atol=1e-8)
        assert not got.s[:, 2].any()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", SHIFTED)
def test_a_common_shift_of_the_logits_changes_nothing(name, loss):
    a0 = np.array([0.25, 0.5, 1.0])  # these are floats at every shift below
    alone = flow.solve(problem(name, [[0.5, 0.3, -0.2]], a0.tolist(), loss), t=TIMES)
    for shift in (2.0**20, -(2.0**40), 2.0**50):
        got = flow.solve(problem(name, [[0.5, 0.3, -0.2]], (a0 + shift).tolist(), loss), t=TIMES)
        assert got.status == alone.status
        np.testing.assert_allclose(got.s, alone.s, rtol=0, atol=1e-9)
        np.testing.assert_array_equal(got.a[0], a0 + shift)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("a0", "temperature"), [([0.0, 1e17], 1.0), ([0.0, 1e16], 1.0), ([0.0, 1.0], 1e-17)])
def test_a_winner_by_far_has_all_the_weight(a0, temperature, loss):
    got = flow.solve(problem("sparsemax", [[0.5, 0.3]], a0, loss, temperature=temperature), t=TIMES)
    assert got.complete
    np.testing.assert_array_equal(got.s, [[0.0, 1.0]] * 3)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_key_outside_the_support_of_entmax_enters_as_the_threshold_falls(loss):
    V0, a0, times = np.array([-3.0, 3.0, 0.0]), np.array([1.9, 0.0, -0.15]), [0.1, 0.3, 1.0, 3.0]
    entmax = scores.get("entmax-1.5")
    rate = {"logistic": lambda z: expit(-z), "square": lambda z: 1.0 - z}[loss]

    def velocity(_, y):
        V, a = np.split(y, 2)
        s = entmax(a)
        pull = rate(V @ s)
        return pull * np.concatenate([s, entmax.vjp(a, V)])

    found = solve_ivp(velocity, (0, 3), np.append(V0, a0), rtol=1e-11, atol=1e-12, t_eval=times, max_step=0.01)
    got = flow.solve(problem("entmax-1.5", [V0.tolist()], a0.tolist(), loss), t=[0.0, *times])
    assert got.s[0, 2] == 0
    assert got.s[3, 2] > 0.02
    np.testing.assert_allclose(got.s[1:], [entmax(a) for a in found.y[3:].T], rtol=0, atol=1e-7)


KINK = problem("relu", [[3.0, 0.0]], [0.0, 1.0])
STANDING = {
    "kink": KINK,
    "diverged": problem("softmax", [[1e200, 0.0]], [0.0, 0.0]),
    "step limit": problem("relu", [[3.0, 0.0]], [1e-300, 1e-300]),
}


@pytest.mark.parametrize("status", list(STANDING))
def test_time_zero_is_the_start_of_a_path_that_takes_no_step(status):
    start, other = STANDING[status], problem("softmax", [[1.0, 0.0]], [0.2, 0.3])
    alone = flow.solve(start, t=[0.0, 1.0])
    lists = (flow.solve_many([start, other], t=[0.0, 1.0])[0], flow.solve_many([other, start], t=[0.0, 1.0])[1])
    weights = [0.0, 1.0] if status == "kink" else [0.5, 0.5]
    for got in (alone, *lists):
        assert got.status == status
        np.testing.assert_array_equal(got.s, [weights, [np.nan] * 2])
        np.testing.assert_array_equal(got.tau, [0.0, np.nan])


@pytest.mark.parametrize("loss", LOSSES)
def test_a_function_without_a_mask_serves_where_none_is_given(loss):
    mine = scores.from_function(lambda a: jnp.exp(a) / jnp.exp(a).sum(-1, keepdims=True), name="mine")
    start = problem(mine, [[1.0, 0.0]], [0.2, 0.3], loss)
    got, known = (flow.solve(one, t=TIMES) for one in (start, start | {"scores": "softmax"}))
    np.testing.assert_allclose(got.s, known.s, rtol=0, atol=1e-9)


def test_path_time_starts_at_half_of_t():
    log_t = np.array([-700.0, -300.0, -100.0])
    got = flow.solve(problem("softmax", [[0.0, 0.0]], [0.1, 0.2]), log_t=[*log_t, 1.0])
    np.testing.assert_allclose(got.tau[:-1], np.exp(log_t) / 2, rtol=1e-10)
