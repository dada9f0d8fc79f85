"""Problems that cannot be read: one clear InputError each, naming what is wrong and where."""

import json

import jax.numpy as jnp
import numpy as np
import pytest

from polariscope import flow
from polariscope.cli import main
from polariscope.errors import InputError

GOOD = flow.preset("logistic", n=3, d=2, seed=0)
REGRESSION = flow.random_problem("regression", n=3, d=2, seed=0)
KL = flow.random_problem("kl", n=3, d=2, seed=0)
SQUARE = flow.random_problem("square", n=3, d=2, seed=0)
KEYS = GOOD | {"model": "keys", "K0": [[1.0, 2.0], [0.0, 1.0], [3.0, -1.0]], "q0": [0.1, 0.2]}

BAD = {
    "softmax": (GOOD | {"scores": "softmacks"}, "did you mean 'softmax'"),
    "logistic": (GOOD | {"loss": "logistics"}, "did you mean 'logistic'"),
    "value": (GOOD | {"model": "values"}, "did you mean 'value'"),
    "no target": ({k: v for k, v in GOOD.items() if k != "target"}, "add target"),
    "no V0": ({k: v for k, v in GOOD.items() if k != "V0"}, "add V0"),
    "no y": ({k: v for k, v in REGRESSION.items() if k != "y"}, "add y"),
    "no times": ({k: v for k, v in GOOD.items() if k != "t"}, "neither t nor log_t"),
    "both times": (GOOD | {"log_t": [1.0]}, "exactly one"),
    "negative time": (GOOD | {"t": [-1.0, 2.0]}, "times from 0 on"),
    "falling times": (GOOD | {"t": [2.0, 1.0]}, "times that increase"),
    "repeated times": (GOOD | {"t": [1.0, 1.0]}, "times that increase"),
    "empty times": (GOOD | {"t": []}, "a list of finite numbers"),
    "time in words": (GOOD | {"t": ["soon"]}, "numbers"),
    "infinite time": (GOOD | {"t": [np.inf]}, "finite numbers"),
    "log t beyond all": ({**{k: v for k, v in GOOD.items() if k != "t"}, "log_t": [1e200]}, "at most 1e+150"),
    "NaN": (GOOD | {"a0": [0.0, np.nan, 1.0]}, "a0: got NaN"),
    "words": (GOOD | {"a0": ["x", "y", "z"]}, "a0: got something else than numbers"),
    "ragged": (GOOD | {"V0": [[1.0, 2.0, 3.0], [1.0]]}, "V0: got something else"),
    "flat V0": (GOOD | {"V0": [1.0, 2.0]}, "V0: got shape (2,)"),
    "empty": (GOOD | {"a0": []}, "a0: got shape (0,)"),
    "a0 too short": (GOOD | {"a0": [0.0, 1.0]}, "shape of a0: got (2,); expected length 3, as the columns of V0"),
    "target too long": (GOOD | {"target": [1.0, 0.0, 0.0]}, "shape of target: got (3,); expected length 2"),
    "y too short": (REGRESSION | {"y": [1.0]}, "shape of y: got (1,)"),
    "zero target": (GOOD | {"target": [0.0, 0.0]}, "the zero vector"),
    "p no distribution": (KL | {"p": [0.9, 0.2]}, "sum 1.1"),
    "p negative": (KL | {"p": [1.5, -0.5]}, "nothing negative"),
    "tied, not square": (GOOD | {"model": "tied"}, "a square matrix"),
    "no object": ("logistic", "got str"),
    "booleans": (GOOD | {"V0": [[True, False, True]] * 2}, "V0: got something else than numbers"),
    "complex": (GOOD | {"a0": [1j, 0, 1]}, "a0: got something else than numbers"),
    "null": (GOOD | {"V0": None}, "V0: got something else than numbers"),
    "cube": (GOOD | {"V0": [[[1.0, 2.0, 3.0]]]}, "V0: got shape (1, 1, 3)"),
    "infinite X": (REGRESSION | {"X": [[np.inf, 0.0]] * 3}, "X: got NaN or infinite"),
    "p too short": (KL | {"p": [1.0]}, "shape of p: got (1,)"),
    "K0 too short": (KEYS | {"K0": [[1.0, 2.0]]}, "shape of K0: got (1, 2); expected length 3"),
    "q0 too short": (KEYS | {"q0": [0.1]}, "shape of q0: got (1,); expected length 2"),
    "no key visible": (GOOD | {"where": [False] * 3}, "at least one"),
    "numbers for where": (GOOD | {"where": [1, 0, 1]}, "3 booleans"),
    "where too short": (GOOD | {"where": [True]}, "3 booleans"),
    "temperature 0": (GOOD | {"temperature": 0}, "temperature: got 0; expected a positive"),
    "negative temperature": (GOOD | {"temperature": -1.0}, "temperature: got -1.0"),
    "NaN temperature": (GOOD | {"temperature": np.nan}, "temperature: got nan"),
    "temperature in words": (GOOD | {"temperature": "1"}, "temperature: got '1'"),
    "infinite log t": ({**{k: v for k, v in GOOD.items() if k != "t"}, "log_t": [np.inf]}, "finite numbers"),
    "log t of 1e300": ({**{k: v for k, v in GOOD.items() if k != "t"}, "log_t": [1e300]}, "at most 1e+150"),
    "time that is true": (GOOD | {"t": True}, "t: got True"),
    "times in quotes": (GOOD | {"t": ["1", "10"]}, "expected numbers"),
    "temperature too low to square": (GOOD | {"temperature": 1e-300}, "1e-150 to 1e+150"),
    "temperature too high to square": (GOOD | {"temperature": 1e300}, "1e-150 to 1e+150"),
    "temperature cut short": (GOOD | {"temp": 2.0}, "did you mean 'temperature'"),
    "where by another name": (GOOD | {"mask": [True]}, "did you mean 'where'"),
    "temperature misspelt": (GOOD | {"temprature": 2.0}, "did you mean 'temperature'"),
    "infinite p": (KL | {"p": [np.inf, 0.0]}, "p: got NaN or infinite"),
    "infinite target": (GOOD | {"target": [np.inf, 0.0]}, "target: got NaN or infinite"),
    "sum 0": (GOOD | {"scores": "sum", "a0": [1.0, -0.5, -0.5]}, "their sum is 0, but for rounding, a pole"),
    "sum 0 with rounding": (SQUARE | {"scores": "sum", "a0": [0.1, 0.2, -0.3]}, "move a0 away from the pole"),
    "no label": (flow.random_problem("cross-entropy", n=3, d=2) | {"label": 2}, "the index of a class"),
    "target too short to divide by": (GOOD | {"target": [1e-101, 0.0]}, "length of the target"),
}


