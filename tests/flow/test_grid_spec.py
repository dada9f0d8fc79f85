"""Specs of phase diagrams: what is written is what is solved; what makes no sense is said."""

import itertools

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from polariscope import flow
from polariscope.errors import InputError
from polariscope.flow.cell import NAMES
from polariscope.flow.grid_spec import read_spec

NUMBERS = st.floats(1e-6, 1e3)
VALUES = {
    "n": st.integers(1, 50),
    "d": st.integers(1, 50),
    "scale": NUMBERS,
    "temperature": NUMBERS,
    "target_norm": NUMBERS,
    "scores": st.sampled_from(["softmax", "relu", "sparsemax", "sigmoid"]),
    "loss": st.sampled_from(["logistic", "square", "exponential", "regression"]),
}
LISTS = {name: st.lists(values, min_size=1, max_size=4, unique=True) for name, values in VALUES.items()}
AXES = st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=2, unique=True).flatmap(
    lambda names: st.fixed_dictionaries({name: LISTS[name] for name in names})
)
MANY = settings(max_examples=60, deadline=None, derandomize=True)


@MANY
@given(AXES, st.integers(1, 30), st.lists(st.floats(0, 1e6), min_size=1, max_size=4, unique=True).map(sorted))
def test_every_combination_is_a_cell_once(tmp_path_factory, axes, seeds, times):
    given = {"axes": axes, "seeds": seeds, "t": times}
    spec = read_spec(given)
    cells = [tuple(getattr(cell, name) for name in axes) for cell in spec.cells]
    assert cells == list(itertools.product(*axes.values()))
    assert spec.seeds == tuple(range(seeds))
    assert np.exp(spec.times) == pytest.approx(times, rel=1e-12)
    path = tmp_path_factory.mktemp("spec") / "spec.yaml"
    path.write_text(yaml.safe_dump(given, sort_keys=False))
    assert read_spec(path) == spec == read_spec(str(path)) == read_spec(spec)


@MANY
@given(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3), st.integers(2, 20), st.sampled_from(["log", "linear"]))
def test_ranges_have_both_ends_and_equal_steps(start, to, count, spacing):
    if abs(start - to) < 1e-6 * start:
        return
    (values,) = read_spec(
        {"axes": {"scale": {"from": start, "to": to, "count": count, "spacing": spacing}}, "t": 1}
    ).axes.values()
    assert (values[0], values[-1]) == pytest.approx((start, to), rel=1e-11)
    assert len(values) == count
    steps = np.diff(np.log(values) if spacing == "log" else values)
    np.testing.assert_allclose(steps, steps[0], rtol=1e-3, atol=1e-9)


@MANY
@given(st.integers(0, 10_000), st.sampled_from(["square", "regression"]))
def test_a_seed_has_the_same_random_numbers_in_every_cell(seed, loss):
    base = {"fixed": {"loss": loss, "n": 4, "d": 3}, "t": 1, "seeds": [seed]}
    axes = {"scale": [0.5, 2.0], "target_norm": [1.0, 8.0]}
    problems = [cell.problem(seed, [0.0]) for cell in read_spec(base | {"axes": axes}).cells]
    for cell, problem in zip(itertools.product(*axes.values()), problems, strict=True):
        scale, norm = cell
        for key, unit in (("V0", scale), ("a0", scale), ("y" if loss == "regression" else "target", norm)):
            first = np.array(problems[0][key]) / (0.5 if unit == scale else 1.0)
            np.testing.assert_allclose(np.array(problem[key]) / unit, first, rtol=1e-12, atol=1e-14)
    others = {"temperature": [1.0, 3.0], "scores": ["softmax", "relu"]}
    shared = [
        {key: problem[key] for key in ("V0", "a0")}
        for problem in (cell.problem(seed, [0.0]) for cell in read_spec(base | {"axes": others}).cells)
    ]
    assert all(one == shared[0] for one in shared)


def test_condition_numbers_and_lengths_are_those_asked_for():
    spec = read_spec(
        {"axes": {"condition_number": [1, 7, 400], "target_norm": [0.5, 3]}, "fixed": {"loss": "regression"}, "t": 1}
    )
    for cell in spec.cells:
        problem = cell.problem(3, [0.0])
        values = np.linalg.svd(np.array(problem["X"]), compute_uv=False)
        assert values[0] / values[-1] == pytest.approx(cell.condition_number, rel=1e-9)
        best = np.linalg.lstsq(np.array(problem["X"]), np.array(problem["y"]))[0]
        assert np.linalg.norm(best) == pytest.approx(cell.target_norm, rel=1e-9)


