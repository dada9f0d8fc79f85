"""Numbers of a head and of a layer's output, on maps whose answer is known."""

import numpy as np
import pytest
import torch

from polariscope import metrics
from polariscope.errors import InputError
from polariscope.probe.blocks import MapStatistics
from polariscope.probe.statistics import Recorder, column_means, head_values, massive, metric_names

EPS = (0.3, 0.5)
T = 64


def statistics_of(attention):
    """What the engine would keep of a causal map (H, T, T)."""
    length = attention.shape[-1]
    counts = torch.arange(1, length + 1)
    return MapStatistics(
        total=attention.sum(-1)[None],
        largest=attention.amax(-1)[None],
        first=attention[None, ..., 0],
        entropy=torch.special.entr(attention / attention.sum(-1, keepdim=True)).sum(-1)[None],
        squares=attention.square().sum(-1)[None],
        columns=attention.sum(-2)[None],
        row_counts=counts[None, None],
        column_counts=counts.flip(0)[None, None],
    )


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


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("length", [7, 8])
def test_massive_activation_and_lower_median(dtype, length):
    hidden = torch.randn(1, length, 6, generator=torch.Generator().manual_seed(0)).to(dtype)
    hidden[0, 3, 4] = -300
    found = massive(hidden)
    flat = np.sort(np.abs(hidden.float().numpy()).ravel())
    assert (found.largest, found.position, found.channel) == (300, 3, 4)
    assert found.median == flat[(flat.size - 1) // 2] == hidden.float().abs().median()


def test_massive_of_nan_is_nan():
    hidden = torch.ones(1, 3, 2)
    hidden[0, 1, 1] = torch.nan
    assert np.isnan([massive(hidden).largest, massive(hidden).median]).all()


def test_recorder_wants_each_layer_once():
    recorder = Recorder(2, EPS)
    recorder.on_attention(0, statistics_of(UNIFORM))
    with pytest.raises(InputError, match="two in layer 0"):
        recorder.on_attention(0, statistics_of(UNIFORM))
    with pytest.raises(InputError, match=r"none in layers \[1\]"):
        recorder.finish()
    recorder.on_attention(1, statistics_of(FIRST))
    measured = recorder.finish()
    assert measured.values.shape == (2, len(metric_names(EPS)), 1)
    assert measured.alpha.shape == (2, 1, T)
    recorder.on_attention(0, statistics_of(UNIFORM))  # empty again