@pytest.mark.parametrize("name", BAD)
def test_every_fault_is_named(name):
    problem, words = BAD[name]
    with pytest.raises(InputError) as caught:
        flow.read_problem(problem)
    assert words in str(caught.value)


@pytest.mark.parametrize("name", BAD)
def test_every_fault_is_exit_code_2_at_the_command_line(name, tmp_path, capsys):
    """The same fault, in four lines; NaN and infinity are no JSON, and the reader of files refuses them."""
    problem, _ = BAD[name]
    with pytest.raises(InputError) as fault:
        flow.read_problems(problem)
    path = tmp_path / "problem.json"
    try:
        path.write_text(json.dumps(problem))
    except TypeError:
        pytest.skip("no JSON")
    with pytest.raises(SystemExit) as caught:
        main(["flow", str(path), "-o", str(tmp_path / "out.json")])
    told = capsys.readouterr().err
    assert caught.value.code == 2
    parts = ("error:", fault.value.what, "got:", fault.value.got, "expected:", fault.value.expected, "do this:")
    wanted = "".join(f"{part}" for part in parts) + fault.value.fix
    assert "".join(told.split()) == "".join(wanted.split()) or told.startswith("error: number in JSON\n")
    assert not (tmp_path / "out.json").exists()


OWN = {
    "a vector": ({"loss": lambda beta: beta}, "loss: got TypeError"),
    "one entry in a list": ({"loss": lambda beta: beta[:1]}, "loss: got TypeError"),
    "NaN": ({"loss": lambda beta: jnp.nan * beta.sum()}, "loss: got value nan"),
    "infinity": ({"loss": lambda beta: jnp.inf + beta.sum()}, "loss: got value inf"),
    "a slope of NaN": ({"loss": lambda beta: jnp.sqrt(jnp.sum(0.0 * beta))}, "gradient [nan nan] at the start"),
    "nothing": ({"loss": lambda beta: None}, "loss: got TypeError"),
    "an integer": ({"loss": lambda beta: 3}, "loss: got TypeError"),
    "a complex number": ({"loss": lambda beta: 1j * beta.sum()}, "one finite real number"),
    "an error": ({"loss": lambda beta: 1 / 0}, "loss: got ZeroDivisionError: division by zero"),
    "a branch": ({"loss": lambda beta: beta.sum() if beta.sum() > 0 else -beta.sum()}, "jnp.where instead of if"),
    "two arguments": ({"loss": lambda beta, more: beta.sum()}, "loss: got TypeError"),
    "NumPy": ({"loss": lambda beta: np.sum(np.asarray(beta) ** 2)}, "use jax.numpy"),
    "too few weights": ({"scores": lambda a: a[:2]}, "scores: got shape (2,)"),
    "one weight": ({"scores": lambda a: a.sum()}, "scores: got shape ()"),
    "weights of NaN": ({"scores": lambda a: a * jnp.nan}, "scores: got weights [nan nan nan]"),
    "an error in the map": ({"scores": lambda a: 1 / 0}, "scores: got ZeroDivisionError"),
    "no weights": ({"scores": lambda a: None}, "scores: got AttributeError"),
    "a map at a temperature": ({"scores": lambda a: a, "temperature": 2.0}, "put it into the function"),
}


