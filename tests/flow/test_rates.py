"""Laws of late times: each holds at several n, fails where it is not true, and meets flows made elsewhere."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import expm
from scipy.special import softmax

from polariscope import flow
from polariscope.errors import InputError
from polariscope.flow import laws
from polariscope.flow.checks import remainder
from polariscope.flow.laws import approach, kept_spread, tied
from polariscope.flow.laws.square import log_weights
from polariscope.flow.laws.tied_path import tied_path

MAPS = ("softmax", "elu-normalized", "sigmoid-normalized", "sigmoid")


def problem(scores="softmax", n=8, loss="logistic", seed=3, length=1.0, mean=1.0, **more):
    """A problem with d = 3, a0 around ``mean``, and a target of some length; entries have scale 0.1."""
    made = flow.random_problem(loss, scores=scores, n=n, d=3, scale=0.1, seed=seed) | more
    made["a0"] = (mean + np.array(made["a0"])).tolist()
    if "target" in made:
        made["target"] = (length * np.array(made["target"])).tolist()
    return made


def by_name(found):
    return {rate.law: rate for rate in found}


WIDE = flow.random_problem("logistic", n=50, d=3, scale=3.0, seed=3)


@pytest.fixture(scope="module")
def late():
    """Flows of four maps from log t = 10² to 10⁸, in one compilation: (scores, n) to problem and result."""
    many = {(scores, n): problem(scores, n, length=5.0 if n == 50 else 0.2) for scores in MAPS[:3] for n in (2, 50)}
    many |= {("sigmoid", 50): problem("sigmoid", 50, length=5.0), ("softmax", "wide"): WIDE}
    results = flow.solve_many(many.values(), log_t=np.geomspace(1e2, 1e8, 61))
    return {key: (many[key], result) for key, result in zip(many, results, strict=True)}


def test_path_laws_hold(late):
    """Two lengths of the target and four maps."""
    for (scores, n), (each, result) in late.items():
        found = by_name(flow.rates(each, result))
        assert list(found) == [scores, *["sigmoid-entropy"] * (scores == "sigmoid"), "clock"]
        for rate in found.values():
            assert rate.holds, rate
            assert rate.exponent == pytest.approx(rate.expected_exponent, rel=0.02 if n == "wide" else 2e-3)
            assert rate.exponent_error < 1e-3


@pytest.fixture(scope="module")
def squares():
    """Flows of a²/Σa² by n, in one compilation, to where n = 50 has weights of 10⁻⁶⁰⁰ and n = 2 has none left."""
    many = [problem("square", n) for n in (2, 8, 50)]
    results = flow.solve_many(many, log_t=np.linspace(1, 280, 561))
    return {n: (each, result) for n, each, result in zip((2, 8, 50), many, results, strict=True)}


@pytest.mark.parametrize("n", [2, 8, 50])
def test_squares(squares, n):
    rate = by_name(flow.rates(*squares[n]))["square"]
    assert rate.holds, rate
    assert rate.refined_ratio == pytest.approx(1, abs=4e-3)
    assert rate.exponent == pytest.approx(rate.expected_exponent, rel=1e-3)
    assert rate.quantity > 1000


@pytest.mark.parametrize(
    ("law", "scores", "ratio"),
    [("softmax", "elu-normalized", 50), ("softmax", "sigmoid-normalized", 50), ("elu-normalized", "softmax", 1 / 50)],
)
def test_the_constant_of_another_map_is_wrong_by_n(late, law, scores, ratio):
    raw, result = late[scores, 50]
    read = flow.read_problem(raw, log_t=[0.0])
    rate = laws.REGISTRY.get(law).rate(read, result)
    assert rate.ratio == pytest.approx(ratio, rel=0.03)
    assert laws.REGISTRY.get(law).applies(read)


@pytest.mark.parametrize("law", ["softmax", "sigmoid", "square", "clock"])
def test_laws_fail_on_a_wrong_flow(late, law):
    """The right path with its clock at the wrong speed, or the path of another map."""
    raw, result = late["elu-normalized" if law == "softmax" else "softmax", 50]
    if law == "clock":
        result = type(result)(**{**vars(result), "log_t": 1.0 + result.log_t})
    assert laws.REGISTRY.get(law).rate(flow.read_problem(raw, log_t=[0.0]), result).holds is False


def test_wide_starts_keep_few_losers_and_the_law_counts_them(late):
    rate = by_name(flow.rates(*late["softmax", "wide"]))["softmax"]
    assert rate.holds
    assert rate.ratio < 0.985 < 0.998 < rate.refined_ratio
    assert next(c for c in late["softmax", "wide"][1].checks if c.name == "rate law").holds


def test_laws_are_for_all_keys_at_temperature_one():
    softmax = laws.REGISTRY.get("softmax")
    assert not softmax.applies(flow.read_problem(problem()))
    assert softmax.applies(flow.read_problem(problem() | {"where": [True] * 7 + [False]})) == "keys are hidden"
    assert "score map" in softmax.applies(flow.read_problem(problem() | {"temperature": 2.0}))


def test_losers_approach_each_other_like_a_power_of_log_t():
    """The differences among n s_i τ²/2 fall like τ^(-2/n)."""
    n = 8
    for result in flow.solve_many([problem(seed=1), problem(seed=4)], log_t=np.geomspace(1e6, 1e10, 41)):
        losers = np.sort(result.s, axis=1)[:, :-1]
        spread = np.log(losers.std(axis=1) / losers.mean(axis=1))
        slope, error = laws.fitted_slope(np.log(result.tau), spread)
        assert slope == pytest.approx(-2 / n, rel=0.05)
        assert error < 0.01


def test_exponential_loss_is_earlier_by_tau():
    """Both losses run along one path, at dt = (1 + e^z) dτ and dt = e^z dτ; the laws are the same."""
    start = problem(n=8)
    logistic = flow.solve(start, log_t=[2.0, 5.0, 20.0])
    earlier = logistic.log_t + np.log1p(-logistic.tau / logistic.t)
    exponential = flow.solve(start | {"loss": "exponential"}, log_t=earlier)
    np.testing.assert_allclose(exponential.s, logistic.s, rtol=1e-8)
    np.testing.assert_allclose(exponential.tau, logistic.tau, rtol=1e-8)
    assert (earlier[:2] < logistic.log_t[:2] - 1e-3).all()
    found = flow.rates(start | {"loss": "exponential"})
    assert [rate.law for rate in found] == ["softmax", "clock"]
    assert all(rate.holds for rate in found)


def test_log_weights_of_squares_match_logarithmic_coordinates(squares):
    """SciPy in (u, log a), where a weight of e^-1000 is a number like any other."""
    start, result = squares[8]
    V0, a0, target = (np.array(start[key]) for key in ("V0", "a0", "target"))
    total = np.sum(a0**2)

    def field(_, y):
        u, logs = y[:8], y[8:]
        s = np.exp(2 * logs) / total
        g = u - u[s.argmax()]
        return np.concatenate([s, 2 * (g - s @ g) / total])

    places = [40, 80, 130]
    times, w = result.tau[places], result.s[-1].argmax()
    y = solve_ivp(field, (0, times[-1]), np.append(V0.T @ target, np.log(a0)), "LSODA", times, rtol=1e-11, atol=1e-12).y
    reference = np.delete(2 * (y[8:] - y[8 + w]), w, axis=0).T
    np.testing.assert_allclose(log_weights(result, w)[places], reference, rtol=1e-6)
    assert reference.min() < -600


@pytest.mark.parametrize(("scale", "seed", "power_of_t"), [(0.1, 0, True), (0.1, 2, True), (0.35, 0, False)])
def test_tied(scale, seed, power_of_t):
    made = flow.random_problem("logistic", n=8, d=8, scale=scale, seed=seed) | {"model": "tied"}
    (rate,) = flow.rates(made)
    assert rate.holds, rate
    assert ("falls like t^-" in rate.note) == power_of_t


@pytest.mark.parametrize("length", [1.0, 3.0])
def test_tied_with_two_keys_knows_the_length_of_the_target(length):
    made = flow.random_problem("logistic", n=2, d=2, scale=0.35, seed=0) | {"model": "tied"}
    made["target"] = (length * np.array(made["target"])).tolist()
    (rate,) = flow.rates(made)
    assert rate.holds
    assert abs(rate.exponent / rate.expected_exponent - 1) < 1e-5


def test_tied_path_time_is_the_flow_in_ordinary_time():
    made = flow.random_problem("logistic", n=8, d=8, scale=0.35, seed=1) | {"model": "tied"}
    path, U = tied_path(flow.read_problem(made), np.linspace(0.05, 10.0, 200))
    places = [20, 100, 199]
    result = flow.solve(made, log_t=path.log_t[places])
    np.testing.assert_allclose(path.s[places], result.s, rtol=0, atol=2e-4)
    np.testing.assert_allclose(np.linalg.norm(U[places], axis=1), result.column_norms, rtol=1e-3)


def test_balance_against_a_quadratic_programme_by_hand():
    """Two losers on either side of the winner: Σ cΔ = 0 fixes their proportion, and one number is left."""
    random = np.random.default_rng(0)
    U, a, target = random.normal(size=(3, 3)), random.normal(size=3), np.array([-1.0, 0.0, 3.0])
    E = np.array([[-1.0, 1, 0], [0, 1, -1]])
    W = U - np.outer(target, target @ U) / (target @ target)
    G = a @ a * np.eye(3) + W @ W.T
    ray = np.array([3.0, 1.0])  # c·Δ = 0 with Δ = (1, -3)
    size = 2 * ray.sum() / (ray @ E @ G @ E.T @ ray)
    assert tied.balance(U, a, target, 1) == pytest.approx(size * ray.sum(), rel=1e-6)


def test_square_loss_stops_on_the_logistic_path():
    """With V0 = 0 the end of the square loss is where the logistic path has z = ‖β*‖²; and the law of its end."""
    start = problem(loss="square", length=6.0, mean=0.0) | {"V0": np.zeros((3, 8)).tolist()}
    end = flow.solve(start, t=[1e4])
    path = flow.solve(start | {"loss": "logistic"}, log_t=np.linspace(1, 60, 3000))
    z = (path.u * path.s).sum(axis=1)
    there = np.array([np.interp(36.0, z, column) for column in path.s.T])
    np.testing.assert_allclose(end.s[-1], there, atol=1e-5)
    found = by_name(flow.rates(start))
    assert list(found) == ["stopped", "kept-spread"]
    assert all(rate.holds for rate in found.values())
    assert found["stopped"].where == pytest.approx(1000)


@pytest.mark.parametrize("loss", ["regression", "kl", "square"])
def test_laws_of_losses_that_converge(loss):
    found = by_name(flow.rates(problem(loss=loss, mean=0.0)))
    assert list(found) == ["kept-spread", "approach"]
    for rate in found.values():
        assert rate.holds, rate


def test_amplification_along_a_straight_way():
    """The isotropic square loss from V = 0: α = cosh ‖β*‖, w = sinh ‖β*‖ along the target."""
    start = problem(loss="square", length=3.0) | {"V0": np.zeros((3, 8)).tolist()}
    alpha, w = kept_spread.amplification(flow.read_problem(start))
    assert alpha == pytest.approx(np.cosh(3), rel=1e-5)
    np.testing.assert_allclose(w, np.sinh(3) * np.array(start["target"]) / 3, rtol=1e-5)


def test_amplification_against_the_whole_linear_system():
    start = flow.read_problem(problem(loss="regression", seed=5))
    X, y, n = start.data["X"], start.data["y"], 8
    d, mean = 3, start.V0.mean(axis=1)

    def field(_, state):
        v, D, a = state[:d], state[d:-n].reshape(d, n), state[-n:]
        q = 2 * X.T @ (y - X @ v) / n
        return np.concatenate([q, np.outer(q, a).ravel(), D.T @ q])

    first = np.concatenate([mean, (start.V0 - mean[:, None]).ravel(), start.a0 - start.a0.mean()])
    a = solve_ivp(field, (0, 3e3), first, rtol=1e-10, atol=1e-12, method="LSODA").y[-n:, -1]
    alpha, w = kept_spread.amplification(start)
    predicted = alpha * start.a0 + start.V0.T @ w
    np.testing.assert_allclose(predicted - predicted.mean(), a, atol=1e-6)


def test_spectrum_is_the_decay_of_a_plain_flow():
    """The square loss: SciPy's decay of β - β*, component by component of K."""
    start = flow.read_problem(problem(loss="square", seed=6), t=[1e6])
    target = start.data["target"]

    def field(_, y):
        V, a = y[:24].reshape(3, 8), y[24:]
        s = softmax(a)
        g = V @ s - target
        back = V.T @ g
        return np.append(np.outer(-g, s), -s * (back - s @ back))

    first = np.append(start.V0, start.a0)
    y = solve_ivp(field, (0, 150), first, "DOP853", [110, 150], rtol=1e-12, atol=1e-14).y.T
    V, s = y[-1, :24].reshape(3, 8), softmax(y[-1, 24:])
    C = np.diag(s) - np.outer(s, s)
    K = s @ s * np.eye(3) + V @ C @ C @ V.T
    early, late = (row[:24].reshape(3, 8) @ softmax(row[24:]) - target for row in y)
    np.testing.assert_allclose(expm(-40 * K) @ early, late, rtol=1e-3, atol=1e-4 * np.abs(late).max())
    np.testing.assert_allclose(approach.spectrum(start), np.linalg.eigvalsh(K), rtol=1e-6)


