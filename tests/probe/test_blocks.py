"""The engine against whole maps made in float64 one row at a time, and against closed forms."""

import math

import pytest
import torch

from polariscope import metrics
from polariscope.errors import InputError
from polariscope.probe.blocks import BLOCK_BYTES, ROWS, attend, rows_for

CASES = {
    "one head": {},
    "grouped heads": {"heads": 6, "kv_heads": 2},
    "one key head": {"heads": 4, "kv_heads": 1},
    "batch": {"batch": 3, "heads": 4, "kv_heads": 2},
    "keys before the first query": {"keys": 50},
    "wide values": {"value_size": 11},
    "window": {"mask": "window"},
    "padding on the left": {"mask": "left", "batch": 2},
    "random mask": {"mask": "random", "heads": 4, "kv_heads": 2},
    "random mask for each head": {"mask": "heads", "heads": 4, "kv_heads": 2},
    "everything visible": {"mask": "all"},
    "soft-cap": {"softcap": 1.5},
    "bias": {"bias": "full", "heads": 2, "kv_heads": 2},
    "bias of keys": {"bias": "keys"},
    "learned sinks": {"sink": True, "heads": 4, "kv_heads": 2},
    "sinks and window": {"sink": True, "mask": "window"},
    "large logits": {"size_of_logits": 3000.0},
}


def problem(
    *, batch=1, heads=1, kv_heads=1, length=37, keys=None, value_size=8, mask=None, softcap=None, bias=None, sink=False,
    size_of_logits=1.0, dtype=torch.float64,
):  # fmt: skip
    random = torch.Generator().manual_seed(1)
    keys = keys or length

    def draw(*shape):
        return torch.randn(*shape, generator=random, dtype=torch.float64).to(dtype)

    visible = {
        None: None,
        "window": causal(length, keys) & causal(length, keys).triu(-5),
        "left": causal(length, keys) & (torch.arange(keys) >= torch.tensor([[[[0]]], [[[9]]]])),
        "random": causal(length, keys) & (torch.rand(length, keys, generator=random) < 0.6),
        "heads": causal(length, keys) & (torch.rand(1, heads, length, keys, generator=random) < 0.6),
        "all": torch.ones(length, keys, dtype=torch.bool),
    }[mask]
    return {
        "query": draw(batch, heads, length, 8) * size_of_logits,
        "key": draw(batch, kv_heads, keys, 8),
        "value": draw(batch, kv_heads, keys, value_size),
        "scaling": 0.4,
        "visible": None
        if visible is None
        else visible.expand(-1 if visible.ndim == 4 else 1, -1 if visible.ndim == 4 else 1, length, keys),
        "softcap": softcap,
        "bias": {None: None, "full": draw(1, heads, length, keys), "keys": draw(1, 1, 1, keys)}[bias],
        "sink": draw(heads) if sink else None,
    }


def causal(length, keys):
    return torch.ones(length, keys, dtype=torch.bool).tril(keys - length)


