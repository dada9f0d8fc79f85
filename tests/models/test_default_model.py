"""The default model as it is: its shape, its text, and that keeping a converted copy changes nothing."""

import pytest
import torch

from polariscope import models
from polariscope.models import fetch
from polariscope.models.gguf_file import dequantized

pytestmark = pytest.mark.real_model


@pytest.fixture(scope="module")
def loaded():
    return models.load("smollm2-135m")


def test_its_shape(loaded):
    config = loaded.model.config
    shape = (config.num_hidden_layers, config.num_attention_heads, config.num_key_value_heads, config.head_dim)
    assert shape == (30, 9, 3, 64)
    assert not loaded.model.training
    assert (loaded.dtype, loaded.checkpoint_dtype) == ("float32", "Q4_1 (GGUF)")
    assert "quantization_config" not in config.to_dict()


def test_it_knows_english(loaded):
    ids = loaded.tokenizer("The capital of France is", return_tensors="pt").input_ids
    with torch.no_grad():
        best = loaded.model(ids).logits[0, -1].argmax()
    assert loaded.tokenizer.decode([best]).strip() == "Paris"


def test_its_tokenizer_round_trips(loaded):
    text = "Two  spaces, a tab\t, ünïcödé 漢字\n\nand code: x[i] += 1"
    ids = loaded.tokenizer(text).input_ids
    assert loaded.tokenizer.decode(ids) == text
    assert loaded.tokenizer.bos_token_id == loaded.model.config.bos_token_id
    assert ids[0] != loaded.tokenizer.bos_token_id


def test_the_converted_copy_has_the_logits_of_the_gguf_file(loaded):
    direct = dequantized(fetch.default_gguf(), torch.float32)
    ids = loaded.tokenizer("Attention, please: one short line.", return_tensors="pt").input_ids
    with torch.no_grad():
        assert torch.equal(loaded.model(ids).logits, direct(ids).logits)
