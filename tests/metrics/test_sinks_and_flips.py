"""Gu et al.'s α and sink rate against loops and closed forms; flip rates."""

import numpy as np
import pytest

from polariscope import metrics
from polariscope.errors import InputError

T = 64


def random_causal_maps(shape=(3, 2, 4), T=9, seed=0):
    e = np.exp(np.random.default_rng(seed).normal(scale=2, size=(*shape, T, T))) * np.tri(T)
    return e / e.sum(-1, keepdims=True)


@pytest.mark.parametrize("skip_rows", [0, 1, 4, 8])
def test_column_means_by_a_loop(skip_rows, array):
    A = random_causal_maps()
    alpha = np.asarray(metrics.column_means(array(A), skip_rows))
    for index in np.ndindex(A.shape[:-2]):
        for k in range(9):
            seen = [A[index][i, k] for i in range(9) if i >= k and i >= skip_rows]
            assert alpha[(*index, k)] == pytest.approx(sum(seen) / len(seen), abs=1e-14)


def test_sink_rate_by_a_loop(array):
    alpha = np.random.default_rng(1).random((5, 3, 2))
    alpha[0, 0, 0] = 0.3  # not above 0.3
    above = [[[float(x > 0.3) for x in row] for row in sample] for sample in alpha]
    np.testing.assert_allclose(np.asarray(metrics.sink_rate(array(alpha))), np.mean(above), rtol=1e-13)
    np.testing.assert_allclose(np.asarray(metrics.sink_rate(array(alpha), axis=0)), np.mean(above, axis=0), rtol=1e-13)
    assert float(metrics.sink_rate(array([0.3]), 0.3)) == 0


def test_the_indicator_comes_before_the_mean():
    assert metrics.sink_rate(np.array([0.9, 0.1, 0.1])) == pytest.approx(1 / 3)  # the mean α is above 0.3


def test_one_token_repeated_without_positions(array):
    """A[i, j] = 1/i, so α₁ is the mean of 1/i and there is no sink."""
    alpha = metrics.column_means(array(np.tri(T) / np.arange(1, T + 1)[:, None]))
    assert float(alpha[0]) == pytest.approx((1 / np.arange(1, T + 1)).sum() / T, abs=1e-14)
    assert float(alpha[0]) == pytest.approx(0.0741, abs=5e-5)
    assert float(metrics.sink_rate(alpha[..., :1])) == 0


def test_a_perfect_sink(array):
    A = np.zeros((T, T))
    A[:, 0] = 1
    alpha = np.asarray(metrics.column_means(array(A)))
    np.testing.assert_array_equal(alpha, np.arange(T) == 0)
    np.testing.assert_array_equal(np.asarray(metrics.entropy(array(A))), 0)


def test_a_diagonal_head_has_the_smallest_first_mean_and_looks_like_a_sink_at_the_end(array):
    alpha = np.asarray(metrics.column_means(array(np.eye(T))))
    np.testing.assert_allclose(alpha, 1 / np.arange(T, 0, -1), rtol=1e-14)
    rates = np.asarray(metrics.sink_rate(array(alpha[None]), axis=0))
    np.testing.assert_array_equal(np.flatnonzero(rates), [T - 3, T - 2, T - 1])
    assert (metrics.column_means(random_causal_maps(T=8))[..., 0] >= 1 / 8).all()


def test_nan_stays_visible(array):
    A = random_causal_maps((2,))
    A[0, 5, 0] = np.nan
    alpha = metrics.column_means(array(A))
    np.testing.assert_array_equal(np.isnan(np.asarray(alpha)), [[True] + [False] * 8, [False] * 9])
    rates = np.asarray(metrics.sink_rate(alpha, axis=0))
    np.testing.assert_array_equal(np.isnan(rates), [True] + [False] * 8)
    assert np.isnan(float(metrics.sink_rate(alpha)))


@pytest.mark.parametrize(
    ("A", "skip_rows", "message"),
    [
        (np.ones((4, 4)) / 4, 0, "above the diagonal"),
        (np.tri(4).T / 4, 0, "above the diagonal"),
        (np.ones((3, 4)), 0, r"\(…, T, T\)"),
        (np.ones(4), 0, r"\(…, T, T\)"),
        (np.tri(4), 4, "skip_rows"),
        (np.tri(4), -1, "skip_rows"),
        (np.tri(4, dtype=int), 0, "dtype"),
    ],
)
def test_maps_that_are_not_causal_are_refused(A, skip_rows, message):
    with pytest.raises(InputError, match=message):
        metrics.column_means(A, skip_rows)


@pytest.mark.parametrize(
    ("alpha", "eps", "message"),
    [
        (np.array([0.5]), 30, "eps"),
        (np.array([0.5]), np.nan, "eps"),
        ([0.5], 0.3, "list"),
        (np.zeros((0, 2)), 0.3, "some"),
    ],
)
def test_sink_rates_of_nothing_are_refused(alpha, eps, message):
    with pytest.raises(InputError, match=message):
        metrics.sink_rate(alpha, eps)


def test_flip_rate(array):
    assert float(metrics.flip_rate(array([1, 2, 3, 3]), array([1, 2, 3, 4]))) == 0.75
    assert float(metrics.flip_rate(array([[1], [0]]), array([[0], [1]]))) == 0


@pytest.mark.parametrize(
    ("predicted", "wanted", "message"),
    [
        (np.array([1.0]), np.array([1]), "integers"),
        (np.array([1]), np.array([np.nan]), "integers"),
        ([1], np.array([1]), "list"),
        (np.array([1, 2]), np.array([1]), "one shape"),
        (np.zeros(0, int), np.zeros(0, int), "not empty"),
    ],
)
def test_labels_that_cannot_be_compared_are_refused(predicted, wanted, message):
    with pytest.raises(InputError, match=message):
        metrics.flip_rate(predicted, wanted)
