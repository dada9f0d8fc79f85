"""Tables of layers: massive activations, and what kind of layer each is."""

from typing import Any

import numpy as np
import pandas as pd

from polariscope.probe.activations import TOP
from polariscope.probe.gathered import Gathered
from polariscope.probe.tables import Context

MASSIVE_SIZE, MASSIVE_RATIO = 100.0, 1000.0


def document_layers_table(found: Gathered, context: Context) -> pd.DataFrame:
    """One row per document and layer: its largest activation."""
    table = _by_document(found, context)
    largest = np.concatenate([np.abs(record.massive_values[:, 0]) for record in found.records])
    median = np.concatenate([record.massive_medians for record in found.records])
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(np.isnan(largest), np.nan, largest / median)
    table |= {"massive_max": largest, "massive_median": median, "massive_ratio": ratio}
    for name in ("channel", "position"):
        table[f"massive_{name}"] = np.concatenate([getattr(r, f"massive_{name}s")[:, 0] for r in found.records])
    table["massive_token_id"] = np.concatenate([record.massive_tokens[:, 0] for record in found.records])
    table["nonfinite"] = np.concatenate([record.nonfinite for record in found.records])
    table["massive_token"] = context.words.column(table["massive_token_id"])
    return pd.DataFrame(table)


def activations_table(found: Gathered, context: Context) -> pd.DataFrame:
    """One row per document, layer and rank: the largest entries of |h| with their signs, and where they stand."""
    table: dict[str, Any] = {name: np.repeat(column, TOP) for name, column in _by_document(found, context).items()}
    count = len(table["layer"]) // TOP
    table["rank"] = np.tile(np.arange(1, TOP + 1), count)
    table["value"] = np.concatenate([record.massive_values.ravel() for record in found.records])
    for name in ("position", "channel", "token"):
        values = np.concatenate([getattr(record, f"massive_{name}s").ravel() for record in found.records])
        table[name if name != "token" else "token_id"] = values
    table["token"] = context.words.column(table["token_id"])
    return pd.DataFrame(table).dropna(subset="value")


def layers_table(by_document: pd.DataFrame, context: Context) -> pd.DataFrame:
    """One row per layer that ran: means over documents, where the largest of all stands, and the rule of Sun et al."""
    documents = by_document["document"].nunique()
    if not documents:
        return pd.DataFrame()

    def samples(column: Any) -> np.ndarray:
        return np.asarray(column).reshape(documents, -1)

    table: dict[str, Any] = {
        name: samples(by_document[name])[0] for name in ("layer", "stack", "type", "attention", "engine")
    }
    for name in ("massive_max", "massive_median", "massive_ratio"):
        table |= context.intervals.columns(name, samples(by_document[name]))
    flagged = is_massive(by_document["massive_max"], by_document["massive_median"]).to_numpy()
    table |= context.intervals.columns("massive_share", samples(flagged).astype(float))
    size = samples(by_document["massive_max"].fillna(-np.inf))
    places = size.argmax(axis=0) * size.shape[1] + np.arange(size.shape[1])
    for name in ("massive_channel", "massive_position", "massive_token"):
        table[name] = by_document[name].to_numpy()[places]
    table["nonfinite"] = samples(by_document["nonfinite"]).sum(axis=0)
    result = pd.DataFrame(table)
    return result.assign(massive_flag=is_massive(result["massive_max"], result["massive_median"]))


def is_massive(largest: Any, median: Any) -> Any:
    """|h| > 100 and |h| ≥ 1000 × the median of |h| (Sun et al. 2024, arXiv:2402.17762)."""
    return (largest > MASSIVE_SIZE) & (largest >= MASSIVE_RATIO * median)


def _by_document(found: Gathered, context: Context) -> dict[str, Any]:
    """The columns that name a document's layer, and say what attends in it: nothing, or which engine measured it."""
    layers = [context.body.layers[index] for index in found.records[0].massive_layers]
    parts = [{id(part) for part in layer.module.modules()} for layer in layers]
    inside = [[site for site in context.sites if id(site.module) in part] for part in parts]
    count = len(found.records)
    return {
        "document": np.repeat(np.arange(count), len(layers)),
        "layer": np.tile([layer.index for layer in layers], count),
        "stack": np.tile(np.array([layer.stack for layer in layers], dtype=object), count),
        "type": np.tile(np.array([layer.type for layer in layers], dtype=object), count),
        "attention": np.tile(np.array([_listed(s.attention for s in sites) for sites in inside], dtype=object), count),
        "engine": np.tile(np.array([_listed(s.engine for s in sites) for sites in inside], dtype=object), count),
    }


def _listed(words: Any) -> str:
    return ", ".join(dict.fromkeys(words)) or "not applicable"
