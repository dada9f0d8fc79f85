"""Laws for models of every kind: the probe finds what the model's own eager maps say, and leaves no trace."""

import math

import pytest
import torch
from family_cases import CASES, FALCON_ALIBI, LENGTH, OF_KIND, VOCABULARY, build, eager, sample
from transformers import AttentionInterface, AttentionMaskInterface

from polariscope.errors import InputError
from polariscope.probe import blocks, checks, hooks
from polariscope.probe.body import body_of, evaluating
from polariscope.probe.documents import Tokens
from polariscope.probe.session import prepare
from polariscope.probe.statistics import metric_names

# Eager attention casts its softmax to float32 in most models, also where the rest is float64.
TOLERANCE = {"rtol": 1e-5, "atol": 3e-6}


def prepared(model, given):
    count = checks.positions_of(body_of(model), given) if isinstance(given, torch.Tensor) else len(given)
    pixels = given if isinstance(given, torch.Tensor) else None
    first = Tokens("0", list(range(count)) if pixels is not None else given, count, pixels)
    with evaluating(model):
        return prepare(model, [str(i) for i in range(VOCABULARY)], first, (0.3,)), first


def measured(session, given, engine=blocks.attend):
    """Last hidden states, and the statistics by attention and layer."""
    found, way, length = [], session.examination.way, checks._length(session.body, given)
    with (
        evaluating(session.body.model),
        hooks.measuring(session.body, lambda _, __, s: found.append(s), way=way, engine=engine) as now,
    ):
        now.map_length = length
        hidden = session.body(given, **checks.forward_options(way))
    return hidden, {
        (site.attention, site.layer): statistics
        for site, statistics in zip(session.examination.sites, found, strict=True)
    }


def of_map(A):
    """What must be found for a map, (B, H, T, S), in float64 and without the code under test."""
    A = A.double()
    total = A.sum(-1)
    visible = (A > 0).any(1, keepdim=True)
    return {
        "total": total,
        "largest": A.amax(-1),
        "first": A[..., 0],
        "entropy": torch.special.entr(A / total[..., None]).sum(-1),
        "squares": A.square().sum(-1),
        "columns": A.sum(-2),
        "above": torch.stack([(t < A).sum(-1) for t in (0.001, 0.1)]).double(),
        "row_counts": visible.sum(-1),
        "column_counts": visible.sum(-2),
    }


def assert_same(found, A):
    # A weight as near to a threshold as rounding reaches may count on either side.
    near = torch.stack([((A.double() - t).abs() < 1e-6).any(-1) for t in (0.001, 0.1)])
    for name, wanted in of_map(A).items():
        got = getattr(found, name).double()
        if name == "above":
            got, wanted = got[~near], wanted[~near]
        if name.endswith("counts"):  # of every head the same, or one for all
            got = got.amax(1, keepdim=True)
        torch.testing.assert_close(got, wanted.double(), **TOLERANCE, msg=lambda text, name=name: f"{name}: {text}")


