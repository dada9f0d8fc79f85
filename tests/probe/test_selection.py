"""Keys that are kept by name, and a sink for each query: both against whole maps in float64, row by row."""

import itertools

import pytest
import torch
from attention_cases import lower, problem, whole_map
from tiny_models import build

from polariscope.probe import blocks, hooks
from polariscope.probe.attention import Call
from polariscope.probe.selection import narrowed


def indices(groups, size, length, keys, count=3):
    """Random numbers of blocks, some of them −1, (B = 1, G, T, n)."""
    random = torch.Generator().manual_seed(0)
    return torch.randint(-1, -(-keys // size), (1, groups, length, count), generator=random)


@pytest.mark.parametrize("mask", [None, "window"])
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(("groups", "size"), [(1, 1), (1, 5), (2, 4)])
def test_a_key_is_visible_if_it_was_visible_and_is_kept(groups, size, causal, mask):
    given = problem(heads=4, kv_heads=2, mask=mask, causal=causal)
    call = Call(**given)
    _, heads, length, keys = call.shape
    kept = indices(groups, size, length, keys)
    names = kept[0].tolist()
    before = call.visible if mask else (lower(length, keys) if causal else torch.ones(length, keys, dtype=torch.bool))
    before = before.expand(1, heads, length, keys)[0].tolist()
    found = narrowed(call, kept, size).visible.expand(1, heads, length, keys)[0].tolist()
    for head, query, key in itertools.product(range(heads), range(length), range(keys)):
        named = key // size in names[head * groups // heads][query]
        assert found[head][query][key] == (before[head][query][key] and named)


def test_one_choice_for_all_heads_may_lack_its_axis():
    call = Call(**problem(heads=4, kv_heads=2))
    kept = indices(1, 1, call.shape[2], call.shape[3])
    assert torch.equal(narrowed(call, kept[:, 0]).visible, narrowed(call, kept).visible)
    assert narrowed(call, None) is call


@pytest.mark.parametrize("bias", [None, "full"])
def test_a_sink_for_each_query_takes_its_share_and_leaves_the_logits_alone(bias):
    given = problem(heads=4, kv_heads=2, bias=bias, mask="window")
    logits, attention, out, _ = whole_map(given)
    sinks = torch.randn(1, 4, attention.shape[2], 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    mass = logits.logsumexp(-1, keepdim=True)
    share = (mass - sinks).sigmoid()
    found = []
    attend = hooks._Attention(
        build("llama"), hooks.Measuring(), lambda _layer, _part, s: found.append(s), lambda call: blocks.attend(call)
    )
    got, _ = attend(
        torch.nn.Identity(), given["query"], given["key"], given["value"], given["visible"], given["scaling"],
        position_bias=given["bias"], sinks=sinks,
    )  # fmt: skip
    torch.testing.assert_close(got, out * share.transpose(1, 2))
    torch.testing.assert_close(found[0].total, share[..., 0])
    torch.testing.assert_close(found[0].first, (attention * share)[..., 0])
    torch.testing.assert_close(found[0].lse, mass[..., 0])
    torch.testing.assert_close(found[0].max_logit, logits.amax(-1))
