"""Problems that cannot be read: one clear InputError each, naming what is wrong and where."""

import numpy as np
import pytest

from polariscope import flow
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
    "target too short to divide by": (GOOD | {"target": [1e-101, 0.0]}, "length of the target"),
}


@pytest.mark.parametrize("name", BAD)
def test_every_fault_is_named(name):
    problem, words = BAD[name]
    with pytest.raises(InputError) as caught:
        flow.read_problem(problem)
    assert words in str(caught.value)


def test_place_and_name_in_a_list():
    with pytest.raises(InputError, match=r"problem 1 \(second\): shape of a0"):
        flow.read_problems([GOOD, GOOD | {"name": "second", "a0": [1.0]}])
    with pytest.raises(InputError, match="problem 1: unknown loss"):
        flow.read_problems([GOOD, {k: v for k, v in GOOD.items() if k != "name"} | {"loss": "x"}])
    with pytest.raises(InputError, match="empty list"):
        flow.read_problems([])


def test_arguments_of_solve():
    with pytest.raises(InputError, match="rtol"):
        flow.solve(GOOD, rtol=1.0)
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
    "tiny X": (REGRESSION | {"X": [[1e-200, 0.0]] * 3}, "converged"),
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
    "huge V0": (GOOD | {"V0": (1e150 * np.array(GOOD["V0"])).tolist()}, "ok"),
    "huge logits": (GOOD | {"a0": [1e150, 0.0, -1e150]}, "ok"),
    "a target that is fitted": (GOOD | {"V0": np.outer(GOOD["target"], [1e3] * 3).tolist()}, "ok"),
}


@pytest.fixture(scope="module")
def odd():
    problems = [{"t": [1.0, 1e3]} | {k: v for k, v in p.items() if k != "t" or len(v) == 2} for p, _ in ODD.values()]
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
