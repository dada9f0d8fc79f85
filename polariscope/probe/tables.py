"""Tables of heads and documents, with intervals, from the records of all documents."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from polariscope.metrics import Sums
from polariscope.probe.body import Body
from polariscope.probe.documents import Vocabulary
from polariscope.probe.gathered import FIRST_POSITIONS, Gathered
from polariscope.probe.intervals import Intervals
from polariscope.probe.sites import Site


@dataclass(frozen=True)
class Context:
    """What tables are made of besides the numbers.

    Args:
        body: the model.
        sites: the measured calls.
        words: from token ids to strings.
        intervals: how they are made.
        heads: which heads to show; None: all.
    """

    body: Body
    sites: tuple[Site, ...]
    words: Vocabulary
    intervals: Intervals
    heads: frozenset[int] | None = None

    def kept(self) -> np.ndarray:
        """Which cells of a table (S, H) are heads that exist and are wanted, boolean."""
        most = max(site.heads for site in self.sites)
        wanted = [self.heads is None or head in self.heads for head in range(most)]
        return np.array([[head < site.heads and wanted[head] for head in range(most)] for site in self.sites])


def heads_table(found: Gathered, context: Context) -> pd.DataFrame:
    """One row per attention call and head."""
    values, kept = found.values(), context.kept()  # (N, S, M, H), (S, H)
    bad = np.stack([record.bad_rows for record in found.records])
    table = _places(context, kept)
    samples = values.swapaxes(2, 3)[:, kept]  # (N, cells, M)
    for index, name in enumerate(found.names):
        table |= context.intervals.columns(name, samples[:, :, index])
    table |= _commonest_keys(found, context, kept)
    table["documents"] = (bad == 0).sum(axis=0)[kept]
    table["bad_rows"] = bad.sum(axis=0)[kept]
    return pd.DataFrame(table)


def document_heads_table(found: Gathered, context: Context) -> pd.DataFrame:
    """One row per document, attention call and head: what the intervals are made from."""
    kept, count = context.kept(), len(found.records)
    places = _places(context, kept)
    cells = int(kept.sum())
    table: dict[str, Any] = {"document": np.repeat(np.arange(count), cells)}
    table |= {name: np.tile(column, count) for name, column in places.items() if name in ("layer", "head", "attention")}
    samples = found.values().swapaxes(2, 3)[:, kept]
    table |= {name: samples[:, :, index].ravel() for index, name in enumerate(found.names)}
    for name in ("top_keys", "top_tokens", "bad_rows"):
        table[name.replace("keys", "key").replace("tokens", "token_id")] = np.concatenate(
            [getattr(record, name)[kept] for record in found.records]
        )
    table["top_token"] = context.words.column(table["top_token_id"])
    return pd.DataFrame(table)


def positions_table(found: Gathered, context: Context) -> pd.DataFrame:
    """One row per attention call and key position."""
    assert found.alpha is not None
    assert found.sinks is not None
    assert found.value_norms is not None
    by_head = found.alpha.mean  # (S, H, T)
    count, _, length = by_head.shape
    known = ~np.isnan(by_head).all(axis=1)
    over_heads = Sums.of(by_head, axis=1).mean
    top = np.where(known, np.where(np.isnan(by_head), -1.0, by_head).max(axis=1), np.nan)
    token, share = _commonest(found, context.words, length)
    norms = found.value_norms.mean
    return pd.DataFrame(
        {
            "layer": np.repeat([site.layer for site in context.sites], length),
            "attention": np.repeat([site.attention for site in context.sites], length),
            "position": np.tile(np.arange(length), count),
            "alpha": over_heads.ravel(),
            "alpha_top_head": top.ravel(),
            "sink_rate": found.sinks.mean.ravel(),
            "value_norm": norms.ravel(),
            "contribution": (over_heads * norms).ravel(),
            "token": np.tile(token, count),
            "token_share": np.tile(share, count),
        }
    )


def documents_table(
    found: Gathered, skipped: Sequence[tuple[str, int]], largest: np.ndarray, words: Vocabulary
) -> pd.DataFrame:
    """One row per document: the measured ones with their means over all heads, then those that were too short.

    Args:
        found: the records.
        skipped: id and number of tokens of the short ones.
        largest: the largest activation of each measured document, (N,).
        words: from token ids to strings.
    """
    means = found.means()
    measured = [
        {
            "document": index,
            "id": record.id,
            "n_tokens": record.count,
            "status": "measured",
            "first_token": words([int(record.first_ids[0])])[0],
            **dict(zip(found.names, means[index], strict=True)),
            "massive_max": float(largest[index]),
            "bad_rows": int(record.bad_rows.sum()),
            "nonfinite": int(record.nonfinite.sum()),
        }
        for index, record in enumerate(found.records)
    ]
    short = [{"id": name, "n_tokens": count, "status": "too short"} for name, count in skipped]
    return pd.DataFrame(measured + short).astype({"document": "Int64", "bad_rows": "Int64", "nonfinite": "Int64"})


def _places(context: Context, kept: np.ndarray) -> dict[str, Any]:
    """The columns that name a head."""
    number, head = np.nonzero(kept)
    sites = [context.sites[index] for index in number]
    groups = [h // (site.heads // site.kv_heads) if site.kv_heads else -1 for site, h in zip(sites, head, strict=True)]
    return {
        "layer": np.array([site.layer for site in sites]),
        "head": head,
        "attention": np.array([site.attention for site in sites], dtype=object),
        "kv_head": np.array(groups),
        "engine": np.array([site.engine for site in sites], dtype=object),
    }


def _commonest_keys(found: Gathered, context: Context, kept: np.ndarray) -> dict[str, Any]:
    """Where a head's strongest key stands most often, in what share of documents, and on which token most often."""
    keys = np.stack([record.top_keys[kept] for record in found.records])
    tokens = np.stack([record.top_tokens[kept] for record in found.records])
    place = [Counter(column.tolist()).most_common(1)[0] for column in keys.T]
    token = [Counter(column.tolist()).most_common(1)[0] for column in tokens.T]
    return {
        "top_key": [position for position, _ in place],
        "top_key_documents": [times / len(keys) for _, times in place],
        "top_token": context.words([name for name, _ in token]),
        "top_token_documents": [times / len(keys) for _, times in token],
    }


def _commonest(found: Gathered, words: Vocabulary, length: int) -> tuple[list[str], list[float]]:
    """At each of the first positions the commonest token and the share of documents that has it; beyond, "" and NaN."""
    strings, shares = [""] * length, [float("nan")] * length
    for position in range(min(length, FIRST_POSITIONS)):
        (token, times), *_ = Counter(int(r.first_ids[position]) for r in found.records).most_common(1)
        strings[position], shares[position] = words([token])[0], times / len(found.records)
    return strings, shares
