"""The null option, sparse maps and temperature against references made apart: mpmath, root finding, closed forms."""

import json
import math
from pathlib import Path

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import brentq

from polariscope import scores
from polariscope.errors import InputError

SPARSE = {"sparsemax": 1, "entmax-1.5": 2}
REFERENCE = json.loads((Path(__file__).parents[1] / "data" / "attention_kinds.json").read_text(encoding="utf-8"))
NULL = scores.get("softmax-off-by-one")


def with_null_option(a):
    """e^a/(1 + Σe^a) in 60 digits; e^a is never too large or small for mpmath."""
    with mpmath.workdps(60):
        e = [mpmath.exp(mpmath.mpf(float(x))) for x in a]
        return np.array([float(x / (1 + mpmath.fsum(e))) for x in e])


@pytest.mark.parametrize(
    "a",
    [[1e6, 1e6 - 1, -1e6], [-1e6, -1e6, -1e6], [-700.0, -705.0, -1e6], [710.0, 0.0, -20.0], [1e-300, 2e-300, 0.0]],
)
def test_null_option_in_many_digits(a, library):
    s = library.run(NULL, a)
    np.testing.assert_allclose(s, with_null_option(a), rtol=1e-12, atol=3e-308)  # JAX has no subnormal numbers
    g = np.array([1.0, -2.0, 0.5])
    np.testing.assert_allclose(library.run(NULL.vjp, a, g), s * (g - s @ g), rtol=1e-12, atol=1e-300)


def test_null_option_is_softmax_with_a_key_of_logit_zero(library):
    a = np.random.default_rng(5).normal(size=(30, 4))
    wide = library.run(scores.get("softmax"), np.append(a, np.zeros((30, 1)), axis=1))
    np.testing.assert_allclose(library.run(NULL, a), wide[:, :4], rtol=1e-14)


def by_root_finding(a, power):
    """Weights max(x − τ, 0)ᵖ, x = a/p, with the τ that SciPy finds for Σ = 1."""
    x = a / power - np.max(a / power)
    threshold = brentq(lambda t: (np.maximum(x - t, 0) ** power).sum() - 1, -1, 0, xtol=1e-15)
    return np.maximum(x - threshold, 0) ** power


@pytest.mark.parametrize("name", SPARSE)
@settings(deadline=None, max_examples=200)
@given(a=arrays(np.float64, st.integers(1, 9), elements=st.floats(-3, 3)), offset=st.sampled_from([0.0, 1e6, -1e6]))
def test_sparse_weights_by_root_finding(name, a, offset):
    a = a + offset  # as rounded: the row is what it then is
    np.testing.assert_allclose(scores.get(name)(a), by_root_finding(a, SPARSE[name]), rtol=0, atol=3e-14)


@pytest.mark.parametrize("name", SPARSE)
@pytest.mark.parametrize(("kind", "atol"), [(torch.float64, 1e-12), (torch.float32, 1e-6), (torch.bfloat16, 4e-3)])
def test_long_rows(name, kind, atol):
    """Wide supports, and single logits that stand out; in bfloat16 a count of the support would stop at 256."""
    rng = np.random.default_rng(6)
    for scale in (1e-4, 1e-2, 3.0):
        a = torch.tensor(scale * rng.normal(size=3000)).to(kind)
        wanted = by_root_finding(a.double().numpy(), SPARSE[name])
        got = scores.get(name)(a).double().numpy()
        np.testing.assert_allclose(got, wanted, rtol=1e-2 if kind == torch.bfloat16 else 0, atol=atol * wanted.max())


@pytest.mark.parametrize("name", SPARSE)
def test_extreme_logits_of_sparse_maps(name, library):
    m = scores.get(name)
    rows = {
        (1e300, -1e300, 1e299): [1, 0, 0],
        (-8e307, 8e307, 8e307): [0, 0.5, 0.5],
        (1e-300, 2e-300, 0.0): [1 / 3] * 3,
        (1e6, 1e6 - 1e9, 1e6): [0.5, 0, 0.5],
        (3.0, -math.inf, 3.0): [0.5, 0, 0.5],
    }
    np.testing.assert_allclose(library.run(m, list(rows)), list(rows.values()), rtol=0, atol=1e-15)
    assert np.isfinite(library.run(m.vjp, list(rows), np.ones((5, 3)))).all()


@pytest.mark.parametrize("name", SPARSE)
def test_hidden_keys_never_enter_the_support(name, library):
    """Though their place is filled, and visible ones lie exactly on its border."""
    a, where = np.array([[0.0, -1.0, 5.0], [0.0, -2.0, 0.0]]), np.array([[True, True, False], [True, True, False]])
    np.testing.assert_array_equal(library.run(scores.get("sparsemax"), a, where), [[1, 0, 0], [1, 0, 0]])
    m, many = scores.get(name), np.tile(a, 200)
    s = library.run(m, many, np.tile(where, 200))
    np.testing.assert_allclose(s.sum(1), 1, rtol=1e-13)
    assert not s[:, 1::3].any()


@pytest.mark.parametrize("name", list(scores.REGISTRY))
@pytest.mark.parametrize("value", [0.5, 2])
def test_temperature_divides_logits(name, value, libraries):
    """Gradients by autodiff are those of the formula; properties are kept; hidden keys stay hidden."""
    inner = scores.get(name)
    m = scores.temperature(inner, value)
    rng = np.random.default_rng(7)
    a, g, where = rng.normal(loc=0.3, size=(6, 4)), rng.normal(size=(6, 4)), rng.random((6, 4)) < 0.7
    where[0] = False
    assert (m.name, m.properties) == (f"{name}/τ={value}", inner.properties)
    expected = inner.vjp(a / value, g, where) / value
    for library in libraries:
        np.testing.assert_allclose(library.run(m, a, where), inner(a / value, where), rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(library.run(m.vjp, a, g, where), expected, rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(libraries[2].pullback(m, a, g, where), expected, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize(("value", "key"), [(0.5, "temp0.5"), (2, "temp2")])
def test_temperature_reference_values(value, key):
    m = scores.temperature(scores.get("softmax"), value)
    weights, pulled = REFERENCE["R"][key]
    a, g = np.array([1.5, 0.9, 0.4, -1.3]), np.array([0.3, -0.7, 1.1, 0.2])
    np.testing.assert_allclose(m(a), weights, rtol=0, atol=1e-14)
    np.testing.assert_allclose(m.vjp(a, g), pulled, rtol=0, atol=1e-14)
    if value == 2:
        masked = m(a, np.array([True, True, True, False]))
        np.testing.assert_allclose(masked[:3], REFERENCE["masked"]["temperature tau=2"], rtol=0, atol=1e-14)


@pytest.mark.parametrize("value", [0, -1.0, math.nan, math.inf, True, "2", np.array([1.0])])
def test_a_temperature_that_is_none_is_refused(value):
    with pytest.raises(InputError, match="temperature"):
        scores.temperature(scores.get("softmax"), value)


def test_temperature_of_something_else_is_refused():
    with pytest.raises(InputError, match=r"scores\.get"):
        scores.temperature("softmax", 2.0)  # pyright: ignore[reportArgumentType]
