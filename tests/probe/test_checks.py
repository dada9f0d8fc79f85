"""Each self-check passes where it should, and can fail."""

import dataclasses

import pytest
import torch
from tiny_models import CONFIGS, build, ids

from polariscope.errors import InputError
from polariscope.probe import blocks, checks
from polariscope.probe.body import body_of, evaluating


def sixteen_rows(call):
    return blocks.attend(call, rows=16)


def check(model, tokens=None, engine=sixteen_rows):
    with evaluating(model):
        return checks.examine(body_of(model), ids(40) if tokens is None else tokens, engine).record


def first_way(model, engine=sixteen_rows):
    """What the interface alone says, without falling back on the model's own maps."""
    with evaluating(model):
        return checks._examine(body := body_of(model), ids(40), checks._logits(body, ids(40)), engine, "interface")


# Experts are chosen by a maximum, which rounding in half precision can flip, and have no float64 kernel.
@pytest.mark.parametrize(
    ("family", "dtype"),
    [(family, torch.float32) for family in CONFIGS]
    + [(family, dtype) for family in CONFIGS if "gpt_oss" not in family for dtype in (torch.float64, torch.bfloat16)],
)
def test_every_family_passes(family, dtype):
    found = check(build(family, dtype))
    assert found["tried_before"] == {}
    assert found["layers"] == {"layers": 3, "calls": 3, "without_attention": [], "passed": True}
    assert found["causality"]["max_abs_difference"] == 0
    assert found["logits"]["max_abs_difference"] <= found["logits"]["tolerance"]


def sharper(call):
    return blocks.attend(dataclasses.replace(call, scaling=1.3 * call.scaling))


def blind(call):
    everything = torch.ones(1, 1, *call.shape[2:], dtype=torch.bool)
    return blocks.attend(dataclasses.replace(call, visible=everything))


@pytest.mark.parametrize("engine", [sharper, blind])
def test_logits_of_another_attention_fail(engine):
    with pytest.raises(InputError, match=r"self-check logits: got a largest difference of \d"):
        first_way(build("llama"), engine)


def test_where_the_interface_fails_the_models_own_maps_are_taken_and_the_reason_is_told():
    with evaluating(model := build("llama")):
        found = checks.examine(body_of(model), ids(40), sharper)
    assert found.way == "maps"
    assert {site.engine for site in found.sites} == {"map"}
    assert "self-check logits" in found.record["tried_before"]["interface"]


def test_a_dropped_mask_fails():
    """Attention that sees everything, in the stock model as well: only the look into the future gives it away."""
    model = build("llama")
    model.config.is_causal = False
    with pytest.raises(InputError, match=r"self-check causality: got a largest difference of \d"):
        check(model)


def test_a_layer_called_twice_gives_two_sites():
    model = build("llama")
    layer = model.model.layers[1].self_attn
    once = layer.forward

    def twice(*args, **options):
        once(*args, **options)
        return once(*args, **options)

    layer.forward = twice
    sites = first_way(model).sites
    assert [(site.attention, site.layer) for site in sites] == [("self", 0), ("self", 1), ("self (2)", 1), ("self", 2)]


def test_a_layer_whose_attention_is_not_called_fails():
    model = build("llama")
    model.model.layers[2].forward = lambda hidden_states, **options: hidden_states
    with pytest.raises(InputError, match=r"1 of 3 layers whose attention was not called \(layers 2\)"):
        check(model)


def test_a_layer_without_attention_is_told():
    model = build("llama")
    model.model.layers[1].self_attn = Mixing()
    found = first_way(model)
    assert [site.layer for site in found.sites] == [0, 2]
    assert [layer.index for layer in found.silent] == [1]


class Mixing(torch.nn.Module):
    """A layer of another kind: the mean over what came before."""

    def forward(self, hidden_states, **options):
        count = torch.arange(1, hidden_states.shape[1] + 1)[:, None]
        return hidden_states.cumsum(1) / count, None


def test_a_model_without_attention_is_refused():
    model = build("llama")
    for layer in model.model.layers:
        layer.self_attn = Mixing()
    with pytest.raises(InputError, match="model without attention"):
        check(model)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_refused(value):
    model = build("llama")
    with torch.no_grad():
        model.model.layers[1].self_attn.q_proj.weight[0, 0] = value
    with pytest.raises(InputError, match="not finite"):
        check(model)


def test_the_positions_compared_hold_the_ends():
    for length in (2, 5, 64, 65, 1000, 8192):
        positions = checks._positions(length, torch.device("cpu"))
        assert positions[0] == 0
        assert positions[-1] == length - 1
        assert len(positions.unique()) == min(length, checks.POSITIONS)
