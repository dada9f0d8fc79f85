"""Numbers of a head and of a layer's output, on maps whose answer is known."""

import dataclasses

import hypothesis.extra.numpy
import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies

from polariscope import metrics
from polariscope.probe import maps
from polariscope.probe.activations import lower_median, massive
from polariscope.probe.attention import THRESHOLDS
from polariscope.probe.statistics import column_means, head_values, metric_names, seen_enough, top_keys

EPS = (0.3, 0.5)
T = 64


def statistics_of(attention):
    """What is kept of a causal map (H, T, T) that a model made."""
    found = maps.statistics_of(attention[None])
    counts = torch.arange(1, attention.shape[-1] + 1)
    return dataclasses.replace(found, row_counts=counts[None, None], column_counts=counts.flip(0)[None, None])


def values(attention, eps=EPS):
    table = head_values(statistics_of(attention), eps)
    return dict(zip([*metric_names(eps), "bad_rows"], table.numpy(), strict=True))


def causal(weights):
    return weights.double().tril()


UNIFORM = causal(torch.ones(1, T, T)) / torch.arange(1, T + 1)[:, None]
FIRST = causal(torch.cat([torch.ones(1, T, 1), torch.zeros(1, T, T - 1)], dim=-1))
DIAGONAL = torch.eye(T, dtype=torch.float64)[None]


