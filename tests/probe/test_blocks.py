"""The engine against whole maps made in float64 one row at a time, and against closed forms."""

import math

import pytest
import torch
from attention_cases import CASES, expected_statistics, problem, whole_map

from polariscope import metrics, scores
from polariscope.errors import InputError
from polariscope.probe.attention import Call
from polariscope.probe.blocks import CPU_BYTES, FEWEST_ROWS, MOST_ROWS, attend, blocks_of

THRESHOLDS = (0.01, 0.2)


@pytest.mark.parametrize("rows", [None, 1, 5, 37, 1000])
@pytest.mark.parametrize("case", CASES)
def test_output_and_statistics_equal_those_of_the_whole_map(case, rows):
    given = problem(**CASES[case])
    wanted_out, wanted = expected_statistics(given, THRESHOLDS)
    out, found = attend(Call(**given), THRESHOLDS, rows=rows)
    close(out, wanted_out)
    for name, value in wanted.items():
        got = getattr(found, name)
        close(got.expand(value.shape).to(value.dtype), value, name)


def close(got, wanted, name=""):
    torch.testing.assert_close(got, wanted, rtol=1e-12, atol=1e-9, equal_nan=True, msg=lambda text: f"{name}: {text}")


@pytest.mark.parametrize("case", ["one head", "grouped heads", "large logits", "window"])
def test_float32_is_within_a_few_units_of_float64(case):
    given = problem(**CASES[case], dtype=torch.float32)
    _, attention, expected, _ = whole_map(given)
    out, found = attend(Call(**given))
    assert out.dtype == found.entropy.dtype == torch.float32
    # Logits near 3000 carry an error of 3000 × 6e-8 each; the statistics must not add to it.
    logits = (given["scaling"] * given["query"].double().abs().sum(-1).max() * given["key"].abs().max()).item()
    tolerance = 4e-6 + 2e-7 * logits
    assert (out.double() - expected).abs().max() < tolerance
    assert (found.entropy.double() - torch.special.entr(attention).sum(-1)).abs().max() < tolerance
    assert (found.largest.double() - attention.amax(-1)).abs().max() < tolerance


def test_half_precision_goes_out_as_it_came_in_and_is_measured_in_float32():
    given = problem(heads=4, kv_heads=2, dtype=torch.bfloat16)
    _, attention, expected, _ = whole_map(given)
    out, found = attend(Call(**given))
    assert out.dtype == torch.bfloat16
    assert found.entropy.dtype == torch.float32
    assert (found.first.double() - attention[..., 0]).abs().max() < 1e-6
    assert (out.double() - expected).abs().max() < 0.05


def test_statistics_equal_the_metrics_of_the_map():
    given = problem(heads=4, kv_heads=2)
    _, attention, _, visible = whole_map(given)
    _, found = attend(Call(**given))
    close(found.entropy, metrics.entropy(attention))
    close(found.largest, metrics.max_weight(attention))
    close(found.first / found.total, metrics.first_key_share(attention))
    close(found.total.square() / found.squares, metrics.participation(attention))
    close(found.columns / found.column_counts, metrics.column_means(attention))
    normalized = metrics.normalized_entropy(attention, where=visible)
    close((found.entropy / found.row_counts.double().log())[..., 1:], normalized[..., 1:])


def test_equal_logits_give_the_uniform_causal_map():
    length = 300
    ones = torch.ones(1, 2, length, 4)
    _, found = attend(Call(0 * ones, ones, ones, scaling=1.0))
    visible = torch.arange(1, length + 1)
    torch.testing.assert_close(found.entropy[0, 0], visible.log(), rtol=0, atol=2e-6)
    torch.testing.assert_close(found.largest[0, 0], 1 / visible, rtol=1e-6, atol=0)
    torch.testing.assert_close(found.squares[0, 0], 1 / visible, rtol=1e-6, atol=0)


def test_a_sink_of_the_same_logit_takes_its_share():
    """Off by one: with logits s everywhere and 0 for the slot, the null mass is 1 / (1 + n eˢ)."""
    length, s = 20, 0.7
    ones = torch.ones(1, 1, length, 1, dtype=torch.float64)
    _, found = attend(Call(ones, ones, ones, scaling=s, sink=torch.zeros(1, dtype=torch.float64)))
    n = torch.arange(1, length + 1, dtype=torch.float64)
    close(1 - found.total[0, 0], 1 / (1 + n * math.exp(s)))
    close(found.entropy[0, 0], n.log())  # of the row divided by its sum


def test_nan_stays_where_it_is():
    given = problem(heads=2, kv_heads=2)
    given["query"][0, 1, 20] = torch.nan
    _, found = attend(Call(**given))
    bad = torch.zeros(1, 2, 37, dtype=torch.bool)
    bad[0, 1, 20] = True
    for name in ("total", "largest", "first", "entropy", "squares"):
        assert torch.equal(torch.isnan(getattr(found, name)), bad), name


def test_hidden_keys_have_no_influence_however_large():
    given = problem(heads=2, kv_heads=1)
    out, found = attend(Call(**given), rows=8)
    given["key"][:, :, 30:] *= 1e6
    given["value"][:, :, 30:] *= 1e6
    changed_out, changed = attend(Call(**given), rows=8)
    assert torch.equal(out[:, :30], changed_out[:, :30])
    assert torch.equal(found.entropy[..., :30], changed.entropy[..., :30])
    assert not torch.equal(out[:, 30:], changed_out[:, 30:])


@pytest.mark.parametrize(
    ("groups", "shared", "length", "keys"), [(1, 1, 5, 5), (3, 3, 2048, 2048), (4, 8, 999, 9000), (512, 1, 40, 10**6)]
)
def test_blocks_cover_everything_once_and_stay_small(groups, shared, length, keys):
    covered = torch.zeros(groups, length, dtype=torch.int)
    for heads, queries in blocks_of(groups, shared, length, keys * 4, None, torch.device("cpu")):
        covered[heads, queries] += 1
        rows = queries.stop - queries.start
        size = (heads.stop - heads.start) * shared * rows * keys * 4
        assert rows <= MOST_ROWS
        assert size <= CPU_BYTES or (heads.stop - heads.start == 1 and rows <= FEWEST_ROWS)
    assert (covered == 1).all()


@pytest.mark.parametrize("rows", [0, -3])
def test_blocks_without_rows_are_refused(rows):
    with pytest.raises(InputError, match="rows"):
        attend(Call(**problem()), rows=rows)


@pytest.mark.parametrize(
    "change", [{"visible": torch.zeros(1, 1, 37, 37)}, {"sink": torch.zeros(1), "scores": scores.get("relu")}]
)
def test_calls_that_mean_nothing_are_refused(change):
    with pytest.raises(InputError, match=r"mask|sink"):
        Call(**(problem() | change))
