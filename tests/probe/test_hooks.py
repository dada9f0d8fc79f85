"""Inside real model classes: same outputs, same maps, and everything as before afterwards."""

import functools

import pytest
import torch
from tiny_models import CONFIGS, build, ids
from transformers import AttentionInterface, AttentionMaskInterface

from polariscope.errors import InputError
from polariscope.probe.blocks import attend
from polariscope.probe.body import body_of, evaluating
from polariscope.probe.hooks import measuring


def measured(model, tokens, rows=None):
    """Last hidden states, the statistics of each layer, and the outputs of each layer."""
    body, statistics, outputs = body_of(model), {}, {}

    def on_attention(layer, module, found):
        assert layer.index not in statistics
        assert module is layer.module.get_submodule(name_of(layer, module))
        statistics[layer.index] = found

    def on_output(layer, hidden):
        outputs[layer.index] = hidden

    engine = functools.partial(attend, rows=rows)
    with evaluating(model), measuring(body, on_attention, on_output, engine=engine):
        hidden = body(tokens)
    return hidden, statistics, outputs


def name_of(layer, module):
    return next(name for name, part in layer.module.named_modules() if part is module)


def eager(model_of, tokens):
    """The same from the library's own maps; hidden_states[0] is the embedding and the last one is normed."""
    model = model_of(attention="eager")
    with torch.inference_mode():
        out = model(torch.tensor([tokens]), output_attentions=True, output_hidden_states=True, use_cache=False)
    return out.hidden_states[-1], out.attentions, out.hidden_states[1:-1]


@pytest.mark.parametrize("rows", [None, 7])
@pytest.mark.parametrize("family", CONFIGS)
def test_statistics_equal_those_of_eager_maps(family, rows):
    tokens = ids(40)
    hidden, statistics, outputs = measured(build(family), tokens, rows)
    expected, maps, between = eager(lambda attention: build(family, attention=attention), tokens)
    torch.testing.assert_close(hidden, expected, rtol=1e-5, atol=5e-5)
    assert sorted(statistics) == sorted(outputs) == [0, 1, 2]
    for layer, attention in enumerate(maps):
        found, wide = statistics[layer], attention.double()
        total = wide.sum(-1)
        entropy = torch.special.entr(wide / total[..., None]).sum(-1)
        for got, wanted in [
            (found.total, total),
            (found.largest, wide.amax(-1)),
            (found.first, wide[..., 0]),
            (found.entropy, entropy),
            (found.squares, wide.square().sum(-1)),
            (found.columns, wide.sum(-2)),
        ]:
            torch.testing.assert_close(got.double(), wanted, rtol=1e-5, atol=1e-5)
    for layer, wanted in enumerate(between):
        torch.testing.assert_close(outputs[layer], wanted, rtol=1e-5, atol=5e-5)


def test_float64_equals_eager_gpt2_in_double_precision():
    """GPT-2's eager attention and LayerNorm are truly float64, unlike those of the other families."""
    tokens = ids(40)
    _, statistics, _ = measured(build("gpt2", torch.float64), tokens)
    _, maps, _ = eager(lambda attention: build("gpt2", torch.float64, attention=attention), tokens)
    for layer, attention in enumerate(maps):
        entropy = torch.special.entr(attention).sum(-1)
        torch.testing.assert_close(statistics[layer].entropy, entropy, rtol=0, atol=1e-12)
        torch.testing.assert_close(statistics[layer].columns, attention.sum(-2), rtol=0, atol=1e-12)


def test_windows_are_seen_in_the_counts():
    _, statistics, _ = measured(build("mistral, window 7"), ids(40))
    assert statistics[0].row_counts.flatten().tolist() == [min(i, 7) for i in range(1, 41)]


def state(model):
    return {
        "attention": model.config._attn_implementation,
        "functions": set(AttentionInterface._global_mapping),
        "masks": set(AttentionMaskInterface._global_mapping),
        "hooks": [len(part._forward_hooks) for part in model.modules()],
        "training": [part.training for part in model.modules()],
        "gradients": torch.is_grad_enabled(),
    }


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("fails", [False, True])
def test_everything_is_put_back(attention, fails):
    model = build("llama", attention=attention)
    model.train()
    model.model.layers[1].mlp.eval()  # one part differs: it must come back as it was, not all as one
    before, body = state(model), body_of(model)

    class Stop(Exception):
        pass

    def on_attention(layer, module, statistics):
        assert not model.training
        assert torch.is_inference_mode_enabled()
        assert model.config._attn_implementation not in ("sdpa", "eager")
        if fails and layer.index == 1:
            raise Stop

    caught = None
    try:
        with evaluating(model), measuring(body, on_attention, lambda layer, output: None):
            body(ids(12))
    except Stop as problem:
        caught = problem
    assert (caught is not None) == fails
    assert state(model) == before


def test_two_models_at_once_do_not_mix():
    first, second = body_of(build("llama")), body_of(build("gpt2"))
    seen = []
    with evaluating(first.model), evaluating(second.model):
        alone = second(ids(12))
        with measuring(first, lambda layer, *_: seen.append(("first", layer.index))):
            with measuring(second, lambda layer, *_: seen.append(("second", layer.index))):
                first(ids(12))
                second(ids(12))
            assert torch.equal(second(ids(12)), alone)
            first(ids(12))
    assert seen == [
        ("first", 0),
        ("first", 1),
        ("first", 2),
        *(("second", i) for i in range(3)),
        *(("first", i) for i in range(3)),
    ]


def test_what_is_no_model_of_transformers_is_named():
    with pytest.raises(InputError, match="Linear"):
        body_of(torch.nn.Linear(2, 2))


def test_attention_without_the_mask_it_asked_for_is_refused():
    """A model that passes None without having asked for a causal mask would see the future."""
    model = build("llama")
    body = body_of(model)

    def drop(module, args, kwargs):
        return args, kwargs | {"attention_mask": None}

    handle = model.model.layers[2].self_attn.register_forward_pre_hook(drop, with_kwargs=True)
    packed = torch.tensor(
        [[0, 1, 2, 0, 1, 2]]
    )  # positions that start again: two texts in one row, no plain causal mask
    with evaluating(model), measuring(body, lambda *_: None), pytest.raises(InputError, match="LlamaForCausalLM"):
        body.network(input_ids=torch.tensor([ids(6)]), position_ids=packed, use_cache=False)
    handle.remove()
