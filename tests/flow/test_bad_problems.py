"""Problems that cannot be read: one clear InputError each, naming what is wrong and where."""

import numpy as np
import pytest

from polariscope import flow
from polariscope.errors import InputError

GOOD = flow.preset("logistic", n=3, d=2, seed=0)
REGRESSION = flow.random_problem("regression", n=3, d=2, seed=0)
KL = flow.random_problem("kl", n=3, d=2, seed=0)

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
