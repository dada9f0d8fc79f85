"""Draw the picture of the README from a finished study: python examples/readme_figure.py results/study docs/images."""

import sys
from pathlib import Path

import altair as alt
import pandas as pd

from polariscope.report.figures.probe import sink_map


def main(study: Path, images: Path) -> None:
    """Save the layer × head sink map of the study's language model as a PNG."""
    heads = pd.read_parquet(study / "C11" / "heads.parquet")
    chart = sink_map(heads).chart.properties(width=720).configure(background="white")
    images.mkdir(parents=True, exist_ok=True)
    with alt.data_transformers.enable("default", max_rows=None):
        chart.save(images / "sinks.png", scale_factor=2)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
