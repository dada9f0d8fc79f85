"""The content of ``results.json``."""

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd

from polariscope.metrics import Sums
from polariscope.probe.gathered import Gathered
from polariscope.probe.session import Session
from polariscope.probe.tables import Context


def results(found: Gathered, by_layer: pd.DataFrame, layers: pd.DataFrame, context: Context) -> dict[str, Any]:
    """What was found, in numbers for a whole model."""
    flagged = layers.loc[layers["massive_flag"], "layer"] if len(layers) else []
    return {
        "metrics": _metrics(found, by_layer, context),
        "sink_heads": _sink_heads(found, context),
        "sink_tokens": _sink_tokens(found, context),
        "massive_layers": [int(layer) for layer in flagged],
        "first_tokens": _first_tokens(found, context),
        "bad_rows": int(sum(record.bad_rows.sum() for record in found.records)),
        "nonfinite": int(sum(record.nonfinite.sum() for record in found.records)),
    }


def largest_activations(by_layer: pd.DataFrame, documents: int) -> np.ndarray:
    """The largest activation of each document over all layers, (N,)."""
    if not len(by_layer):
        return np.full(documents, np.nan)
    return by_layer.groupby("document")["massive_max"].max().to_numpy()


def _metrics(found: Gathered, by_layer: pd.DataFrame, context: Context) -> dict[str, dict[str, float]]:
    """Mean over heads, then over documents, of every metric; of the massive activation the largest of all layers."""
    means = found.means()
    record = context.intervals.record
    records = {name: record(means[:, index]) for index, name in enumerate(found.names)}
    return records | {"massive_max": record(largest_activations(by_layer, len(found.records)))}


def _sink_heads(found: Gathered, context: Context) -> dict[str, Any]:
    """Shares of heads whose mean over documents passes the threshold; the sink rate asks document by document."""
    values, kept = found.values(), context.kept()
    shares: dict[str, Any] = {"threshold": found.eps}
    for name in ("first_key_share", "first_key_mean"):
        mean = Sums.of(values[:, :, found.names.index(name)]).mean[kept]
        known = mean[~np.isnan(mean)]
        shares[f"share_by_{name}"] = float((known > found.eps).mean()) if len(known) else float("nan")
    rate = Sums.of(values[:, :, found.names.index("sink_rate")]).mean[kept]
    return {**shares, "heads": int(kept.sum()), "heads_not_always_seeing_the_first_key": int(np.isnan(rate).sum())}


def _sink_tokens(found: Gathered, context: Context) -> list[dict[str, Any]]:
    """On which tokens the strongest keys with α_k > ε sit: share of heads and documents, the commonest first."""
    index, kept = found.names.index("top_key_alpha"), context.kept()
    counts: Counter[tuple[int, bool]] = Counter()
    total = 0
    for record in found.records:
        sinks = kept & (record.values[:, index] > found.eps)
        counts.update(zip(record.top_tokens[sinks].tolist(), (record.top_keys[sinks] == 0).tolist(), strict=True))
        total += int(sinks.sum())
    return [
        {"token": context.words([token])[0], "id": token, "at_position_1": first, "share": times / total}
        for (token, first), times in counts.most_common(8)
    ]


def _first_tokens(found: Gathered, context: Context) -> dict[str, Any]:
    """The first five tokens of the first document, and what stands at position 1 of all of them."""
    ids = found.records[0].first_ids[:5].tolist()
    firsts = Counter(int(record.first_ids[0]) for record in found.records).most_common(5)
    at_first = [{"id": i, "token": context.words([i])[0], "documents": count} for i, count in firsts]
    return {"ids": ids, "tokens": context.words(ids), "at_position_1": at_first}


def of_model(session: Session) -> dict[str, Any]:
    """What was measured, for the result file."""
    body, sites = session.body, session.sites
    config = body.model.config
    engines: dict[str, list[int]] = {}
    for site in sites:
        engines.setdefault(site.engine, []).append(site.layer)
    return {
        "class": type(body.model).__name__,
        "type": config.model_type,
        "kind": body.kind,
        "layers": len(body.layers),
        "heads": max(site.heads for site in sites),
        "kv_heads": max(site.kv_heads for site in sites) or None,
        "attention_calls": len(sites),
        "attentions": list(dict.fromkeys(site.attention for site in sites)),
        "layers_without_attention": [layer.index for layer in session.examination.silent],
        "dtype": str(body.model.dtype).removeprefix("torch."),
        "device": str(body.model.device),
        "attention_replaced": config._attn_implementation,
        "way": session.examination.way,
        "engines": {name: sorted(set(layers)) for name, layers in engines.items()},
    }
