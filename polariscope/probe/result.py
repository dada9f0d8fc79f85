"""What a probe found, and its files."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from polariscope.files import write_json

TABLES = ("heads", "layers", "positions", "documents", "activations", "document_heads", "document_layers")


@dataclass(frozen=True)
class ProbeResult:
    """What a probe found. Layers, heads, positions and channels are counted from 0.

    Args:
        heads: one row per layer and head, every metric with ``_low`` and ``_high``.
        layers: one row per layer: massive activations.
        positions: one row per layer and key position: mean attention received.
        documents: one row per document, measured or too short.
        activations: one row per document, layer and rank: the largest activations and where they stand.
        document_heads: one row per document, layer and head; the intervals can be made again from it.
        document_layers: one row per document and layer.
        summary: the content of ``results.json``.
    """

    heads: pd.DataFrame
    layers: pd.DataFrame
    positions: pd.DataFrame
    documents: pd.DataFrame
    activations: pd.DataFrame
    document_heads: pd.DataFrame
    document_layers: pd.DataFrame
    summary: Mapping[str, Any]

    def save(self, folder: Path | str) -> None:
        """Write ``results.json`` and one Parquet file per table into an existing folder."""
        for name in TABLES:
            getattr(self, name).to_parquet(Path(folder) / f"{name}.parquet", index=False)
        write_json(Path(folder) / "results.json", self.summary)
