"""Tiny random transformers of several families, and a tokenizer of bytes for them."""

import torch
import transformers

from polariscope.models.byte_tokenizer import byte_tokenizer

VOCABULARY = 259
_SHAPE = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 48,
    "max_position_embeddings": 300,
    "bos_token_id": 256,
    "eos_token_id": 257,
    "pad_token_id": 258,
}
_GPT2 = {"n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": 300}
_NEOX = {name: value for name, value in _SHAPE.items() if name != "num_key_value_heads"}
CONFIGS = {
    "llama": lambda: transformers.LlamaConfig(**_SHAPE),
    "gpt2": lambda: transformers.GPT2Config(
        **_GPT2, **{k: v for k, v in _SHAPE.items() if "token" in k or "vocab" in k}
    ),
    "gpt_neox": lambda: transformers.GPTNeoXConfig(**_NEOX),
    "mistral, window 7": lambda: transformers.MistralConfig(**_SHAPE, sliding_window=7),
    "gemma2, soft-cap and window 7": lambda: transformers.Gemma2Config(
        **_SHAPE, head_dim=8, sliding_window=7, attn_logit_softcapping=1.5
    ),
    "gpt_oss, learned sinks and window 7": lambda: transformers.GptOssConfig(
        **_SHAPE, head_dim=8, num_local_experts=4, num_experts_per_tok=2, sliding_window=7, rope_parameters=_ROPE
    ),
}
_ROPE = {"rope_type": "default", "rope_theta": 10000.0}


def build(family, dtype=torch.float32, seed=0, attention=None):
    """A model of the family in evaluation mode, with weights large enough that its heads are not uniform."""
    random = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(devices=[]):
        model = transformers.AutoModelForCausalLM.from_config(CONFIGS[family](), attn_implementation=attention)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=random, dtype=torch.float64)
            gain = "norm" in name or "ln_" in name
            parameter.copy_(1 + 0.1 * noise if gain and name.endswith("weight") else 0.3 * noise)
    return model.to(dtype).eval()


def tokenizer(length=300):
    return byte_tokenizer(length)


def text(length, seed=0):
    """Random words of letters, ``length`` characters, so as many bytes."""
    random = torch.Generator().manual_seed(seed)
    letters = torch.randint(97, 123, (length,), generator=random).tolist()
    return "".join(" " if letter % 5 == 0 else chr(letter) for letter in letters)


def ids(length, seed=0):
    return list(text(length, seed).encode())