@pytest.mark.parametrize("base", [GOOD, SQUARE], ids=lambda p: p["loss"])
@pytest.mark.parametrize("name", OWN)
def test_functions_of_ones_own_are_tried_before_anything_runs(name, base):
    own, words = OWN[name]
    with pytest.raises(InputError) as caught:
        flow.solve(base | own)
    assert words in str(caught.value)


def test_place_and_name_in_a_list():
    with pytest.raises(InputError, match=r"problem 1 \(second\): shape of a0"):
        flow.read_problems([GOOD, GOOD | {"name": "second", "a0": [1.0]}])
    with pytest.raises(InputError, match="problem 1: unknown loss"):
        flow.read_problems([GOOD, {k: v for k, v in GOOD.items() if k != "name"} | {"loss": "x"}])
    with pytest.raises(InputError, match="empty list"):
        flow.read_problems([])


def test_arguments_of_solve():
    for rtol in (1.0, 0.0, -1.0, np.nan, "1e-9", None):
        with pytest.raises(InputError, match="rtol"):
            flow.solve(GOOD, rtol=rtol)
    with pytest.raises(InputError, match="exactly one"):
        flow.solve(GOOD, t=[1.0], log_t=[1.0])
    with pytest.raises(InputError, match="at most 690"):
        flow.solve(REGRESSION, log_t=[1e6])


@pytest.mark.parametrize("bad", [{"n": 0}, {"n": 2.5}, {"seed": -1}, {"d": 0}])
def test_arguments_of_preset(bad):
    with pytest.raises(InputError, match=next(iter(bad))):
        flow.preset("logistic", **bad)


def test_unknown_preset():
    with pytest.raises(InputError, match="did you mean 'logistic'"):
        flow.preset("logistik")


def test_presets_are_independent_streams():
    """Each part depends on the seed alone, not on the sizes of the others, and parts do not repeat each other."""
    small, large = flow.preset("logistic", n=4, d=5, seed=3), flow.preset("logistic", n=9, d=5, seed=3)
    assert small["target"] == large["target"]
    assert np.linalg.norm(small["target"]) == pytest.approx(1)
    assert small["a0"] == large["a0"][:4]
    numbers = np.concatenate([np.ravel(small[k]) for k in ("V0", "a0")] + [np.array(small["target"])])
    assert len(np.unique(numbers)) == len(numbers)
    assert np.abs(np.corrcoef(np.array(large["V0"])[0, :5], large["target"])[0, 1]) < 0.99
    assert flow.preset("logistic", seed=3) == flow.preset("logistic", seed=3) != flow.preset("logistic", seed=4)


ODD = {
    "X = 0": (REGRESSION | {"X": [[0.0, 0.0]] * 3}, "converged"),
    "tiny X": (REGRESSION | {"X": [[1e-200, 0.0]] * 3}, "ok"),
    "singular X": (REGRESSION | {"X": [[1.0, 1.0]] * 3}, "converged"),
    "zero target": (SQUARE | {"target": [0.0, 0.0]}, "converged"),
    "one-hot p": (KL | {"p": [0.0, 1.0]}, "ok"),
    "p with an entry of 1e-300": (KL | {"p": [1e-300, 1.0]}, "ok"),
    "one visible key": (KL | {"where": [False, True, False]}, "converged"),
    "saturated logits": (KL | {"a0": [1e6, 0.0, -1e6]}, "converged"),
    "temperature 1e-10": (KL | {"temperature": 1e-10}, "converged"),
    "tiny V0": (SQUARE | {"V0": [[1e-300, 0.0, -1e-300]] * 2}, "converged"),
    "nothing to tell keys apart": (SQUARE | {"V0": [[0.0] * 3] * 2, "a0": [0.0] * 3}, "converged"),
    "two times one float apart": (KL | {"t": [1.0, np.nextafter(1.0, 2.0)]}, "ok"),
    "short target": (GOOD | {"target": [1e-99, 0.0]}, "ok"),
    "long target": (GOOD | {"target": [1e99, 0.0]}, "ok"),
    "log t of -1e300": ({**{k: v for k, v in KL.items() if k != "t"}, "log_t": [-1e300, 1.0]}, "ok"),
    "times at the end of floats": (KL | {"t": [5e-324, 1e-323]}, "ok"),
    "coldest": (GOOD | {"temperature": 1e-150}, "ok"),
    "hottest": (GOOD | {"temperature": 1e150}, "ok"),
    "log t of 1e150": ({**{k: v for k, v in GOOD.items() if k != "t"}, "log_t": [1.0, 1e150]}, "ok"),
    "a minimum long before log t = 690": (
        {k: v for k, v in SQUARE.items() if k != "t"} | {"log_t": [0, 690]},
        "converged",
    ),
    "huge V0": (GOOD | {"V0": (1e150 * np.array(GOOD["V0"])).tolist()}, "ok"),
    "huge logits": (GOOD | {"a0": [1e150, 0.0, -1e150]}, "ok"),
    "a target that is fitted": (GOOD | {"V0": np.outer(GOOD["target"], [1e3] * 3).tolist()}, "ok"),
}