def random_map(heads=5, seed=3):
    logits = torch.randn(heads, T, T, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 2
    return torch.softmax(logits.masked_fill(torch.ones(T, T, dtype=torch.bool).triu(1), -torch.inf), dim=-1)


def test_uniform_map():
    """One token repeated without positions: A[i, j] = 1/i (Gu et al. 2024), α₁ = 0.0741 at T = 64, no sink."""
    found = values(UNIFORM)
    harmonic = (1 / np.arange(1, T + 1)).sum()
    assert found["first_key_mean"] == pytest.approx(harmonic / T)
    assert round(float(found["first_key_mean"][0]), 4) == 0.0741
    assert found["sink_rate"] == 0
    assert found["entropy"] == pytest.approx(np.log(np.arange(2, T + 1)).mean())
    assert found["normalized_entropy"] == pytest.approx(1)
    assert found["max_weight"] == pytest.approx(harmonic / T)
    assert found["participation"] == pytest.approx((T + 1) / 2)
    assert found["last_query_first_key"] == pytest.approx(1 / T)
    assert found["null_mass"] == pytest.approx(0)


def test_everything_on_the_first_key():
    found = values(FIRST)
    assert found["first_key_mean"] == found["first_key_share"] == found["max_weight"] == found["sink_rate"] == 1
    assert found["entropy"] == found["normalized_entropy"] == 0
    assert found["participation"] == 1


def test_a_head_that_attends_to_itself():
    """α_k = 1/(T − k + 1): no sink at the first key, and one at the last three for ε = 0.3."""
    alpha = column_means(statistics_of(DIAGONAL))[0]
    torch.testing.assert_close(alpha, 1 / torch.arange(T, 0, -1, dtype=torch.float64))
    assert ((alpha > 0.3).nonzero().flatten() == torch.arange(T - 3, T)).all()
    assert values(DIAGONAL)["first_key_mean"] == pytest.approx(1 / T)
    assert values(DIAGONAL)["sink_rate"] == 0


def test_values_equal_the_metrics_of_the_map():
    attention = random_map()
    found = values(attention)
    visible = torch.ones(T, T, dtype=torch.bool).tril()
    alpha = metrics.column_means(attention)
    expected = {
        "entropy": metrics.entropy(attention)[:, 1:].mean(-1),
        "normalized_entropy": metrics.normalized_entropy(attention, where=visible)[:, 1:].mean(-1),
        "max_weight": metrics.max_weight(attention).mean(-1),
        "relative_max_weight": metrics.relative_max_weight(attention).mean(-1),
        "first_key_share": metrics.first_key_share(attention).mean(-1),
        "first_key_mean": alpha[:, 0],
        "participation": metrics.participation(attention).mean(-1),
        "sink_rate": metrics.sink_rate(alpha[None, :, 0], 0.3, axis=0),
        "sink_rate_0.5": metrics.sink_rate(alpha[None, :, 0], 0.5, axis=0),
    }
    for name, wanted in expected.items():
        np.testing.assert_allclose(found[name], wanted.numpy(), rtol=0, atol=1e-12, err_msg=name)


def test_rows_that_lose_weight_show_it_as_null_mass():
    attention = 0.25 * random_map()
    found, full = values(attention), values(random_map())
    np.testing.assert_allclose(found["null_mass"], 0.75)
    np.testing.assert_allclose(found["max_weight"], 0.25 * full["max_weight"])
    for name in ("relative_max_weight", "first_key_share", "entropy", "participation", "last_query_first_key"):
        np.testing.assert_allclose(found[name], full[name], err_msg=name)
    np.testing.assert_allclose(found["first_key_mean"], 0.25 * full["first_key_mean"])


def test_the_threshold_is_strict_and_each_has_its_column():
    attention = FIRST.clone()
    attention[:, 1:, 0] = 0.5 - 0.5 / (T - 1)  # α₁ = (1 + (T − 1)/2 − 1/2)/T = 0.5 up to rounding
    alpha = float(column_means(statistics_of(attention))[0, 0])
    found = values(attention, (alpha, alpha - 1e-9, 0.9))
    assert [float(found[name][0]) for name in metric_names((alpha, alpha - 1e-9, 0.9))[6:9]] == [0, 1, 0]


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_a_bad_row_spoils_its_head_visibly_and_no_other(bad):
    attention = random_map()
    attention[2, 10, 5] = bad
    found, clean = values(attention), values(random_map())
    assert found.pop("bad_rows").tolist() == [0, 0, 1, 0, 0]
    for name, got in found.items():
        assert np.isnan(got[2]), name
        np.testing.assert_array_equal(np.delete(got, 2), np.delete(clean[name], 2))


def test_every_published_sink_rate_from_one_pass():
    """The definitions, written out from whole maps: v1, v2, v4, v5, v6 and rows left out."""
    attention = random_map(heads=40)
    attention[::3] = 0.6 * FIRST + 0.4 * attention[::3]
    found = values(attention)
    first, alpha = attention[..., 0], metrics.column_means(attention)
    seen = torch.arange(T, 0, -1) >= 16
    expected = {
        "sink_rate": (first.sum(-1) / T > 0.3).double(),
        "first_key_share": first.mean(-1),
        "sink_queries": (first > 0.3).double().mean(-1),
        "sink_keys_all_rows": (attention.mean(-2) > 0.1).sum(-1).double(),
        "last_query_first_key": first[:, -1],
        "sink_rate_late": (first[:, 4:].mean(-1) > 0.3).double(),
        "sink_keys": ((alpha > 0.3) & seen).sum(-1).double(),
        "top_key_alpha": alpha[:, :49].amax(-1),
        "sum_of_squares": attention.square().sum(-1).mean(-1),
    }
    for name, wanted in expected.items():
        np.testing.assert_allclose(found[name], wanted.numpy(), rtol=0, atol=1e-12, err_msg=name)
    assert 0 < found["sink_rate"].mean() < 1


def test_threshold_shares_are_of_visible_pairs():
    attention = random_map()
    found = values(attention)
    visible = torch.ones(T, T, dtype=torch.bool).tril()
    below = (attention[:, visible] <= THRESHOLDS[0]).double().mean(-1)
    above = (attention[:, visible] > THRESHOLDS[1]).double().mean(-1)
    np.testing.assert_allclose(found["share_below_0.001"], below, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found["share_above_0.1"], above, rtol=0, atol=1e-12)
    assert (below < 0.5).all(), "the hidden half of the map must not count"


def test_a_window_that_loses_the_first_key_leaves_the_sink_rate():
    """Gu et al.'s rate asks every query about key 1: a head whose window drops it is no head without a sink."""
    attention = random_map()
    window = torch.ones(T, T, dtype=torch.bool).tril().triu(-9)
    attention = attention * window / (attention * window).sum(-1, keepdim=True)
    found = dict(zip(metric_names(EPS), head_values(maps.statistics_of(attention[None]), EPS).numpy(), strict=False))
    assert np.isnan(found["sink_rate"]).all()
    assert np.isnan(found["sink_rate_late"]).all()
    assert np.isfinite(found["first_key_share"]).all()


def test_the_strongest_key_is_sought_where_enough_queries_see_it():
    statistics = statistics_of(DIAGONAL)  # α_T = 1, of one query alone
    assert seen_enough(statistics).sum() == T - 15
    assert top_keys(statistics).tolist() == [T - 16]
    assert top_keys(statistics_of(FIRST)).tolist() == [0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("length", [1, 2, 7, 8, 500])
def test_massive_activations_and_lower_median(dtype, length):
    hidden = torch.randn(length, 6, generator=torch.Generator().manual_seed(0)).to(dtype)
    hidden[length // 2, 4] = -300
    hidden[length // 3, 5] = 200
    found = massive(hidden)
    flat = hidden.float().abs().flatten()
    order = flat.argsort(descending=True, stable=True)[:3]
    assert found.positions == tuple((order // 6).tolist())
    assert found.channels == tuple((order % 6).tolist())
    assert found.values == tuple(hidden.float().flatten()[order].tolist())
    assert found.largest == 300
    assert found.median == np.sort(flat.numpy())[(flat.numel() - 1) // 2] == flat.median()
    assert found.nonfinite == 0


def test_activations_that_are_not_finite_are_counted_and_left_out():
    hidden = torch.ones(3, 2)
    hidden[1, 1], hidden[2, 0], hidden[0, 0] = torch.nan, torch.inf, -7
    found = massive(hidden)
    assert (found.nonfinite, found.largest, found.median) == (2, 7, 1)
    nothing = massive(torch.full((2, 2), torch.nan))
    assert nothing.nonfinite == 4
    assert np.isnan([nothing.largest, nothing.median]).all()


@given(
    hypothesis.extra.numpy.arrays(
        np.float32, strategies.integers(1, 20_000), elements=strategies.floats(0, 9, width=32)
    ),
    strategies.booleans(),
)
@settings(max_examples=40, deadline=None)
def test_the_bracketed_median_is_the_median(x, steep):
    x = np.sort(x) if steep else x  # an ordered array is the worst sample for a bracket
    assert lower_median(x) == np.sort(x)[(x.size - 1) // 2]
    assert lower_median(x, x.size - 1) == x.max()
    assert np.isnan(lower_median(x, x.size))
