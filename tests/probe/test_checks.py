"""Each self-check passes where it should, and can fail."""

import pytest
import torch
from tiny_models import CONFIGS, build, ids

from polariscope.errors import InputError
from polariscope.probe import blocks, checks
from polariscope.probe.body import body_of, evaluating


def check(model, tokens=None):
    with evaluating(model):
        return checks.check(body_of(model), ids(40) if tokens is None else tokens, rows=16)


# Experts are chosen by a maximum, which rounding in half precision can flip, and have no float64 kernel.
@pytest.mark.parametrize(
    ("family", "dtype"),
    [(family, torch.float32) for family in CONFIGS]
    + [(family, dtype) for family in CONFIGS if "gpt_oss" not in family for dtype in (torch.float64, torch.bfloat16)],
)
def test_every_family_passes(family, dtype):
    found = check(build(family, dtype))
    assert all(record["passed"] for record in found.values())
    assert found["layers"] == {"layers": 3, "calls": 3, "passed": True}
    assert found["causality"]["max_abs_difference"] == 0
    assert found["logits"]["max_abs_difference"] <= found["logits"]["tolerance"]


def test_logits_of_another_attention_fail(monkeypatch):
    right = blocks.attend

    def wrong(*args, scaling, **options):
        return right(*args, scaling=1.3 * scaling, **options)

    monkeypatch.setattr(blocks, "attend", wrong)
    with pytest.raises(InputError, match=r"self-check logits: got a largest difference of \d"):
        check(build("llama"))


def test_a_dropped_mask_fails(monkeypatch):
    """Attention that sees everything, in the stock model as well: only the look into the future gives it away."""
    model = build("llama")
    model.config.is_causal = False
    with pytest.raises(InputError, match=r"self-check causality: got a largest difference of \d"):
        check(model)


def test_a_mask_dropped_by_the_probe_alone_fails(monkeypatch):
    right = blocks.attend

    def blind(query, key, *args, visible, **options):
        everything = torch.ones(1, 1, query.shape[2], key.shape[2], dtype=torch.bool)
        return right(query, key, *args, visible=everything, **options)

    monkeypatch.setattr(blocks, "attend", blind)
    with pytest.raises(InputError, match="self-check logits"):
        check(build("llama"))


def test_a_layer_called_twice_fails():
    model = build("llama")
    layer = model.model.layers[1]
    once = layer.forward

    def twice(*args, **options):
        once(*args, **options)
        return once(*args, **options)

    layer.forward = twice
    with pytest.raises(InputError, match="layer 1: 2"):
        check(model)


def test_a_layer_without_attention_fails():
    model = build("llama")
    model.model.layers[2].forward = lambda hidden_states, **options: hidden_states
    with pytest.raises(InputError, match="layer 2: 0"):
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
