"""Charts of a probed model: the sink map, entropy per layer, massive activations per layer."""

from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd

from polariscope.report._page import Figure
from polariscope.report.figures._theme import INK, log_y, themed

MEASURES = {
    "first_key_share": "share of weight on the first token",
    "sink_rate": "sink rate",
    "normalized_entropy": "normalized entropy",
    "relative_max_weight": "mean largest weight",
}


def study_probe(folder: Path) -> list[Figure]:
    """All charts of a probe's result folder."""
    heads = pd.read_parquet(folder / "heads.parquet")
    layers = pd.read_parquet(folder / "layers.parquet")
    return [sink_map(heads), entropy_per_layer(heads), massive(layers)]


def _tooltip(fields: dict[str, str]) -> list[Any]:
    tips: list[Any] = [alt.Tooltip("layer:O"), alt.Tooltip("head:O")]
    return tips + [alt.Tooltip(f"{name}:Q", title=title, format=".3f") for name, title in fields.items()]


def sink_map(heads: pd.DataFrame) -> Figure:
    """Layer × head, coloured by the share of attention on the first token."""
    chart = (
        alt.Chart(heads[["layer", "head", *MEASURES]])
        .mark_rect()
        .encode(
            x=alt.X("layer:O", title="layer").axis(labelAngle=0, labelOverlap=True),
            y=alt.Y("head:O", title="head"),
            color=alt.Color("first_key_share:Q", title="share of weight on the first token")
            .scale(scheme="viridis", domain=[0, 1])
            .legend(gradientLength=180, titleLimit=400),
            tooltip=_tooltip(MEASURES),
        )
    )
    count = int(heads["head"].nunique())
    return Figure(
        "Where the sinks are",
        "One cell per head; bright heads spend their attention on the first token. Hover a cell for its numbers.",
        themed(chart, height=max(120, min(22 * count, 640))),
        "Heat map, layer by head, of the share of attention on the first token.",
    )


def entropy_per_layer(heads: pd.DataFrame) -> Figure:
    """Normalized entropy of every head, with its interval, and the mean of the layer."""
    table = heads[["layer", "head", "normalized_entropy", "normalized_entropy_low", "normalized_entropy_high"]]
    x = alt.X("layer:Q", title="layer").scale(nice=False).axis(tickMinStep=1, format="d")
    y = alt.Y("normalized_entropy:Q", title="normalized entropy").scale(domain=[0, 1])
    base = alt.Chart(table)
    shown = {
        "normalized_entropy": "normalized entropy",
        "normalized_entropy_low": "interval from",
        "normalized_entropy_high": "interval to",
    }
    bars = base.mark_rule(opacity=0.35, color="#4c78a8").encode(
        x=x, y=alt.Y("normalized_entropy_low:Q"), y2="normalized_entropy_high:Q"
    )
    points = base.mark_circle(size=34, opacity=0.75, color="#4c78a8").encode(x=x, y=y, tooltip=_tooltip(shown))
    mean = base.mark_line(color=INK, strokeWidth=1.5).encode(x=x, y=alt.Y("mean(normalized_entropy):Q"))
    return Figure(
        "Entropy per layer",
        "One dot per head with its 95 % interval over documents; the line is the mean over heads. 1 is attention "
        "spread evenly over all visible tokens, 0 is attention on a single one.",
        themed(bars + points + mean),
        "Dot chart of normalized entropy per layer, one dot per head.",
    )


def massive(layers: pd.DataFrame) -> Figure:
    """Largest and median absolute activation per layer output."""
    table = layers[["layer", "massive_max", "massive_median", "massive_channel", "massive_position", "massive_token"]]
    long = table.melt(id_vars=["layer", "massive_channel", "massive_position", "massive_token"], var_name="what")
    long["what"] = long["what"].map({"massive_max": "largest |h|", "massive_median": "median |h|"})
    chart = (
        alt.Chart(long)
        .mark_line(point=True, strokeWidth=2)
        .encode(
            x=alt.X("layer:Q", title="layer").scale(nice=False).axis(tickMinStep=1, format="d"),
            y=log_y("value", "absolute activation |h|"),
            color=alt.Color("what:N", title=None).scale(scheme="tableau10"),
            tooltip=[
                "layer:Q",
                "what:N",
                alt.Tooltip("value:Q", format=".4g"),
                alt.Tooltip("massive_channel:Q", title="channel of the largest"),
                alt.Tooltip("massive_position:Q", title="position of the largest"),
                alt.Tooltip("massive_token:N", title="token of the largest"),
            ],
        )
    )
    return Figure(
        "Massive activations",
        "The largest and the median absolute value of each layer's output. Where the upper line is a thousand times "
        "the lower one, a few channels carry an outsized value, usually on the same token that acts as the sink.",
        themed(chart),
        "Line chart of the largest and the median activation per layer, on a logarithmic axis.",
    )
