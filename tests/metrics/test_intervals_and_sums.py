"""Bootstrap intervals: coverage, SciPy, degenerate samples; sums that merge."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from polariscope.errors import InputError
from polariscope.metrics import Sums, bootstrap_interval


def test_it_is_scipys_bootstrap_of_the_mean():
    x = np.random.default_rng(0).exponential(size=(40, 3))
    expected = stats.bootstrap(
        (x,), np.mean, n_resamples=500, axis=0, method="percentile", confidence_level=0.9, rng=np.random.default_rng(7)
    ).confidence_interval
    low, high = bootstrap_interval(x, confidence=0.9, seed=7, resamples=500)
    np.testing.assert_allclose(low, expected.low, rtol=1e-12)
    np.testing.assert_allclose(high, expected.high, rtol=1e-12)


def test_coverage_on_a_known_distribution():
    """400 experiments of 60 draws with mean 1: 95 % intervals contain it in about 95 % of them."""
    x = np.random.default_rng(1).gamma(4.0, 0.25, size=(60, 400))
    low, high = bootstrap_interval(x)
    assert 0.91 <= ((low <= 1) & (high >= 1)).mean() <= 0.98
    narrow_low, narrow_high = bootstrap_interval(x, confidence=0.5)
    assert 0.42 <= ((narrow_low <= 1) & (narrow_high >= 1)).mean() <= 0.58


def test_axes_seeds_and_shapes():
    x = np.random.default_rng(2).normal(size=(2, 30, 4))
    low, high = bootstrap_interval(x, axis=1)
    assert low.shape == high.shape == (2, 4)
    for i, j in np.ndindex(2, 4):
        np.testing.assert_allclose(bootstrap_interval(x[i, :, j]), (low[i, j], high[i, j]), rtol=1e-12)
    assert (bootstrap_interval(x, axis=1, seed=1)[0] != low).all()
    assert ((low < x.mean(1)) & (x.mean(1) < high)).all()


def test_degenerate_samples():
    x = np.stack([np.full(7, 0.1), np.arange(7.0)], axis=1)
    low, high = bootstrap_interval(x)
    assert (low[0], high[0]) == (0.1, 0.1)
    assert low[1] < high[1]
    for few in (np.zeros((1, 2)), np.zeros((0, 2))):
        np.testing.assert_array_equal(bootstrap_interval(few), np.full((2, 2), np.nan))


@pytest.mark.parametrize(
    ("samples", "options", "message"),
    [
        ([1.0, np.nan, 2.0], {}, "1 of 3"),
        ([1.0, np.inf], {}, "1 of 2"),
        (3.0, {}, "axis"),
        ([1.0, 2.0], {"confidence": 95}, "confidence"),
        ([1.0, 2.0], {"resamples": 10}, "resamples"),
        ([1.0, 2.0], {"axis": 1}, "axis"),
        (["a", "b"], {}, "numbers"),
    ],
)
def test_refusals(samples, options, message):
    with pytest.raises(InputError, match=message):
        bootstrap_interval(samples, **options)


@given(
    x=arrays(np.float64, (12, 2), elements=st.floats(-1e3, 1e3) | st.just(np.nan)),
    cuts=st.lists(st.integers(0, 12), max_size=4).map(sorted),
)
def test_the_merge_of_parts_is_the_whole(x, cuts):
    parts = [Sums.of(part) for part in np.split(x, cuts)]
    forward, backward = parts[0], parts[-1]
    for part in parts[1:]:
        forward = forward + part
    for part in reversed(parts[:-1]):
        backward = part + backward
    for merged in (forward, backward, Sums.of(x)):
        np.testing.assert_array_equal(merged.count, (~np.isnan(x)).sum(0))
        np.testing.assert_array_equal(merged.nan, np.isnan(x).sum(0))
        np.testing.assert_allclose(merged.total, np.nansum(x, axis=0), rtol=0, atol=1e-10)
        for cell in range(2):
            numbers = x[:, cell][~np.isnan(x[:, cell])]
            expected = numbers.mean() if numbers.size else np.nan
            np.testing.assert_allclose(merged.mean[cell], expected, rtol=0, atol=1e-10)


def test_sums_of_different_cells_do_not_merge():
    with pytest.raises(InputError, match="cells"):
        Sums.of(np.ones((3, 2))).merge(Sums.of(np.ones((3, 1))))


@pytest.mark.parametrize("samples", [torch.ones(3, requires_grad=True), ["a"], 3.0])
def test_samples_that_are_no_arrays_of_numbers_are_refused(samples):
    for use in (Sums.of, bootstrap_interval):
        with pytest.raises(InputError, match="samples"):
            use(samples)
