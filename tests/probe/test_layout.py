"""A document gives the same numbers alone, in a batch, padded on either side and packed."""

import numpy as np
import pytest
import tiny_models
import torch
import transformers

from polariscope.errors import InputError
from polariscope.probe.documents import Tokens
from polariscope.probe.layout import Layout
from polariscope.probe.session import prepare
from polariscope.probe.statistics import Place, metric_names

EPS = (0.3, 0.05)
LENGTHS = (24, 17, 20)
DOCUMENTS = [tiny_models.ids(length, seed=index) for index, length in enumerate(LENGTHS)]
PAD = 258
# The experts of gpt-oss have no float64 kernel.
DTYPES = {"gpt_oss, learned sinks and window 7": torch.float32}


def bert():
    config = transformers.BertConfig(
        vocab_size=tiny_models.VOCABULARY,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=48,
        max_position_embeddings=300,
    )
    torch.manual_seed(0)
    return transformers.BertModel(config, add_pooling_layer=False).double().eval()


def bloom():
    config = transformers.BloomConfig(vocab_size=tiny_models.VOCABULARY, hidden_size=32, n_layer=2, n_head=4)
    torch.manual_seed(0)
    return transformers.BloomForCausalLM(config).eval()  # in float64 its own masked rows are NaN


MODELS = {
    **{
        name: lambda name=name: tiny_models.build(name, DTYPES.get(name, torch.float64)) for name in tiny_models.CONFIGS
    },
    "bert": bert,
    "bloom": bloom,
}
# Encoders see everything, BLOOM takes no positions, gpt-oss makes its mask without them.
UNPACKED = ("bert", "bloom", "gpt_oss, learned sinks and window 7")
LAYOUTS = {
    "batch": [[(0, 0)], [(0, 0)]],
    "right": [[(0, 0)], [(1, 0)], [(2, 0)]],
    "left": [[(0, 2)], [(1, 9)], [(2, 6)]],
    "middle": [[(0, 1)], [(1, 4)], [(2, 0)]],
    "packed": [[(0, 0), (1, 24)], [(2, 0), (1, 20)]],
}


def batch_of(rows):
    """Token ids and places from rows of (document, start)."""
    width = max(start + LENGTHS[document] for row in rows for document, start in row)
    ids = torch.full((len(rows), width), PAD)
    places, documents = [], []
    for index, row in enumerate(rows):
        for document, start in row:
            stop = start + LENGTHS[document]
            ids[index, start:stop] = torch.tensor(DOCUMENTS[document])
            places.append(Place(index, start, stop))
            documents.append(document)
    return ids, places, documents


def session(model):
    return prepare(model, tiny_models.tokenizer(), Tokens("0", DOCUMENTS[0], LENGTHS[0]), EPS)


def assert_same(one, other):
    names = metric_names(EPS)
    for index, name in enumerate(names):
        np.testing.assert_allclose(one.values[:, index], other.values[:, index], rtol=1e-5, atol=1e-6, err_msg=name)
    np.testing.assert_allclose(one.alpha, other.alpha, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(one.top_keys, other.top_keys)
    for left, right in zip(one.massive, other.massive, strict=True):
        assert (left.positions, left.channels) == (right.positions, right.channels)
        np.testing.assert_allclose(left.values, right.values, rtol=1e-5)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", MODELS)
def test_alone_in_a_batch_padded_and_packed(name, layout):
    model = MODELS[name]()
    ids, places, documents = batch_of(LAYOUTS[layout])
    with session(model).open() as measure:
        alone = [measure(Tokens(str(index), tokens, len(tokens)))[1] for index, tokens in enumerate(DOCUMENTS)]
        if layout == "packed" and name in UNPACKED:
            with pytest.raises(InputError, match=r"see one another|takes no position_ids"):
                measure.batch(ids, places)
            return
        found = measure.batch(ids, places)
        again = measure(Tokens("0", DOCUMENTS[0], LENGTHS[0]))[1]
    assert_same(again, alone[0])
    for measured, document in zip(found, documents, strict=True):
        assert_same(measured, alone[document])


@pytest.mark.parametrize(
    "places", [[Place(0, 0, 9)], [Place(2, 0, 4)], [Place(0, 4, 4)], [Place(0, 0, 4), Place(0, 3, 6)]]
)
def test_places_must_fit(places):
    with pytest.raises(InputError, match="place"):
        Layout.of(places, (2, 8))