def test_arrays_and_whole_numbers_are_numbers():
    spec = read_spec(
        {"axes": {"scale": np.array([1, 2]), "n": np.arange(2, 4)}, "seeds": np.int64(2), "t": np.float64(3)}
    )
    assert spec == read_spec({"axes": {"scale": [1.0, 2.0], "n": [2, 3]}, "seeds": [0, 1], "t": [3.0]})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"axes": {"kappa": [1]}}, "unknown axis.*condition_number"),
        ({"axes": {"scal": [1]}}, "did you mean 'scale'"),
        ({"axes": {1: [1]}}, "unknown axis"),
        ({"axes": {}}, "0 axes"),
        ({"axes": {"n": [2], "d": [2], "scale": [1.0]}}, "3 axes"),
        ({"axes": ["n"]}, "list"),
        ({"axes": {"n": []}}, r"write n: \[1, 2\]"),
        ({"axes": {"n": 3}}, "a list of values"),
        ({"axes": {"n": [None]}}, "a list of values"),
        ({"axes": {"n": [2, 2]}}, "a value twice"),
        ({"axes": {"scale": [1, 1.0]}}, "a value twice"),
        ({"axes": {"n": {"from": 2, "to": 3, "count": 9}}}, "a value twice"),
        ({"axes": {"n": [2.5]}}, "integer"),
        ({"axes": {"n": [0]}}, "greater than or equal to 1"),
        ({"axes": {"n": [True]}}, "integer"),
        ({"axes": {"n": [[2]]}}, "integer"),
        ({"axes": {"scale": ["big"]}}, "number"),
        ({"axes": {"scale": [0.0]}}, "greater than"),
        ({"axes": {"scale": [np.inf]}}, "finite"),
        ({"axes": {"scale": [np.nan]}}, "finite|nan"),
        ({"axes": {"scores": ["softmaxx"]}}, "unknown score map.*softmax"),
        ({"axes": {"loss": ["logistik"]}}, "unknown loss.*logistic"),
        ({"axes": {"model": ["keys"]}}, "'value' or 'tied'"),
        ({"axes": {"scores": {"from": 1, "to": 2, "count": 2}}}, "a list of names"),
        ({"axes": {"scale": {"from": 0, "to": 2, "count": 2, "spacing": "log"}}}, "positive ends"),
        ({"axes": {"scale": {"from": 1, "to": 2}}}, "count"),
        ({"axes": {"scale": {"from": 1, "to": 2, "count": 1}}}, "count.*greater than or equal to 2"),
        ({"axes": {"scale": {1: 2}}}, "unknown scale setting"),
        ({"axes": {"scale": [0.0]}}, "greater than or equal to 1e-100;"),
        ({"axes": {"n": [9000]}}, "size of V0.*4000000 entries"),
        ({"axes": {"n": [9000]}, "fixed": {"d": 500}}, "size of V0"),
        ({"axes": {"scale": {"from": 1, "to": 2, "count": 2, "step": 1}}}, "unknown scale setting.*'step'"),
        ({"axes": {"scale": {"start": 1, "to": 2, "count": 2}}}, "unknown scale setting.*'start'"),
        ({"axes": {"scale": {"from": 1, "to": 2, "count": 10**9}}}, "10000"),
        ({"axes": {"condition_number": [2.0]}}, "regression loss"),
        ({"axes": {"condition_number": [0.5]}, "fixed": {"loss": "regression"}}, "1"),
        ({"axes": {"target_norm": [2.0]}, "fixed": {"loss": "kl"}}, "fits a vector"),
        ({"axes": {"d": [2, 3]}, "fixed": {"model": "tied", "n": 3}}, "tied model"),
        ({"fixed": {"n": 3}}, "it as an axis and as fixed"),
        ({"fixed": {"rtol": 3}}, "unknown name in fixed.*'rtol'"),
        ({"fixed": {1: 3}}, "unknown name in fixed"),
        ({"fixed": {"scale": [1.0]}}, "number"),
        ({"fixed": [1]}, "names with one value each"),
        ({"fixed": None}, "names with one value each"),
        ({"seeds": 0}, "a count, or a list"),
        ({"seeds": [1, 1]}, "a count, or a list"),
        ({"seeds": [-1]}, "a count, or a list"),
        ({"seeds": [2**63]}, "a count, or a list"),
        ({"seeds": True}, "a count, or a list"),
        ({"seeds": 10**9}, "at most 1000000 flows"),
        ({"t": None}, "exactly one of t and log_t"),
        ({"log_t": 1}, "exactly one of t and log_t"),
        ({"t": [2, 1]}, "increase"),
        ({"t": -1}, "times from 0 on"),
        ({"t": "soon"}, "number"),
        ({"rtol": 1}, "0.01"),
        ({"colour": "red"}, "unknown grid setting.*'colour'"),
        ({"axis": {"n": [2]}}, "did you mean 'axes'"),
        ({"name": 3}, "string"),
        ({"name": "long " * 99}, "200"),
    ],
)
def test_what_makes_no_sense_is_said(change, message):
    with pytest.raises(InputError, match=message):
        read_spec({"axes": {"n": [2, 3]}, "t": 1} | change)


@pytest.mark.parametrize("source", [3, None, [1], {1: 2}])
def test_what_is_no_mapping_is_said(source):
    with pytest.raises(InputError, match="a mapping with name, axes, fixed, seeds, t, log_t, rtol"):
        flow.grid(source)


def test_every_name_of_a_cell_can_be_an_axis():
    values = {"loss": ["square"], "scores": ["relu"], "model": ["tied"], "n": [3], "d": [8]}
    for name in NAMES:
        fixed = {"loss": "regression"} if name == "condition_number" else {}
        assert list(read_spec({"axes": {name: values.get(name, [2.0])}, "fixed": fixed, "t": 1}).axes) == [name]