@pytest.fixture(scope="module")
def odd():
    problems = [
        ({} if "log_t" in p else {"t": [1.0, 1e3]}) | {k: v for k, v in p.items() if k != "t" or len(v) == 2}
        for p, _ in ODD.values()
    ]
    return dict(zip(ODD, flow.solve_many(problems), strict=True))


@pytest.mark.parametrize("name", ODD)
def test_odd_problems_have_an_answer(odd, name):
    """No NaN, no warning, weights that sum to one, a loss that does not grow, and the status that is promised."""
    result = odd[name]
    assert result.status == ODD[name][1]
    for values in (result.s, result.a, result.objective, result.column_norms):
        assert np.isfinite(values).all()
    np.testing.assert_allclose(result.s.sum(axis=1), 1, rtol=0, atol=1e-12)
    assert result.objective[1] <= result.objective[0] * (1 + 1e-12) + 1e-15
    assert all(check.holds is not False for check in result.checks)


@pytest.mark.parametrize("problem", [SQUARE, KL, GOOD], ids=lambda p: p["loss"])
def test_t_and_log_t_name_the_same_times(problem):
    times = np.array([1e-9, 0.1, 30.0, 1e3])
    one, other = flow.solve(problem, t=times), flow.solve(problem, log_t=np.log(times))
    np.testing.assert_allclose(one.s, other.s, rtol=0, atol=1e-12)
    np.testing.assert_allclose(other.t, times, rtol=1e-14)
    assert one.status == other.status


@pytest.mark.parametrize("model", ["value", "keys", "tied"])
@pytest.mark.parametrize("loss", ["logistic", "exponential", "square", "regression", "kl", "cross-entropy"])
def test_a_symmetric_point_is_said_and_kept(loss, model):
    """a = 0 and u = 0: no key ever leads, to the last bit."""
    problem = flow.random_problem(loss, n=5, d=5, seed=1, target_norm=1.0 if loss in ("kl", "cross-entropy") else 10.0)
    problem |= {"model": model, "V0": [[0.0] * 5] * 5, "a0": [0.0] * 5, "K0": [[1.0, 2.0]] * 5, "q0": [0.3, -0.2]}
    result = flow.solve(problem, t=[1.0, 100.0])
    assert result.complete
    assert (result.s == result.s[:, :1]).all()
    assert "Coordinates 0, 1, 2, 3, 4 start tied and stay tied" in result.message


@pytest.mark.parametrize(("model", "n"), [("value", 33), ("keys", 7), ("query", 7), ("keys-query", 7)])
def test_exact_ties_outlive_rounding(model, n):
    """Two equal keys among others, a long target: a difference in the last bit would grow."""
    problem = flow.random_problem("square", n=n, d=5, scale=0.3, seed=1, target_norm=20.0) | {"model": model}
    V, K = np.array(problem["V0"]), np.random.default_rng(0).normal(size=(n, 3))
    a = np.array(problem["a0"])
    V[:, -1], K[-1], a[[0, -1]] = V[:, 0], K[0], 2.0
    problem |= {"V0": V.tolist(), "a0": a.tolist(), "K0": K.tolist(), "q0": (2 * K[0] / (K[0] @ K[0])).tolist()}
    result = flow.solve(problem, t=[1.0, 1e3])
    assert result.complete
    np.testing.assert_allclose(result.s[:, 0], result.s[:, -1], rtol=1e-14)


def test_no_weight_is_said():
    dead = SQUARE | {"scores": "relu", "a0": [-1.0, -2.0, 0.0]}
    assert "No key has weight" in flow.solve(dead, t=[1.0]).message


def test_data_that_overflow_diverge_at_once():
    result = flow.solve(REGRESSION | {"X": [[1e200, 0.0]] * 3}, t=[1.0])
    assert result.status == "diverged"
    assert result.stats["steps"] == 0
    assert np.isnan(result.s).all()