def whole_map(given):
    """The map (B, H, T, S) and output (B, T, H, dv), row by row in Python's and torch's float64."""
    query, key, value = (given[name].double() for name in ("query", "key", "value"))
    batch, heads, length, _ = query.shape
    keys, shared = key.shape[2], heads // key.shape[1]
    visible = causal(length, keys)[None, None] if given["visible"] is None else given["visible"]
    visible = visible.expand(batch, heads, length, keys)
    attention = torch.zeros(batch, heads, length, keys, dtype=torch.float64)
    out = torch.zeros(batch, length, heads, value.shape[-1], dtype=torch.float64)
    for b in range(batch):
        for h in range(heads):
            logits = given["scaling"] * query[b, h] @ key[b, h // shared].T
            if given["softcap"]:
                logits = given["softcap"] * torch.tanh(logits / given["softcap"])
            if given["bias"] is not None:
                logits = logits + given["bias"].double().expand(batch, heads, length, keys)[b, h]
            for i in range(length):
                seen = visible[b, h, i]
                row = logits[i, seen]
                if given["sink"] is not None:
                    row = torch.cat([row, given["sink"][h : h + 1].double()])
                attention[b, h, i, seen] = torch.softmax(row, dim=0)[: int(seen.sum())]
            out[b, :, h] = attention[b, h] @ value[b, h // shared]
    return attention, out, visible


@pytest.mark.parametrize("rows", [None, 1, 5, 37, 1000])
@pytest.mark.parametrize("case", CASES)
def test_output_and_statistics_equal_those_of_the_whole_map(case, rows):
    given = problem(**CASES[case])
    attention, expected, visible = whole_map(given)
    out, found = attend(**given, rows=rows)
    total = attention.sum(-1)
    share = attention / total[..., None]
    entropy = torch.where(total > 0, torch.special.entr(share).sum(-1), torch.nan)
    close(out, expected)
    close(found.total, total)
    close(found.largest, attention.amax(-1))
    close(found.first, attention[..., 0])
    close(found.entropy, entropy)
    close(found.squares, attention.square().sum(-1))
    close(found.columns, attention.sum(-2))
    assert torch.equal(found.row_counts.expand(total.shape), visible.sum(-1))
    assert torch.equal(found.column_counts.expand(found.columns.shape), visible.sum(-2))


def close(got, wanted):
    torch.testing.assert_close(got, wanted, rtol=0, atol=1e-9, equal_nan=True)


@pytest.mark.parametrize("case", ["one head", "grouped heads", "large logits", "window"])
def test_float32_is_within_a_few_units_of_float64(case):
    given = problem(**CASES[case], dtype=torch.float32)
    attention, expected, _ = whole_map(given)
    out, found = attend(**given)
    assert out.dtype == found.entropy.dtype == torch.float32
    # Logits near 3000 carry an error of 3000 × 6e-8 each; the statistics must not add to it.
    logits = (given["scaling"] * given["query"].double().abs().sum(-1).max() * given["key"].abs().max()).item()
    tolerance = 4e-6 + 2e-7 * logits
    assert (out.double() - expected).abs().max() < tolerance
    assert (found.entropy.double() - torch.special.entr(attention).sum(-1)).abs().max() < tolerance
    assert (found.largest.double() - attention.amax(-1)).abs().max() < tolerance


def test_half_precision_goes_out_as_it_came_in_and_is_measured_in_float32():
    given = problem(heads=4, kv_heads=2, dtype=torch.bfloat16)
    attention, expected, _ = whole_map(given)
    out, found = attend(**given)
    assert out.dtype == torch.bfloat16
    assert found.entropy.dtype == torch.float32
    assert (found.first.double() - attention[..., 0]).abs().max() < 1e-6
    assert (out.double() - expected).abs().max() < 0.05


def test_statistics_equal_the_metrics_of_the_map():
    given = problem(heads=4, kv_heads=2)
    attention, _, visible = whole_map(given)
    _, found = attend(**given)
    close(found.entropy, metrics.entropy(attention))
    close(found.largest, metrics.max_weight(attention))
    close(found.first / found.total, metrics.first_key_share(attention))
    close(found.total.square() / found.squares, metrics.participation(attention))
    close(found.columns / found.column_counts, metrics.column_means(attention))
    normalized = metrics.normalized_entropy(attention, where=visible)
    close((found.entropy / found.row_counts.double().log())[..., 1:], normalized[..., 1:])


def test_equal_logits_give_the_uniform_causal_map():
    length = 300
    _, found = attend(
        torch.zeros(1, 2, length, 4), torch.ones(1, 2, length, 4), torch.ones(1, 2, length, 4), scaling=1.0
    )
    visible = torch.arange(1, length + 1)
    torch.testing.assert_close(found.entropy[0, 0], visible.log(), rtol=0, atol=2e-6)
    torch.testing.assert_close(found.largest[0, 0], 1 / visible, rtol=1e-6, atol=0)
    torch.testing.assert_close(found.squares[0, 0], 1 / visible, rtol=1e-6, atol=0)


def test_a_sink_of_the_same_logit_takes_its_share():
    """Off by one: with logits s everywhere and 0 for the slot, the null mass is 1 / (1 + n eˢ)."""
    length, s = 20, 0.7
    ones = torch.ones(1, 1, length, 1, dtype=torch.float64)
    _, found = attend(ones, ones, ones, scaling=s, sink=torch.zeros(1, dtype=torch.float64))
    n = torch.arange(1, length + 1, dtype=torch.float64)
    close(1 - found.total[0, 0], 1 / (1 + n * math.exp(s)))
    close(found.entropy[0, 0], n.log())  # of the row divided by its sum


def test_nan_stays_where_it_is():
    given = problem(heads=2, kv_heads=2)
    given["query"][0, 1, 20] = torch.nan
    _, found = attend(**given)
    bad = torch.zeros(1, 2, 37, dtype=torch.bool)
    bad[0, 1, 20] = True
    for name in ("total", "largest", "first", "entropy", "squares"):
        assert torch.equal(torch.isnan(getattr(found, name)), bad), name


def test_hidden_keys_have_no_influence_however_large():
    given = problem(heads=2, kv_heads=1)
    out, found = attend(**given, rows=8)
    given["key"][:, :, 30:] *= 1e6
    given["value"][:, :, 30:] *= 1e6
    changed_out, changed = attend(**given, rows=8)
    assert torch.equal(out[:, :30], changed_out[:, :30])
    assert torch.equal(found.entropy[..., :30], changed.entropy[..., :30])
    assert not torch.equal(out[:, 30:], changed_out[:, 30:])


@pytest.mark.parametrize(("heads", "keys"), [(1, 1), (9, 2048), (32, 8192), (128, 131072), (512, 10**6)])
def test_a_block_stays_within_its_memory(heads, keys):
    rows = rows_for(heads * keys * 4)
    assert 1 <= rows <= ROWS
    assert rows == 1 or rows * heads * keys * 4 <= BLOCK_BYTES
    assert rows == ROWS or (rows + 1) * heads * keys * 4 > BLOCK_BYTES


@pytest.mark.parametrize("change", [{"rows": 0}, {"rows": -3}, {"visible": torch.zeros(1, 1, 37, 37)}])
def test_bad_arguments_are_refused(change):
    with pytest.raises(InputError, match=r"rows|mask"):
        attend(**(problem() | change))
