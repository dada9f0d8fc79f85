"""A Llama forward pass in true float64 with its attention maps, written apart from the engine under test.

transformers' own eager attention in double precision is no reference: it casts RMSNorm and softmax to float32. Here
only the rotary table is float32, because that is how the model defines it.
"""

import numpy as np
import torch


def maps(model, ids):
    """Yield the attention map of each layer, (heads, T, T), float64."""
    config = model.config
    weight = {name: value.detach().double().numpy() for name, value in model.state_dict().items()}
    cos, sin = rotary_table(config, len(ids))
    hidden = weight["model.embed_tokens.weight"][np.asarray(ids)]
    for layer in range(config.num_hidden_layers):
        part = {name.split(f"layers.{layer}.")[1]: w for name, w in weight.items() if f".layers.{layer}." in name}
        normed = rms_norm(hidden, part["input_layernorm.weight"], config.rms_norm_eps)
        attended, attention = attend(config, part, normed, cos, sin)
        yield attention
        hidden = hidden + attended
        normed = rms_norm(hidden, part["post_attention_layernorm.weight"], config.rms_norm_eps)
        gate = normed @ part["mlp.gate_proj.weight"].T
        up = normed @ part["mlp.up_proj.weight"].T
        hidden = hidden + (gate / (1 + np.exp(-gate)) * up) @ part["mlp.down_proj.weight"].T


def rms_norm(x, gain, eps):
    return gain * x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + eps)


def rotary_table(config, length):
    """cos and sin, (T, d), as the model makes them in float32."""
    size = config.head_dim
    base = config.rope_parameters["rope_theta"]
    frequencies = 1.0 / base ** (torch.arange(0, size, 2, dtype=torch.int64).float() / size)
    angles = torch.outer(torch.arange(length).float(), frequencies)
    angles = torch.cat([angles, angles], dim=-1)
    return angles.cos().double().numpy(), angles.sin().double().numpy()


def rotate(x, cos, sin):
    half = x.shape[-1] // 2
    return x * cos + np.concatenate([-x[..., half:], x[..., :half]], axis=-1) * sin


def attend(config, part, x, cos, sin):
    heads, shared = config.num_attention_heads, config.num_attention_heads // config.num_key_value_heads
    size, length = config.head_dim, len(x)
    q, k, v = (x @ part[f"self_attn.{name}_proj.weight"].T for name in "qkv")
    attention, outputs = np.zeros((heads, length, length)), np.zeros((length, heads * size))
    for head in range(heads):
        mine, theirs = slice(head * size, (head + 1) * size), head // shared
        common = slice(theirs * size, (theirs + 1) * size)
        logits = rotate(q[:, mine], cos, sin) @ rotate(k[:, common], cos, sin).T / np.sqrt(size)
        logits[np.triu_indices(length, 1)] = -np.inf
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
        attention[head] = weights / weights.sum(axis=1, keepdims=True)
        outputs[:, mine] = attention[head] @ v[:, common]
    return outputs @ part["self_attn.o_proj.weight"].T, attention


def head_metrics(attention):
    """Per head: mean entropy of queries 2 to T, mean first-key share, α of the first key; from one layer's map."""
    log = np.log(np.where(attention > 0, attention, 1.0))
    entropy = -(attention * log).sum(axis=-1)[:, 1:].mean(axis=-1)
    normalized = (-(attention * log).sum(axis=-1)[:, 1:] / np.log(np.arange(2, attention.shape[1] + 1))).mean(axis=-1)
    return {
        "entropy": entropy,
        "normalized_entropy": normalized,
        "first_key_share": attention[:, :, 0].mean(axis=-1),
        "max_weight": attention.max(axis=-1).mean(axis=-1),
        "participation": (1 / (attention**2).sum(axis=-1)).mean(axis=-1),
        "last_query_first_key": attention[:, -1, 0],
    }
