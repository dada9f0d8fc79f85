"""The transformer against a plain written-out one, and its trimmings."""

import math

import pytest
import torch
from torch.nn import functional

from polariscope.errors import InputError
from polariscope.nets import REGISTRY, Transformer, TransformerConfig
from polariscope.nets.masks import causal

BASE = {"vocabulary": 13, "length": 6, "outputs": 3, "dim": 8}
VARIANTS = [
    {},
    {"heads": 2, "layers": 2},
    {"layernorm": True, "mlp": True, "layers": 2},
    {"positions": "add", "causal": True},
    {"positions": "concat", "heads": 4, "layers": 3, "mlp": True},
    {"causal": True, "layers": 2, "attention": "sigmoid"},
    {"attention": "sigmoid-normalized", "heads": 2},
    {"attention": "uniform", "layernorm": True},
]


def build(seed=0, **options):
    config = TransformerConfig(**{**BASE, **options})
    return Transformer(config, torch.Generator().manual_seed(seed)).double()


def draw_ids(count=4, length=6):
    return torch.randint(BASE["vocabulary"], (count, length), generator=torch.Generator().manual_seed(5))


def plain_weights(kind, a, visible):
    """Weights by the textbook formulas, row by row."""
    a = a.masked_fill(~visible, -math.inf)
    if kind == "softmax":
        return a.softmax(-1)
    if kind == "uniform":
        return visible.double() / visible.sum(-1, keepdim=True)
    r = torch.sigmoid(a)  # 0 where hidden
    return r if kind == "sigmoid" else r / r.sum(-1, keepdim=True)


def plain_forward(model, ids):
    """One sequence, head and row after the other: no tables, no skipped rows."""
    c, logits = model.config, []
    for sequence in ids:
        x = model.tokens.weight[sequence]
        if c.positions == "add":
            x = x + model.places.weight[: len(sequence)]
        if c.positions == "concat":
            x = torch.cat([x, model.places.weight[: len(sequence)]], 1)
        for block in model.blocks:
            n = functional.layer_norm(x, (c.dim,)) if c.layernorm else x
            parts, width = [], c.dim // c.heads
            for head in range(c.heads):
                cut = slice(head * width, (head + 1) * width)
                q, k, v = (n @ layer.weight[cut].T + layer.bias[cut] for layer in (block.query, block.key, block.value))
                visible = torch.ones(len(x), len(x)).bool()
                visible = visible.tril() if c.causal else visible
                parts.append(plain_weights(c.attention, q @ k.T / math.sqrt(width), visible).to(v) @ v)
            x = x + torch.cat(parts, 1) @ block.out.weight.T + block.out.bias
            if c.mlp:
                _, up, _, down = block.mlp
                n = functional.layer_norm(x, (c.dim,)) if c.layernorm else x
                x = x + functional.gelu(n @ up.weight.T + up.bias) @ down.weight.T + down.bias
        x = functional.layer_norm(x, (c.dim,)) if c.layernorm else x
        logits.append(x @ model.readout.weight.T + model.readout.bias)
    return torch.stack(logits)


@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_logits_are_those_of_the_plain_network(options):
    model, ids = build(**options), draw_ids()
    torch.testing.assert_close(model(ids).logits, plain_forward(model, ids), rtol=0, atol=1e-12)


@pytest.mark.parametrize("options", VARIANTS, ids=str)
@pytest.mark.parametrize("rows", [slice(-1, None), slice(2, 5)])
def test_asking_for_some_rows_gives_those_rows(options, rows):
    model, ids = build(**options), draw_ids()
    whole, part = model(ids, weights=True), model(ids, rows, weights=True)
    torch.testing.assert_close(part.logits, whole.logits[:, rows], rtol=0, atol=1e-12)
    assert len(part.weights) == model.config.layers
    for all_rows, some_rows in zip(whole.weights, part.weights, strict=True):
        torch.testing.assert_close(some_rows, all_rows[:, :, rows], rtol=0, atol=1e-12)


@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_gradients_reach_every_parameter_that_matters(options):
    model, ids = build(**options), draw_ids()
    model(ids, slice(-1, None)).logits.square().sum().backward()
    unused = {name for name, p in model.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0}
    assert all("query" in name or "key" in name for name in unused)
    assert not unused or options["attention"] == "uniform" or all("key.bias" in name for name in unused)


def test_weights_are_returned_on_request_only():
    model = build(heads=2, layers=2)
    assert model(draw_ids()).weights == ()
    assert [w.shape for w in model(draw_ids(), weights=True).weights] == [(4, 2, 6, 6)] * 2


@pytest.mark.parametrize("kind", list(REGISTRY))
def test_a_causal_network_does_not_see_what_comes_later(kind):
    model, ids = build(attention=kind, causal=True, positions="add", layers=2), draw_ids()
    changed = ids.clone()
    changed[:, 4:] = (ids[:, 4:] + 1) % BASE["vocabulary"]
    before, after = model(ids).logits, model(changed).logits
    assert torch.equal(before[:, :4], after[:, :4])
    assert not torch.equal(before[:, 4:], after[:, 4:])


def test_without_positions_the_order_does_not_matter():
    model, ids = build(layers=2, mlp=True), draw_ids()
    order = torch.tensor([4, 2, 0, 1, 3, 5])
    last = slice(-1, None)
    torch.testing.assert_close(model(ids[:, order], last).logits, model(ids, last).logits, rtol=0, atol=1e-12)
    with_places = build(layers=2, positions="add")
    assert not torch.allclose(with_places(ids[:, order], last).logits, with_places(ids, last).logits)


def test_the_causal_mask():
    assert causal(3).tolist() == [[True, False, False], [True, True, False], [True, True, True]]


def test_initialization_follows_the_generator_and_leaves_the_global_state_alone():
    before = torch.get_rng_state()
    one, same, other = build(seed=1), build(seed=1), build(seed=2)
    assert torch.equal(before, torch.get_rng_state())
    assert torch.equal(one.readout.weight, same.readout.weight)
    assert not torch.equal(one.readout.weight, other.readout.weight)


def test_initialization_has_the_scale_of_the_source():
    model = build(dim=64, vocabulary=500, layernorm=True, mlp=True)
    assert model.tokens.weight.std().item() == pytest.approx(1, abs=0.02)
    for layer in (model.blocks[0].query, model.blocks[0].mlp[3]):
        bound = layer.in_features**-0.5
        assert layer.weight.abs().max() <= bound
        assert layer.weight.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.05)
        assert layer.bias.abs().max() <= bound
    assert (model.norm.weight == 1).all()
    assert (model.norm.bias == 0).all()


@pytest.mark.parametrize(
    ("ids", "what"),
    [
        (torch.zeros(6, dtype=torch.long), "token ids"),
        (torch.zeros(2, 6), "token ids"),
        (torch.zeros(0, 6, dtype=torch.long), "token ids"),
        (torch.zeros(2, 7, dtype=torch.long), "sequence length"),
        (torch.full((2, 6), 13), "token ids"),
        (torch.full((2, 6), -1), "token ids"),
    ],
)
def test_ids_that_do_not_fit_are_refused(ids, what):
    with pytest.raises(InputError, match=what):
        build(positions="add")(ids)


@pytest.mark.parametrize("options", [{"heads": 3}, {"dim": 5, "positions": "concat"}])
def test_a_width_that_does_not_divide_is_refused(options):
    with pytest.raises(ValueError, match="width of the network"):
        TransformerConfig(**{**BASE, **options})