@pytest.mark.parametrize("name", CASES)
def test_statistics_and_outputs_equal_those_of_the_models_own_eager_attention(name):
    given = sample(name)
    session, _ = prepared(build(name), given)
    assert session.body.kind == CASES[name].kind
    with evaluating(session.body.model):
        stock = session.body(given)
    hidden, found = measured(session, given)
    expected, maps = eager(body_of(build(name, "eager")), given)
    torch.testing.assert_close(hidden, stock, rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(hidden, expected, rtol=1e-5, atol=1e-4)
    for attention, of_layers in maps.items():
        layers = sorted(layer for other, layer in found if other == attention)
        assert len(layers) == len(of_layers) > 0
        for layer, A in zip(layers, of_layers, strict=True):
            assert_same(found[attention, layer], A)
    assert {attention for attention, _ in found} == set(maps)


@pytest.mark.parametrize("name", OF_KIND["decoder"])
def test_a_later_token_leaves_earlier_rows_as_they_were(name):
    given, position = sample(name), LENGTH - 6
    session, _ = prepared(build(name), given)
    other = [*given[:position], 40 + (given[position] + 1) % 40, *given[position + 1 :]]
    tolerance = 1e-12 if CASES[name].dtype == torch.float64 else 1e-5
    one, two = measured(session, given)[1], measured(session, other)[1]
    for site, statistics in one.items():
        for row in ("total", "largest", "first", "entropy", "squares", "lse", "max_logit", "output_norms"):
            before, after = (getattr(s, row)[..., :position] for s in (statistics, two[site]))
            torch.testing.assert_close(before, after, rtol=tolerance, atol=tolerance, equal_nan=True)
    assert session.examination.record["causality"]["passed"]


@pytest.mark.parametrize("name", OF_KIND["encoder"])
def test_an_encoder_sees_later_tokens(name):
    given = sample(name)
    session, _ = prepared(build(name), given)
    other = [*given[:-1], 40 + (given[-1] + 1) % 40]
    one, two = measured(session, given)[1], measured(session, other)[1]
    assert any(not torch.equal(one[site].entropy[..., -2], two[site].entropy[..., -2]) for site in one)


class Broken(Exception):
    pass


def breaking(call):
    raise Broken


def state_of(model):
    """What a measurement must leave as it was."""
    parts = list(model.modules())
    return {
        "implementations": [getattr(getattr(x, "config", None), "_attn_implementation_internal", None) for x in parts],
        "hooks": [(len(x._forward_hooks), len(x._forward_pre_hooks)) for x in parts],
        "training": [x.training for x in parts],
        "gradients": [x.requires_grad for x in model.parameters()],
        "registered": (sorted(AttentionInterface._global_mapping), sorted(AttentionMaskInterface._global_mapping)),
        "weights": [x.double().sum().item() for x in model.parameters()],
    }


@pytest.mark.parametrize("name", CASES)
def test_the_model_is_as_before(name):
    model = build(name)
    list(model.modules())[1].train()  # a mixture of flags
    before = state_of(model)
    given = sample(name)
    session, first = prepared(model, given)
    assert state_of(model) == before
    with session.open() as measure:
        measure(first)
    assert state_of(model) == before
    with pytest.raises(RuntimeError, match="stop"), session.open() as measure:
        raise RuntimeError("stop")
    assert state_of(model) == before
    if CASES[name].way == "interface":
        with pytest.raises(Broken):
            measured(session, given, breaking)
        assert state_of(model) == before


@pytest.mark.parametrize("name", CASES)
def test_the_way_and_the_engine_are_named_and_layers_keep_their_numbers(name):
    case = CASES[name]
    session, first = prepared(build(name), sample(name))
    assert session.examination.way == session.examination.record["way"] == case.way
    assert {site.engine for site in session.sites} == {"map" if case.way == "maps" else "blocks"}
    assert tuple(layer.index for layer in session.examination.silent) == case.silent
    depth = len(session.body.layers) // (2 if case.kind == "encoder-decoder" else 1)
    attending = [index for index in range(depth) if index not in case.silent]
    for attention in {site.attention for site in session.sites}:
        assert [site.layer for site in session.sites if site.attention == attention] == attending
    with session.open() as measure:
        _, found = measure(first)
    assert set(found.engines) == {site.engine for site in session.sites}
    assert len(found.massive) == len(session.body.layers)


@pytest.mark.parametrize("name", CASES)
def test_a_window_that_loses_the_first_key_has_no_sink_rate(name):
    session, first = prepared(build(name), sample(name))
    with session.open() as measure:
        _, found = measure(first)
    names = metric_names((0.3,))
    for site, values in zip(session.sites, found.values, strict=True):
        rates = values[names.index("sink_rate")][: site.heads]
        lost = site.layer in CASES[name].windows
        assert all(math.isnan(rate) == lost for rate in rates), (site, rates)
        assert all(math.isfinite(value) for value in values[names.index("entropy")][: site.heads])


def test_cross_attention_is_named_and_has_heads_of_its_own():
    session, _ = prepared(build("bart"), sample("bart"))
    assert [(s.attention, s.layer, s.heads) for s in session.sites] == [
        ("encoder", 0, 4), ("encoder", 1, 4), ("decoder", 0, 2), ("cross", 0, 2), ("decoder", 1, 2), ("cross", 1, 2),
    ]  # fmt: skip


def test_maps_of_another_attention_than_the_models_own_are_refused():
    model = build(FALCON_ALIBI)
    with pytest.raises(InputError, match=r"maps: self-check logits: got a largest difference of 0\.\d+"):
        prepared(model, sample("falcon"))
    session, _ = prepared(build(FALCON_ALIBI, "eager"), sample("falcon"))  # there they are its own
    assert session.examination.way == "maps"
