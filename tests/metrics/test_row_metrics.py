"""Entropy and concentration of rows: closed forms, SciPy, bounds, what is undefined, what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats
from scipy.special import logsumexp

from polariscope import metrics, scores
from polariscope.errors import InputError

FOR_DISTRIBUTIONS = ["entropy", "normalized_entropy", "effective_support"]
FOR_ANY_ROW = ["max_weight", "relative_max_weight", "first_key_share", "participation", "shares"]
T = 64
UNIFORM_CAUSAL = np.tril(np.ones((T, T))) / np.arange(1, T + 1)[:, None]
VISIBLE = np.tri(T, dtype=bool)


def distributions(n=7, many=200, seed=0):
    s = np.random.default_rng(seed).dirichlet(np.full(n, 0.3), size=many)
    s[: many // 4, 2] = 0.0
    return s / s.sum(-1, keepdims=True)


@pytest.mark.parametrize("name", FOR_DISTRIBUTIONS + FOR_ANY_ROW)
def test_libraries_agree(name, array):
    s = distributions()
    np.testing.assert_allclose(np.asarray(getattr(metrics, name)(array(s))), getattr(metrics, name)(s), rtol=1e-12)


def test_entropy_is_scipys():
    s = distributions()
    np.testing.assert_allclose(metrics.entropy(s), stats.entropy(s, axis=-1), rtol=0, atol=1e-14)


def test_entropy_is_log_sum_exp_minus_mean_logit():
    a = np.random.default_rng(1).normal(scale=4, size=(100, 50))
    s = scores.get("softmax")(a)
    np.testing.assert_allclose(
        metrics.entropy(s, "softmax"), logsumexp(a, axis=-1) - (s * a).sum(-1), rtol=0, atol=1e-12
    )


def test_the_uniform_causal_map(array):
    s, seen = array(UNIFORM_CAUSAL), np.arange(1, T + 1)
    np.testing.assert_allclose(metrics.entropy(s), np.log(seen), rtol=0, atol=1e-13)
    normalized = np.asarray(metrics.normalized_entropy(s, where=array(VISIBLE)))
    assert np.isnan(normalized[0])  # one visible key: 0/0
    np.testing.assert_allclose(normalized[1:], 1, rtol=1e-13)
    np.testing.assert_allclose(metrics.effective_support(s), seen, rtol=1e-13)
    np.testing.assert_allclose(metrics.participation(s), seen, rtol=1e-13)
    for metric in (metrics.max_weight, metrics.relative_max_weight, metrics.first_key_share):
        np.testing.assert_allclose(metric(s), 1 / seen, rtol=1e-13)


def test_a_one_hot_row(array):
    s = array([[0.0, 1.0, 0.0]])
    for name, value in [("entropy", 0), ("normalized_entropy", 0), ("effective_support", 1), ("max_weight", 1)]:
        assert float(getattr(metrics, name)(s)[0]) == value
    assert float(metrics.participation(s)[0]) == 1
    assert not np.signbit(float(metrics.entropy(s)[0]))
    assert [float(metrics.first_key_share(s, key=k)[0]) for k in range(3)] == [0, 1, 0]


def positive_rows(n):
    return arrays(np.float64, (3, n), elements=st.floats(0, 1)).filter(lambda x: (x.sum(-1) > 1e-3).all())


@given(x=st.integers(2, 9).flatmap(positive_rows), data=st.data())
def test_bounds_and_permutations(x, data):
    s, n = x / x.sum(-1, keepdims=True), x.shape[-1]
    order = data.draw(st.permutations(range(n)))
    bounds = {
        "entropy": (0, np.log(n)),
        "normalized_entropy": (0, 1),
        "effective_support": (1, n),
        "participation": (1, n),
        "max_weight": (1 / n, 1),
        "relative_max_weight": (1 / n, 1),
    }
    for name, (low, high) in bounds.items():
        value = getattr(metrics, name)(s)
        assert (value >= low - 1e-12).all()
        assert (value <= high + 1e-12 * n).all()
        np.testing.assert_allclose(getattr(metrics, name)(s[:, order]), value, rtol=1e-12, atol=1e-14)
    assert (metrics.participation(s) <= metrics.effective_support(s) + 1e-9).all()  # Rényi: H₂ ≤ H₁


@pytest.mark.parametrize("name", ["relative_max_weight", "first_key_share", "participation", "shares"])
def test_shares_know_neither_scale_nor_sign(name):
    s = np.random.default_rng(2).normal(size=(20, 5))
    metric = getattr(metrics, name)
    np.testing.assert_allclose(metric(s * 7.5), metric(s), rtol=1e-13)
    np.testing.assert_allclose(metric(np.abs(s)), metric(s), rtol=1e-13)
    np.testing.assert_allclose(metric(metrics.shares(s)), metric(s), rtol=1e-13)


def test_the_raw_maximum_of_an_unnormalized_map_is_not_a_share():
    s = scores.get("sigmoid")(np.array([2.0, 1.0, 1.0]))
    assert metrics.max_weight(s) == s.max()
    assert metrics.relative_max_weight(s) == pytest.approx(s.max() / s.sum())


@pytest.mark.parametrize("name", FOR_DISTRIBUTIONS + [n for n in FOR_ANY_ROW if n != "max_weight"])
def test_rows_without_weight_and_rows_with_nan_are_nan(name, array):
    s = array([[0.0, 0.0], [np.nan, 1.0], [0.5, 0.5]])
    value = np.asarray(getattr(metrics, name)(s)).reshape(3, -1)
    assert np.isnan(value[:2]).all()
    assert np.isfinite(value[2]).all()


def test_the_maximum_of_a_row_with_nan_is_nan(array):
    assert np.isnan(float(metrics.max_weight(array([np.nan, 1.0]))))


@pytest.mark.parametrize("name", FOR_DISTRIBUTIONS)
@pytest.mark.parametrize("map_name", list(scores.REGISTRY))
def test_a_map_must_declare_distributions(name, map_name):
    m = scores.get(map_name)
    declared = m.properties.sums_to_one and m.properties.non_negative
    s = distributions()
    for given_as in (m, map_name):
        if declared:
            assert np.isfinite(getattr(metrics, name)(s, given_as)).all()
        else:
            with pytest.raises(InputError, match="does not declare"):
                getattr(metrics, name)(s, given_as)


@pytest.mark.parametrize("name", FOR_DISTRIBUTIONS)
@pytest.mark.parametrize(
    ("s", "message"),
    [
        (np.array([[0.5, 0.5], [0.5, 0.6]]), "sum"),
        (np.array([1.5, -0.5]), "negative"),
        (np.array([1, 0]), "dtype"),
        ([0.5, 0.5], "list"),
        (np.array(1.0), "shape"),
    ],
)
def test_rows_that_are_no_distributions_are_refused(name, s, message):
    with pytest.raises(InputError, match=message):
        getattr(metrics, name)(s)


@pytest.mark.parametrize("name", FOR_ANY_ROW)
def test_things_that_are_no_rows_are_refused(name):
    for s in ([0.5, 0.5], np.array([1, 0]), np.zeros((3, 0))):
        with pytest.raises(InputError, match="attention weights"):
            getattr(metrics, name)(s)


def test_low_precision_rows_pass_the_check():
    a = torch.tensor(np.random.default_rng(3).normal(scale=3, size=(500, 64)))
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        assert torch.isfinite(metrics.entropy(torch.softmax(a.to(dtype), -1))).all()


def test_unknown_names_bad_keys_and_bad_masks_are_refused():
    s = np.array([0.5, 0.5])
    with pytest.raises(InputError, match="softmax"):
        metrics.entropy(s, "sofmax")
    with pytest.raises(InputError, match="key"):
        metrics.first_key_share(s, key=2)
    with pytest.raises(InputError, match="booleans"):
        metrics.normalized_entropy(s, where=s)


def test_under_jit_the_rows_must_be_declared():
    s = jnp.array(distributions())
    declared = jax.jit(lambda x: metrics.entropy(x, "softmax"))(s)
    np.testing.assert_allclose(declared, metrics.entropy(s), rtol=1e-13)
    with pytest.raises(InputError, match="traced"):
        jax.jit(metrics.entropy)(s)


def test_gradients_of_entropy_are_finite_at_zero_weights():
    a = np.array([0.0, 800.0, -800.0])
    x = torch.tensor(a, requires_grad=True)
    metrics.entropy(scores.get("softmax")(x), "softmax").backward()
    assert x.grad is not None
    assert torch.isfinite(x.grad).all()
    gradient = jax.grad(lambda y: metrics.entropy(scores.get("softmax")(y), "softmax"))(jnp.array(a))
    assert np.isfinite(gradient).all()
