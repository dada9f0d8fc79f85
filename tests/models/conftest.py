"""Small real checkpoints, made here: a folder in Hugging Face form and a GGUF file of the same weights."""

import gguf
import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from polariscope.models.byte_tokenizer import byte_tokenizer

HEADS, WIDTH, LAYERS = 4, 32, 2


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch, request):
    """An empty cache for every test but those of the real model."""
    if "real_model" not in request.keywords:
        monkeypatch.setenv("POLARISCOPE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="session")
def llama():
    """A random Llama for the byte tokenizer and one token more (a GGUF vocabulary needs a merge)."""
    config = LlamaConfig(
        vocab_size=260,
        hidden_size=WIDTH,
        intermediate_size=64,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=2,
        max_position_embeddings=128,
        bos_token_id=256,
        eos_token_id=257,
        rms_norm_eps=1e-5,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return LlamaForCausalLM(config).eval()


@pytest.fixture
def folder(llama, tmp_path):
    """The model and its tokenizer, saved by transformers."""
    llama.save_pretrained(tmp_path / "checkpoint")
    byte_tokenizer(128).save_pretrained(tmp_path / "checkpoint")
    return tmp_path / "checkpoint"


@pytest.fixture
def gguf_file(llama, tmp_path):
    """The same weights as a GGUF file."""
    path = tmp_path / "tiny.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    _write_settings(writer, llama.config)
    _write_vocabulary(writer)
    for name, tensor in llama.state_dict().items():
        writer.add_tensor(_gguf_name(name), _gguf_order(name, tensor.numpy(), llama.config))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _write_settings(writer, config):
    writer.add_name("tiny")
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_rope_dimension_count(config.head_dim)
    writer.add_vocab_size(config.vocab_size)


def _write_vocabulary(writer):
    tokenizer = byte_tokenizer(128)
    tokens = [*tokenizer.convert_ids_to_tokens(range(len(tokenizer))), "he"]
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(tokens)
    writer.add_token_types([gguf.TokenType.NORMAL] * 256 + [gguf.TokenType.CONTROL] * 3 + [gguf.TokenType.NORMAL])
    writer.add_token_merges(["h e"])
    writer.add_bos_token_id(256)
    writer.add_eos_token_id(257)
    writer.add_pad_token_id(258)


def _gguf_name(name):
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, LAYERS)
    return names.get_name(name, try_suffixes=(".weight",))


def _gguf_order(name, weight, config):
    """llama.cpp keeps the two halves of a rotary pair side by side; transformers keeps them half a head apart."""
    heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
    for part, count in heads.items():
        if part in name:
            return np.ascontiguousarray(
                weight.reshape(count, 2, -1, weight.shape[1]).swapaxes(1, 2).reshape(weight.shape)
            )
    return weight
