"""Attention calls of every kind, and what an engine must find in them: whole maps in float64, one row at a time."""

import itertools

import torch

from polariscope.scores import get

CASES = {
    "one head": {},
    "grouped heads": {"heads": 6, "kv_heads": 2},
    "one key head": {"heads": 4, "kv_heads": 1},
    "batch": {"batch": 3, "heads": 4, "kv_heads": 2},
    "keys before the first query": {"keys": 50},
    "wide values": {"value_size": 11},
    "window": {"mask": "window"},
    "padding on the left": {"mask": "left", "batch": 2},
    "random mask": {"mask": "random", "heads": 4, "kv_heads": 2},
    "random mask for each head": {"mask": "heads", "heads": 4, "kv_heads": 2},
    "everything visible": {"mask": "all"},
    "soft-cap": {"softcap": 1.5},
    "bias": {"bias": "full", "heads": 2, "kv_heads": 2},
    "bias of keys": {"bias": "keys"},
    "learned sinks": {"sink": True, "heads": 4, "kv_heads": 2},
    "sinks and window": {"sink": True, "mask": "window"},
    "large logits": {"size_of_logits": 3000.0},
    "not causal": {"causal": False, "heads": 4, "kv_heads": 2},
    "another length of keys": {"causal": False, "keys": 11},
    "first keys": {"first": True, "heads": 4, "kv_heads": 2, "batch": 2},
    "huge sinks": {"sink": True, "heads": 4, "kv_heads": 2, "size_of_logits": 50.0},
    "sigmoid": {"scores": "sigmoid", "heads": 4, "kv_heads": 2},
    "identity": {"scores": "identity", "heads": 4, "kv_heads": 2},
    "sparsemax in a window": {"scores": "sparsemax", "heads": 4, "kv_heads": 2, "mask": "window"},
}


def problem(
    *, batch=1, heads=1, kv_heads=1, length=37, keys=None, value_size=8, mask=None, causal=True, softcap=None,
    bias=None, sink=False, scores=None, first=False, size_of_logits=1.0, dtype=torch.float64,
):  # fmt: skip
    """The arguments of a Call, drawn at random."""
    random = torch.Generator().manual_seed(1)
    keys = keys or length

    def draw(*shape):
        return torch.randn(*shape, generator=random, dtype=torch.float64).to(dtype)

    below = lower(length, keys)
    visible = {
        None: None,
        "window": below & below.triu(-5),
        "left": below & (torch.arange(keys) >= torch.tensor([[[[0]]], [[[9]]]])),
        "random": below & (torch.rand(length, keys, generator=random) < 0.6),
        "heads": below & (torch.rand(1, heads, length, keys, generator=random) < 0.6),
        "all": torch.ones(length, keys, dtype=torch.bool),
    }[mask]
    return {
        "query": draw(batch, heads, length, 8) * size_of_logits,
        "key": draw(batch, kv_heads, keys, 8),
        "value": draw(batch, kv_heads, keys, value_size),
        "scaling": 0.4,
        "visible": visible if visible is None or visible.ndim == 4 else visible[None, None],
        "causal": causal,
        "softcap": softcap,
        "bias": {None: None, "full": draw(1, heads, length, keys), "keys": draw(1, 1, 1, keys)}[bias],
        "sink": draw(heads) * size_of_logits if sink else None,
        "scores": None if scores is None else get(scores),
        "first": torch.randint(0, 4, (batch, length), generator=random) if first else None,
    }


def lower(length, keys):
    return torch.ones(length, keys, dtype=torch.bool).tril(keys - length)


def whole_map(given):
    """Logits and map, (B, H, T, S), output, (B, T, H, dv), and mask, row by row in float64."""
    query, key, value = (given[name].double() for name in ("query", "key", "value"))
    batch, heads, length, _ = query.shape
    keys, shared = key.shape[2], heads // key.shape[1]
    everything = lower(length, keys) if given["causal"] else torch.ones(length, keys, dtype=torch.bool)
    visible = (everything[None, None] if given["visible"] is None else given["visible"]).expand(
        batch, heads, length, keys
    )
    attention = torch.zeros(batch, heads, length, keys, dtype=torch.float64)
    logits = torch.full_like(attention, -torch.inf)
    out = torch.zeros(batch, length, heads, value.shape[-1], dtype=torch.float64)
    for b, h in itertools.product(range(batch), range(heads)):
        a = given["scaling"] * query[b, h] @ key[b, h // shared].T
        if given["softcap"]:
            a = given["softcap"] * torch.tanh(a / given["softcap"])
        if given["bias"] is not None:
            a = a + given["bias"].double().expand(batch, heads, length, keys)[b, h]
        for i in range(length):
            seen = visible[b, h, i]
            logits[b, h, i, seen] = a[i, seen]
            attention[b, h, i, seen] = weights(a[i, seen], given, h)
        out[b, :, h] = attention[b, h] @ value[b, h // shared]
    return logits, attention, out, visible


def weights(row, given, head):
    if given["scores"] is not None and len(row):
        return given["scores"](row)
    if given["sink"] is None:
        return torch.softmax(row, dim=0)
    return torch.softmax(torch.cat([row, given["sink"][head : head + 1].double()]), dim=0)[:-1]


def expected_statistics(given, thresholds):
    """What an engine must find, and the output it must give."""
    logits, attention, out, visible = whole_map(given)
    size = attention.abs()
    total = size.sum(-1)
    entropy = torch.where(total > 0, torch.special.entr(size / total[..., None]).sum(-1), torch.nan)
    if given["scores"] is not None and not given["scores"].properties.sums_to_one:
        entropy = torch.full_like(entropy, torch.nan)
    first = torch.zeros(size.shape[0], size.shape[2], dtype=torch.int64) if given["first"] is None else given["first"]
    return out, {
        "total": total,
        "largest": size.amax(-1),
        "first": size.gather(-1, first[:, None, :, None].expand(*size.shape[:3], 1))[..., 0],
        "entropy": entropy,
        "squares": size.square().sum(-1),
        "lse": logits.logsumexp(-1),
        "max_logit": logits.amax(-1),
        "above": torch.stack([(size > t).sum(-1) for t in thresholds]).double(),
        "output_norms": out.norm(dim=-1).transpose(1, 2),
        "columns": size.sum(-2),
        "key_norms": given["key"].double().norm(dim=-1),
        "value_norms": given["value"].double().norm(dim=-1),
        "row_counts": visible.sum(-1),
        "column_counts": visible.sum(-2),
    }
