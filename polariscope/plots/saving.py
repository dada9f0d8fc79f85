"""Saving charts as PNG, SVG or HTML that is readable on white."""

from pathlib import Path
from typing import Any

import altair as alt

from polariscope.errors import InputError
from polariscope.files import check_output_file
from polariscope.plots._look import INK, PAPER

KINDS = (".png", ".svg", ".html")
PAGE_WIDTH = 640
"""Of charts that are as wide as a page, in pixels."""


def save(chart: Any, path: Path | str, scale: float = 2.0) -> Path:
    """Write a chart as PNG, SVG or HTML, by the ending of the path, in dark ink on white.

    Args:
        chart: an Altair chart, from here or from the report, whose charts take ink, background and width from the page.
        path: with the ending .png, .svg or .html. An HTML file works offline; it holds the programs that draw it.
        scale: pixels of a PNG for each pixel of the chart.

    Returns:
        the file written.

    Raises:
        InputError: for what is not a chart, for other endings, and for places that cannot be written.
    """
    if not isinstance(chart, alt.TopLevelMixin):
        raise InputError(
            "chart to save", got=type(chart).__name__, expected="an Altair chart", fix="draw one with polariscope.plots"
        )
    kind = Path(path).suffix.lower()
    if kind not in KINDS:
        raise InputError("output path", got=repr(str(path)), expected="an ending " + ", ".join(KINDS), fix="add .png")
    target = check_output_file(Path(path))
    with alt.data_transformers.enable("default", max_rows=None):
        spec = _on_white(chart.to_dict())
    drawn = alt.Chart.from_dict(spec)
    how: dict[str, Any] = {".png": {"scale_factor": scale}, ".html": {"inline": True}}
    drawn.save(str(target), format=kind[1:], **how.get(kind, {}))  # pyright: ignore[reportArgumentType]
    return target


def _on_white(spec: Any) -> dict[str, Any]:
    """The specification with ink, background and width of its own where it took them from a page."""
    inked = _inked(spec)
    inked.setdefault("config", {})["background"] = PAPER
    if inked.get("width") == "container":
        inked["width"] = PAGE_WIDTH
    return inked


def _inked(part: Any) -> Any:
    if isinstance(part, dict):
        return {key: value if key in ("datasets", "values") else _inked(value) for key, value in part.items()}
    if isinstance(part, list):
        return [_inked(value) for value in part]
    return INK if part == "currentColor" else part
