"""Tables with intervals from the numbers of each document. Documents are resampled; heads are not independent."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from polariscope.metrics import Sums
from polariscope.probe.documents import Tokens, strings
from polariscope.probe.gathered import FIRST_POSITIONS, Gathered, Intervals

MASSIVE_SIZE, MASSIVE_RATIO = 100.0, 1000.0


def heads_table(found: Gathered, intervals: Intervals) -> pd.DataFrame:
    """One row per layer and head."""
    values = np.stack(found.values)  # (N, L, M, H)
    _, layers, _, heads = values.shape
    bad = np.stack(found.bad_rows)
    table: dict[str, Any] = {"layer": np.repeat(np.arange(layers), heads), "head": np.tile(np.arange(heads), layers)}
    for index, name in enumerate(found.names):
        table |= intervals.columns(name, values[:, :, index])
    table["documents"] = (bad == 0).sum(axis=0).ravel()
    table["bad_rows"] = bad.sum(axis=0).ravel()
    return pd.DataFrame(table)


def document_heads_table(found: Gathered) -> pd.DataFrame:
    """One row per document, layer and head: what the intervals are made from."""
    values = np.stack(found.values)
    documents, layers, _, heads = values.shape
    grid = np.indices((documents, layers, heads)).reshape(3, -1)
    table: dict[str, Any] = dict(zip(("document", "layer", "head"), grid, strict=True))
    table |= {name: values[:, :, index].ravel() for index, name in enumerate(found.names)}
    table["bad_rows"] = np.stack(found.bad_rows).ravel()
    return pd.DataFrame(table)


def document_layers_table(found: Gathered, tokenizer: Any) -> pd.DataFrame:
    """One row per document and layer: its largest activation."""
    rows = [
        {
            "document": document,
            "layer": layer,
            "massive_max": m.largest,
            "massive_median": m.median,
            "massive_ratio": _ratio(m.largest, m.median),
            "massive_channel": m.channel,
            "massive_position": m.position,
            "massive_token_id": token,
        }
        for document, (layers, tokens) in enumerate(zip(found.massive, found.massive_tokens, strict=True))
        for layer, (m, token) in enumerate(zip(layers, tokens, strict=True))
    ]
    table = pd.DataFrame(rows)
    words = {token: strings(tokenizer, [token])[0] for token in table["massive_token_id"].unique()}
    return table.assign(massive_token=table["massive_token_id"].map(words))


def layers_table(by_document: pd.DataFrame, intervals: Intervals) -> pd.DataFrame:
    """One row per layer: means over documents, where the largest of all stands, and the rule of Sun et al."""
    documents = by_document["document"].nunique()
    table: dict[str, Any] = {"layer": np.sort(by_document["layer"].unique())}
    for name in ("massive_max", "massive_median", "massive_ratio"):
        table |= intervals.columns(name, by_document[name].to_numpy().reshape(documents, -1))
    flagged = is_massive(by_document["massive_max"], by_document["massive_median"]).to_numpy()
    table |= intervals.columns("massive_share", flagged.reshape(documents, -1).astype(float))
    size = by_document["massive_max"].fillna(-np.inf).to_numpy().reshape(documents, -1)
    places = size.argmax(axis=0) * size.shape[1] + np.arange(size.shape[1])
    for name in ("massive_channel", "massive_position", "massive_token"):
        table[name] = by_document[name].to_numpy()[places]
    result = pd.DataFrame(table)
    return result.assign(massive_flag=is_massive(result["massive_max"], result["massive_median"]))


def is_massive(largest: Any, median: Any) -> Any:
    """|h| > 100 and |h| ≥ 1000 × the median of |h| (Sun et al. 2024, arXiv:2402.17762)."""
    return (largest > MASSIVE_SIZE) & (largest >= MASSIVE_RATIO * median)


def positions_table(found: Gathered, tokenizer: Any) -> pd.DataFrame:
    """One row per layer and key position."""
    assert found.alpha is not None
    assert found.sinks is not None
    by_head = found.alpha.mean  # (L, H, T)
    layers, _, length = by_head.shape
    known = ~np.isnan(by_head).all(axis=1)
    over_heads = Sums.of(by_head, axis=1).mean
    top = np.where(known, np.where(np.isnan(by_head), -1.0, by_head).max(axis=1), np.nan)
    token, share = _commonest(found.tokens, tokenizer, length)
    layer, position = np.indices((layers, length)).reshape(2, -1)
    return pd.DataFrame(
        {
            "layer": layer,
            "position": position,
            "alpha": over_heads.ravel(),
            "alpha_top_head": top.ravel(),
            "sink_rate": found.sinks.mean.ravel(),
            "token": np.tile(token, layers),
            "token_share": np.tile(share, layers),
        }
    )


def documents_table(found: Gathered, skipped: Sequence[Tokens], by_layer: pd.DataFrame, tokenizer: Any) -> pd.DataFrame:
    """One row per document: the measured ones with their means over all heads, then those that were too short."""
    means = found.means()
    largest = by_layer.groupby("document")["massive_max"].max()
    measured = [
        {
            "document": index,
            "id": tokens.id,
            "n_tokens": tokens.count,
            "status": "measured",
            "first_token": strings(tokenizer, tokens.ids[:1])[0],
            **dict(zip(found.names, means[index], strict=True)),
            "massive_max": float(largest[index]),
            "bad_rows": int(found.bad_rows[index].sum()),
        }
        for index, tokens in enumerate(found.tokens)
    ]
    short = [{"id": tokens.id, "n_tokens": tokens.count, "status": "too short"} for tokens in skipped]
    return pd.DataFrame(measured + short).astype({"document": "Int64", "bad_rows": "Int64"})


def _commonest(tokens: Sequence[Tokens], tokenizer: Any, length: int) -> tuple[list[str], list[float]]:
    """At each of the first positions the commonest token and the share of documents that has it; beyond, "" and NaN."""
    words, shares = [""] * length, [float("nan")] * length
    for position in range(min(length, FIRST_POSITIONS)):
        (token, count), *_ = Counter(t.ids[position] for t in tokens).most_common(1)
        words[position], shares[position] = strings(tokenizer, [token])[0], count / len(tokens)
    return words, shares


def _ratio(largest: float, median: float) -> float:
    return largest / median if median > 0 else float("inf")
