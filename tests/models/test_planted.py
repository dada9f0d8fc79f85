"""The planted model does what its truth says, on any input, in float64 and float32."""

import numpy as np
import pytest
import torch
from scipy import stats

from polariscope import models
from polariscope.errors import InputError
from polariscope.models.byte_tokenizer import VOCABULARY
from polariscope.models.planted_truth import HeadTruth
from polariscope.models.planted_weights import POSITIONS


@pytest.fixture(scope="module", params=["float64", "float32"])
def planted(request):
    return models.load("planted", dtype=request.param)


def _inputs(seed, batch=2, length=300):
    return torch.randint(0, VOCABULARY, (batch, length), generator=torch.Generator().manual_seed(seed))


def _forward(model, ids):
    """Attention maps and layer outputs of the stock eager forward. GPT-2 computes both in the dtype of its weights."""
    outputs, hooks = [], []
    for block in model.transformer.h:
        hooks.append(block.register_forward_hook(lambda _, __, out: outputs.append(out)))
    before = model.config._attn_implementation
    model.set_attn_implementation("eager")
    with torch.no_grad():
        maps = model(ids, output_attentions=True).attentions
    model.set_attn_implementation(before)
    for hook in hooks:
        hook.remove()
    return maps, outputs


@pytest.mark.parametrize("ids", [_inputs(1), _inputs(2), torch.full((1, 200), 7)], ids=["random", "other", "repeated"])
def test_every_map_is_the_planted_one(planted, ids):
    maps, _ = _forward(planted.model, ids)
    tolerance = 1e-12 if planted.dtype == "float64" else 3e-6
    for layer, heads in enumerate(planted.extras["truth"]["heads"]):
        for head, truth in enumerate(heads):
            found = maps[layer][:, head].double().numpy()
            np.testing.assert_allclose(found, np.broadcast_to(truth.map(ids.shape[1]), found.shape), atol=tolerance)


def test_the_share_holds_up_to_the_last_position():
    planted = models.load("planted", dtype="float64")
    ids = _inputs(3, batch=1, length=POSITIONS)
    wanted = planted.extras["truth"]["heads"][0]
    attention = planted.model.transformer.h[0].attn
    with torch.no_grad():
        hidden = planted.model.transformer.wte(ids) + planted.model.transformer.wpe(torch.arange(POSITIONS))
        query, key, _ = attention.c_attn(planted.model.transformer.h[0].ln_1(hidden))[0].split(64, dim=1)
    for head, truth in enumerate(wanted):
        part = slice(16 * head, 16 * head + 16)
        last = torch.softmax(query[-1, part] @ key[:, part].T / 4, dim=0).numpy()
        np.testing.assert_allclose(last[0], truth.first_key_share(POSITIONS), atol=1e-12)
        np.testing.assert_allclose(last[1:], truth.other_key_share(POSITIONS), atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_the_massive_activation_is_exact(planted, seed):
    _, outputs = _forward(planted.model, _inputs(seed))
    massive = planted.extras["truth"]["massive"]
    for layer, hidden in enumerate(outputs):
        channel = hidden[..., massive.channel]
        wanted = torch.zeros_like(channel)
        if layer in massive.layers:
            wanted[:, massive.position] = massive.value
            assert hidden.abs().amax() == massive.value
            assert massive.value > 1000 * hidden.abs().median()
        assert torch.equal(channel, wanted)


@pytest.mark.parametrize("seed", [1, 2])
def test_the_truth_does_not_depend_on_the_seed(seed):
    planted = models.load("planted", seed=seed, dtype="float64")
    again = models.load("planted", seed=seed, dtype="float64")
    other = models.load("planted", dtype="float64")
    ids = _inputs(0)
    with torch.no_grad():
        assert torch.equal(planted.model(ids).logits, again.model(ids).logits)
        assert not torch.allclose(planted.model(ids).logits, other.model(ids).logits)
    (first, *_), _ = _forward(planted.model, ids)
    np.testing.assert_allclose(first[0, 0].numpy(), HeadTruth(0.9).map(300), atol=1e-12)


def test_the_future_is_not_seen_but_the_past_is(planted):
    ids = _inputs(0, batch=1)
    changed = ids.clone()
    changed[0, 150] = (changed[0, 150] + 1) % VOCABULARY
    with torch.no_grad():
        before, after = planted.model(ids).logits[0], planted.model(changed).logits[0]
    torch.testing.assert_close(before[:150], after[:150])
    assert (before[151:] - after[151:]).abs().amax(dim=1).min() > 1e-5


def test_loading_leaves_the_global_generator_alone():
    state = torch.get_rng_state()
    models.load("planted")
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("share", [None, 0.2, 0.5, 0.9, 1.0])
def test_closed_forms_agree_with_the_map(share):
    truth, length = HeadTruth(share), 50
    queries = np.arange(1, length + 1)
    weights = truth.map(length)
    np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=1e-14)
    np.testing.assert_allclose(truth.entropy(queries), stats.entropy(weights, axis=1), atol=1e-14)
    np.testing.assert_allclose(truth.max_weight(queries), weights.max(axis=1))
    np.testing.assert_array_equal(weights, np.tril(weights))
    if share is None:
        np.testing.assert_allclose(truth.entropy(queries), np.log(queries), atol=1e-14)


TEXTS = ["", "plain", "  two  spaces \n\ttab", "äöü 漢字 🙂", "<x> & 'q' don't ,.!", "\r\n\0\x7f"]


@pytest.mark.parametrize("text", TEXTS)
def test_the_tokenizer_gives_bytes_and_takes_them_back(planted, text):
    ids = planted.tokenizer(text).input_ids
    assert ids == list(text.encode())
    assert planted.tokenizer.decode(ids) == text


def test_special_tokens_are_there_and_never_added(planted):
    tokenizer = planted.tokenizer
    assert [tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id] == [256, 257, 258]
    assert len(tokenizer) == VOCABULARY == planted.model.config.vocab_size
    assert planted.model.config.bos_token_id == 256
    assert tokenizer("a", add_special_tokens=True).input_ids == [97]


def test_bad_seeds_are_refused():
    with pytest.raises(InputError, match="seed"):
        models.load("planted", seed="one")
