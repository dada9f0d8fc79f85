"""Maps whose statistics are known in closed form, from the model or the engine to the metric."""

import numpy as np
import pytest
import tiny_models
import torch
import transformers

from polariscope import probe
from polariscope.probe import blocks, corpora
from polariscope.probe.attention import Call
from polariscope.probe.statistics import head_values, metric_names

T = 64
ROWS = np.arange(1, T + 1)
EPS = (0.3,)


def metrics(call):
    """Every metric of every head of a call, by name."""
    _, statistics = blocks.attend(call)
    return dict(zip(metric_names(EPS), head_values(statistics, EPS).numpy(), strict=False)), statistics


def call_of(logits, **options):
    """A call, (1, 1, T, T), whose logits are the ones given: q holds them, k is the identity."""
    keys = torch.eye(T, dtype=logits.dtype)[None, None]
    return Call(query=logits[None, None], key=keys, value=keys, scaling=1.0, **options)


@pytest.fixture(scope="module")
def without_positions():
    """A GPT-2 whose positions are all alike, on one token repeated."""
    config = transformers.GPT2Config(n_embd=32, n_layer=3, n_head=4, n_positions=T, vocab_size=259)
    torch.manual_seed(0)
    model = transformers.GPT2LMHeadModel(config).eval()
    torch.nn.init.zeros_(model.transformer.wpe.weight)
    texts = corpora.read("repeated-token", count=3)
    return probe.scan(model, tiny_models.tokenizer(), texts, max_length=T, bos="off", eps=EPS)


def test_one_token_repeated_without_positions_is_uniform(without_positions):
    heads = without_positions.heads
    np.testing.assert_allclose(heads["first_key_mean"], (1 / ROWS).mean(), rtol=1e-5)
    assert round((1 / ROWS).mean(), 4) == 0.0741
    assert (heads["sink_rate"] == 0).all()
    np.testing.assert_allclose(heads["normalized_entropy"], 1, rtol=1e-5)
    np.testing.assert_allclose(heads["entropy"], np.log(ROWS[1:]).mean(), rtol=1e-5)
    np.testing.assert_allclose(heads["max_weight"], (1 / ROWS).mean(), rtol=1e-5)
    np.testing.assert_allclose(heads["participation"], ROWS.mean(), rtol=1e-5)
    alpha = without_positions.positions["alpha"].to_numpy().reshape(3, T)
    wanted = [(1 / ROWS[k:]).sum() / (T - k) for k in range(T)]
    np.testing.assert_allclose(alpha, np.tile(wanted, (3, 1)), rtol=1e-5)


def test_everything_on_the_first_key():
    logits = torch.zeros(T, T, dtype=torch.float64)
    logits[:, 0] = 1000
    found, _ = metrics(call_of(logits))
    assert found["first_key_mean"] == found["sink_rate"] == found["max_weight"] == 1
    assert found["entropy"] == found["null_mass"] == 0
    assert found["sink_keys"] == 1


@pytest.mark.parametrize("s", [-30.0, -2.0, 0.0, 1.5, 30.0, 300.0])
def test_off_by_one_loses_what_it_must(s):
    """Rows of n equal logits s with one learned logit 0: null mass 1/(1 + n eˢ)."""
    logits = torch.full((T, T), s, dtype=torch.float64)
    found, statistics = metrics(call_of(logits, sink=torch.zeros(1, dtype=torch.float64)))
    wanted = 1 / (1 + np.exp(np.minimum(s + np.log(ROWS), 700)))
    np.testing.assert_allclose(1 - statistics.total[0, 0].numpy(), wanted, rtol=1e-9, atol=1e-15)
    assert found["null_mass"] == pytest.approx(wanted.mean(), rel=1e-9, abs=1e-15)
    assert found["normalized_entropy"] == pytest.approx(1)  # of the row divided by its sum


def test_a_head_that_attends_to_itself_looks_like_a_sink_at_the_end():
    logits = 1000 * torch.eye(T, dtype=torch.float64)
    found, statistics = metrics(call_of(logits))
    alpha = (statistics.columns[0] / statistics.column_counts[0])[0].numpy()
    np.testing.assert_allclose(alpha, 1 / ROWS[::-1], rtol=1e-12)
    assert np.flatnonzero(alpha > EPS[0]).tolist() == [T - 3, T - 2, T - 1]
    assert found["first_key_mean"] == pytest.approx(1 / T)
    assert found["sink_keys"] == 0  # the last keys are seen by too few queries to count


@pytest.mark.parametrize("scale", [1.0, 30.0, 300.0])
def test_entropy_of_random_scores(scale):
    """H = lse − Σ p a against float64, at sizes where float32 would lose it."""
    random = torch.Generator().manual_seed(0)
    logits = scale * torch.randn(T, T, generator=random, dtype=torch.float64)
    hidden = torch.ones(T, T, dtype=torch.bool).triu(1)
    log_p = logits.masked_fill(hidden, -torch.inf).log_softmax(-1)
    wanted = -(log_p.exp() * log_p.masked_fill(hidden, 0)).sum(-1)
    _, double = metrics(call_of(logits))
    _, single = metrics(call_of(logits.float()))
    np.testing.assert_allclose(double.entropy[0, 0], wanted, rtol=1e-9, atol=1e-12)
    rounded = logits.float().double().masked_fill(hidden, -torch.inf).log_softmax(-1)
    wanted = -(rounded.exp() * rounded.masked_fill(hidden, 0)).sum(-1)
    np.testing.assert_allclose(single.entropy[0, 0], wanted, rtol=1e-4, atol=1e-6 * scale)