def test_fits_recover_planted_exponents():
    x = np.log(np.geomspace(1e2, 1e6, 40))
    noise = np.random.default_rng(0).normal(scale=0.01, size=40)
    slope, error = laws.fitted_slope(x, 3.0 - 1.7 * x + noise)
    assert 1e-4 < error < 1e-3
    assert abs(slope + 1.7) < 4 * error
    assert np.isnan(laws.fitted_slope(x[:2], x[:2])).all()


def test_ties_and_kinds_without_laws_are_said():
    equal = problem(n=8) | {"a0": [0.0] * 8, "V0": np.zeros((3, 8)).tolist()}
    rate = by_name(flow.rates(equal, flow.solve(equal, log_t=[1.0, 10.0, 100.0])))["softmax"]
    assert rate.holds is None
    assert "tied" in rate.note
    assert rate.to_dict()["law"] == "softmax"
    assert flow.rates(problem("relu", 2) | {"loss": "square"}) == ()
    mine = problem(n=8) | {"loss": lambda beta: jnp.sum(beta**2)}
    assert flow.rates(mine) == ()
    with pytest.raises(InputError, match="unknown law"):
        laws.REGISTRY.get("sofmax")


def test_remainder_is_what_the_laws_measure():
    result = flow.solve(problem(n=8), log_t=[1e3, 1e4, 1e5, 1e6])
    rate = by_name(flow.rates(problem(n=8), result))["softmax"]
    assert rate.quantity == remainder(result.s)[-1]
    assert rate.where == 1e6
