"""A Llama forward pass in true float64 with its attention maps, written apart from the engine under test.

transformers' own eager attention in double precision is no reference: it casts RMSNorm and softmax to float32. Here
only the rotary table is float32, because that is how the model defines it.
"""

import numpy as np
import torch


def maps(model, ids):
    """Yield the attention map of each layer, (heads, T, T), float64."""
    for layer in layers(model, ids):
        yield layer["A"]


def layers(model, ids, weight=None):
    """Yield what each layer does: its map A and logits, (heads, T, T), keys, values, outputs by head, and its output.

    ``weight`` spares the conversion of the weights, see `weights`.
    """
    config, weight = model.config, weight or weights(model)
    cos, sin = rotary_table(config, len(ids))
    hidden = weight["model.embed_tokens.weight"][np.asarray(ids)]
    for layer in range(config.num_hidden_layers):
        part = {name.split(f"layers.{layer}.")[1]: w for name, w in weight.items() if f".layers.{layer}." in name}
        normed = rms_norm(hidden, part["input_layernorm.weight"], config.rms_norm_eps)
        found = attend(config, part, normed, cos, sin)
        mixed = np.concatenate(list(found["outputs"]), axis=-1)
        hidden = hidden + mixed @ part["self_attn.o_proj.weight"].T
        normed = rms_norm(hidden, part["post_attention_layernorm.weight"], config.rms_norm_eps)
        gate = normed @ part["mlp.gate_proj.weight"].T
        up = normed @ part["mlp.up_proj.weight"].T
        hidden = hidden + (gate / (1 + np.exp(-gate)) * up) @ part["mlp.down_proj.weight"].T
        yield {**found, "hidden": hidden}


def weights(model):
    """All weights in float64."""
    return {name: value.detach().double().numpy() for name, value in model.state_dict().items()}


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
    found = {
        "A": np.zeros((heads, length, length)),
        "logits": np.full((heads, length, length), -np.inf),
        "outputs": np.zeros((heads, length, size)),
        "keys": np.zeros((heads, length, size)),
        "values": np.zeros((heads, length, size)),
    }
    for head in range(heads):
        mine, theirs = slice(head * size, (head + 1) * size), head // shared
        common = slice(theirs * size, (theirs + 1) * size)
        key = rotate(k[:, common], cos, sin)
        logits = rotate(q[:, mine], cos, sin) @ key.T / np.sqrt(size)
        logits[np.triu_indices(length, 1)] = -np.inf
        weight = np.exp(logits - logits.max(axis=1, keepdims=True))
        A = weight / weight.sum(axis=1, keepdims=True)
        for name, value in (("A", A), ("logits", logits), ("outputs", A @ v[:, common]), ("keys", key)):
            found[name][head] = value
        found["values"][head] = v[:, common]
    return found


def all_metrics(layer, eps):
    """Every metric of a probe from one layer of `layers`, by its name; each (heads,)."""
    A, length = layer["A"], layer["A"].shape[-1]
    rows, pairs = np.arange(1, length + 1), length * (length + 1) / 2
    first, alpha = A[:, :, 0], A.sum(axis=1) / rows[::-1]
    enough = rows[::-1] >= min(16, max(1, length // 4))
    keys, values, outputs = (np.linalg.norm(layer[name], axis=-1) for name in ("keys", "values", "outputs"))
    squares = (A**2).sum(axis=-1)
    top = layer["logits"].max(axis=-1)
    return head_metrics(A) | {
        "relative_max_weight": A.max(axis=-1).mean(axis=-1),
        "first_key_mean": first.mean(axis=-1),
        "sink_rate": alpha[:, 0] > eps,
        "sink_rate_late": first[:, 4:].mean(axis=-1) > eps,
        "sink_queries": (first > eps).mean(axis=-1),
        "sink_keys": (alpha[:, enough] > eps).sum(axis=-1),
        "sink_keys_all_rows": (A.mean(axis=1) > 0.1).sum(axis=-1),
        "top_key_alpha": alpha[:, enough].max(axis=-1),
        "null_mass": 1 - A.sum(axis=-1).mean(axis=-1),
        "sum_of_squares": squares.mean(axis=-1),
        "share_below_0.001": 1 - (A > 0.001).sum(axis=(1, 2)) / pairs,
        "share_above_0.1": (A > 0.1).sum(axis=(1, 2)) / pairs,
        "lse": (top + np.log(np.exp(layer["logits"] - top[..., None]).sum(axis=-1))).mean(axis=-1),
        "max_logit": top.max(axis=-1),
        "key_norm": keys.mean(axis=-1),
        "first_key_norm": keys[:, 0],
        "value_norm": values.mean(axis=-1),
        "first_value_norm": values[:, 0],
        "output_norm": outputs.mean(axis=-1),
        "first_key_contribution": (first * values[:, :1] / outputs).mean(axis=-1),
    }


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
