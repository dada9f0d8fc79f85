"""The content of ``results.json``."""

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd

from polariscope.metrics import Sums
from polariscope.probe.body import Body
from polariscope.probe.documents import strings
from polariscope.probe.gathered import Gathered, Intervals


def results(
    found: Gathered, by_layer: pd.DataFrame, layers: pd.DataFrame, intervals: Intervals, tokenizer: Any
) -> dict[str, Any]:
    """What was found, in numbers for a whole model."""
    return {
        "metrics": _metrics(found, by_layer, intervals),
        "sink_heads": _sink_heads(found),
        "massive_layers": [int(layer) for layer in layers.loc[layers["massive_flag"], "layer"]],
        "first_tokens": _first_tokens(found, tokenizer),
        "bad_rows": int(sum(bad.sum() for bad in found.bad_rows)),
    }


def _metrics(found: Gathered, by_layer: pd.DataFrame, intervals: Intervals) -> dict[str, dict[str, float]]:
    """Mean over heads, then over documents, of every metric; of the massive activation the largest of all layers."""
    means = found.means()
    records = {name: intervals.record(means[:, index]) for index, name in enumerate(found.names)}
    largest = by_layer.groupby("document")["massive_max"].max().to_numpy()
    return records | {"massive_max": intervals.record(largest)}


def _sink_heads(found: Gathered) -> dict[str, float]:
    """Shares of heads whose mean over documents passes the threshold; the sink rate asks document by document."""
    values = np.stack(found.values)
    shares = {}
    for name in ("first_key_share", "first_key_mean"):
        samples = values[:, :, found.names.index(name)]
        mean = Sums.of(samples).mean
        shares[f"share_by_{name}"] = float((mean > found.eps).mean())
    return {"threshold": found.eps, **shares}


def _first_tokens(found: Gathered, tokenizer: Any) -> dict[str, Any]:
    """The first five tokens of the first document, and what stands at position 1 of all of them."""
    ids = found.tokens[0].ids[:5]
    firsts = Counter(tokens.ids[0] for tokens in found.tokens).most_common(5)
    at_first = [{"id": i, "token": strings(tokenizer, [i])[0], "documents": count} for i, count in firsts]
    return {"ids": ids, "tokens": strings(tokenizer, ids), "at_position_1": at_first}


def of_model(body: Body) -> dict[str, Any]:
    """What was measured, for the result file."""
    config = body.model.config
    text = config.get_text_config(decoder=True)
    return {
        "class": type(body.model).__name__,
        "type": config.model_type,
        "layers": len(body.layers),
        "heads": text.num_attention_heads,
        "kv_heads": getattr(text, "num_key_value_heads", None) or text.num_attention_heads,
        "dtype": str(body.model.dtype).removeprefix("torch."),
        "device": str(body.model.device),
        "attention_replaced": config._attn_implementation,
        "engine": "query blocks",
    }
