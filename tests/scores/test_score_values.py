"""Values of every map: reference numbers, agreement of libraries, masks, limits, NaN."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from polariscope import scores

NAMES = list(scores.REGISTRY)
ABSOLUTE = {"sparsemax": 1e-14, "entmax-1.5": 1e-14}
"""Small weights of sparse maps are differences of numbers of size 1, in the logits already."""
A, B, G = np.array([1.5, 0.9, 0.4, -1.3]), np.array([-0.8, 0.3, -1.9, 0.6]), np.array([0.3, -0.7, 1.1, 0.2])
FIRST_THREE = np.array([True, True, True, False])
REFERENCE = json.loads((Path(__file__).parents[1] / "data" / "attention_kinds.json").read_text(encoding="utf-8"))

ROWS = [  # map, key of the reference, logits, mask, factor between our convention and theirs
    ("softmax", "softmax", A, None, 1),
    ("softmax", "softmax_masked", A, FIRST_THREE, 1),
    ("sigmoid", "sigmoid", A, None, 1),
    ("sigmoid-normalized", "sigmoid_norm0", A, None, 1),
    ("relu-elementwise", "relu_n", A, None, 4),  # theirs is divided by n = 4
    ("relu", "relu_norm0", A, None, 1),
    ("l1", "l1", A, None, 1),
    ("sum", "sum", A, None, 1),
    ("sum", "sum_B", B, None, 1),
    ("square", "square", A, None, 1),
    ("elu-normalized", "elu_dot_norm", A, None, 1),
    ("identity", "raw", A, None, 1),
    ("uniform", "uniform", A, None, 1),
    ("uniform", "uniform_masked", A, FIRST_THREE, 1),
    ("softmax-off-by-one", "softmax1", A, None, 1),
    ("softmax-off-by-one", "softmax1_B", B, None, 1),
    ("sparsemax", "sparsemax", A, None, 1),
    ("entmax-1.5", "entmax15", A, None, 1),
]
MASKED = [
    ("softmax", "softmax", 1),
    ("sigmoid", "sigmoid b=0", 1),
    ("sigmoid-normalized", "sigmoid_norm (eps 0)", 1),
    ("relu-elementwise", "relu/n, n=4", 4),
    ("relu", "relu_norm", 1),
    ("l1", "L1", 1),
    ("sum", "sum", 1),
    ("square", "square", 1),
    ("elu-normalized", "elu1_norm", 1),
    ("uniform", "uniform", 1),
    ("softmax-off-by-one", "softmax1", 1),
    ("sparsemax", "sparsemax", 1),
    ("entmax-1.5", "entmax15", 1),
]


def test_every_map_has_a_reference():
    assert {row[0] for row in ROWS} == set(NAMES)


@pytest.mark.parametrize(("name", "key", "a", "where", "factor"), ROWS, ids=[row[1] for row in ROWS])
def test_reference_values(name, key, a, where, factor):
    weights, pulled = REFERENCE["R"][key]
    m = scores.get(name)
    np.testing.assert_allclose(m(a, where), factor * np.array(weights), rtol=0, atol=1e-14)
    np.testing.assert_allclose(m.vjp(a, G, where), factor * np.array(pulled), rtol=0, atol=1e-14)


@pytest.mark.parametrize(("name", "key", "factor"), MASKED)
def test_masked_reference_values(name, key, factor):
    expected = factor * np.array(REFERENCE["masked"][key])
    np.testing.assert_allclose(scores.get(name)(A, FIRST_THREE)[: len(expected)], expected, rtol=0, atol=1e-14)


def test_softmax_on_the_second_vector():
    np.testing.assert_allclose(scores.get("softmax")(B), REFERENCE["N"]["softmax_B"], rtol=0, atol=1e-14)


def test_sigmoid_with_a_bias():
    m = scores.sigmoid_with_bias(-math.log(4))
    weights, pulled = REFERENCE["R"]["sigmoid_bn"]
    np.testing.assert_allclose(m(A), weights, rtol=0, atol=1e-14)
    np.testing.assert_allclose(m.vjp(A, G), pulled, rtol=0, atol=1e-14)
    np.testing.assert_allclose(m(A, FIRST_THREE)[:3], REFERENCE["masked"]["sigmoid b=-ln4"][:3], rtol=0, atol=1e-14)


def logits(shapes):
    return arrays(np.float64, shapes, elements=st.floats(-1e6, 1e6).filter(lambda x: x == 0 or abs(x) > 1e-100))


def away_from_the_pole(name, a):
    """How close a row of ``sum`` comes to its pole is decided by rounding; positive logits stay away from it."""
    return np.abs(a) if name == "sum" else a


@pytest.mark.parametrize("name", NAMES)
@settings(deadline=None, max_examples=50)
@given(a=logits(array_shapes(min_dims=1, max_dims=3, max_side=6)), data=st.data())
def test_laws_on_any_shape(name, a, data):
    m, a = scores.get(name), away_from_the_pole(name, a)
    where = data.draw(arrays(np.bool_, a.shape))
    s = m(a, where)
    assert s.shape == a.shape
    assert not s[~where].any()
    order = np.array(data.draw(st.permutations(range(a.shape[-1]))))
    atol = ABSOLUTE.get(name, 0)
    np.testing.assert_allclose(m(a[..., order], where[..., order]), s[..., order], rtol=1e-12, atol=atol)
    np.testing.assert_allclose(m(torch.tensor(a), torch.tensor(where)), s, rtol=1e-12, atol=atol)
    if m.properties.sums_to_one:
        np.testing.assert_allclose(s.sum(-1)[m.admissible(a, where)], 1, rtol=1e-12)


@pytest.mark.parametrize("name", NAMES)
@settings(deadline=None, max_examples=50)
@given(a=logits((2, 3)), where=arrays(np.bool_, (2, 3)))
def test_libraries_agree(name, libraries, a, where):
    m, a = scores.get(name), away_from_the_pole(name, a)
    in_numpy, in_jax, in_torch = (library.run(m, a, where) for library in libraries)
    np.testing.assert_allclose(in_jax, in_numpy, rtol=1e-12, atol=ABSOLUTE.get(name, 0))
    np.testing.assert_allclose(in_torch, in_numpy, rtol=1e-12, atol=ABSOLUTE.get(name, 0))


@pytest.mark.parametrize("name", NAMES)
def test_a_hidden_key_is_as_good_as_none(name, library):
    rng = np.random.default_rng(3)
    a, where = rng.normal(loc=0.2, size=(40, 5)), rng.random((40, 5)) < 0.6
    m = scores.get(name)
    s = library.run(m, a, where)
    for row, visible, weights in zip(a, where, s, strict=True):
        if visible.any():
            np.testing.assert_allclose(weights[visible], m(row[visible]), rtol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_masks_broadcast(name, library):
    a = np.random.default_rng(4).normal(size=(2, 4, 4))
    m = scores.get(name)
    for where in (np.tri(4, dtype=bool), np.array([[True], [False], [True], [True]])):
        wide = library.run(m, a, np.broadcast_to(where, a.shape))
        np.testing.assert_allclose(library.run(m, a, where), wide, rtol=1e-12)


ALL, ONE = [True, True, True], [True, False, False]


@pytest.mark.parametrize("name", [n for n in NAMES if scores.get(n).properties.sums_to_one])
def test_equal_logits_and_a_single_key(name, library):
    s = library.run(scores.get(name), [[0.5, 0.5, 0.5], [30.0, 30.0, 30.0]], [ALL, ONE])
    np.testing.assert_allclose(s, [[1 / 3, 1 / 3, 1 / 3], [1, 0, 0]], rtol=1e-14)
    np.testing.assert_allclose(scores.get(name)(np.array([7.0])), [1.0], rtol=1e-14)


@pytest.mark.parametrize(
    "name",
    ["softmax", "softmax-off-by-one", "relu", "l1", "sum", "square", "elu-normalized", "sparsemax", "entmax-1.5"],
)
def test_one_dominating_logit(name, library):
    s = library.run(scores.get(name), [[1.0, 1e9, 0.5], [-1.0, 0.0, 1e12]], [ALL, ALL])
    np.testing.assert_allclose(s, [[0, 1, 0], [0, 0, 1]], atol=2e-9)


@pytest.mark.parametrize("name", NAMES)
def test_large_and_small_logits(name, library):
    m = scores.get(name)
    rows = [
        [700.0, -800.0, 1.0],
        [-800.0, -900.0, -1e4],
        [1e300, 1e299, 1.0],
        [1e-290, 3e-290, 0.0],
        [-1e300, 1e200, 2],
    ]
    for a in rows:
        s = library.run(m, np.array([a, a], float), [ALL, ALL])
        assert np.isfinite(s).all()
        if m.properties.sums_to_one and m.admissible(np.array(a, float)):
            assert s.sum(-1) == pytest.approx(1)


def test_far_tails_keep_their_digits(library):
    expected = 1 / (1 + np.exp([-1.0, 1.0]))
    for name in ("softmax", "sigmoid-normalized", "elu-normalized"):
        s = library.run(scores.get(name), np.array([-300.0, -301.0], np.float32))
        np.testing.assert_allclose(s, expected, rtol=1e-6)
    assert library.run(scores.get("sigmoid"), [-40.0])[0] == pytest.approx(math.exp(-40), rel=1e-14)


@pytest.mark.parametrize("name", NAMES)
def test_nan_comes_out_as_nan(name, library):
    m = scores.get(name)
    a, g, where = [[1.0, np.nan, 2.0]] * 2, [[1.0, 2.0, 3.0]] * 2, [ALL, [True, True, False]]
    s, pulled = library.run(m, a, where), library.run(m.vjp, a, g, where)
    assert np.isnan(s[:, 1]).all()
    assert np.isnan(pulled[:, 1]).all() or name in ("relu-elementwise", "identity")  # their slopes do not know a
    if m.properties.sums_to_one:
        assert np.isnan(s[:, 0]).all()
    assert s[1, 2] == pulled[1, 2] == 0


@pytest.mark.parametrize("name", NAMES)
def test_dtype_is_kept(name, library):
    m = scores.get(name)
    a = A.astype(np.float32)
    assert library.run(m, a, FIRST_THREE).dtype == library.run(m.vjp, a, a, FIRST_THREE).dtype == np.float32
    half = torch.tensor(A, dtype=torch.bfloat16)
    assert m(half).dtype == m.vjp(half, half).dtype == torch.bfloat16
    np.testing.assert_allclose(m(half).float(), m(A), rtol=0.02)
