"""The page's parts and its HTML: figures, tables, sections, and one template that escapes every string."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

import altair as alt
import jinja2
import vl_convert


@dataclass(frozen=True)
class Figure:
    """A chart with its title, a caption that says how to read it, and a one-line description for screen readers."""

    title: str
    caption: str
    chart: Any
    description: str

    def spec(self) -> dict[str, Any]:
        """The Vega-Lite specification with its data inlined, of any length."""
        with alt.data_transformers.enable("default", max_rows=None):
            return self.chart.properties(description=self.description).to_dict()


@dataclass(frozen=True)
class Table:
    """Rows of ready strings under a header."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Section:
    """One experiment or result folder.

    Args:
        anchor: the id in the page.
        title: its headline.
        badge: a verdict, or "".
        paragraphs: (label, text) pairs in reading order; an empty label means plain text.
        figures: charts.
        tables: tables.
        command: what reproduces it, or "".
    """

    anchor: str
    title: str
    badge: str = ""
    paragraphs: Sequence[tuple[str, str]] = ()
    figures: Sequence[Figure] = ()
    tables: Sequence[Table] = ()
    command: str = ""


@dataclass(frozen=True)
class Page:
    """The whole report; ``claims`` is the table on top, empty when no study is shown."""

    title: str
    lead: Sequence[str]
    sections: Sequence[Section]
    claims: Sequence[Mapping[str, str]] = ()
    settings: Sequence[tuple[str, str]] = field(default_factory=tuple)


def render(page: Page) -> str:
    """The page as one self-contained HTML document: styles, scripts and data inside, nothing loaded from elsewhere."""
    figures: dict[str, dict[str, Any]] = {}
    for section in page.sections:
        for number, figure in enumerate(section.figures, 1):
            figures[f"{section.anchor}-figure-{number}"] = figure.spec()
    folder = resources.files("polariscope.report")
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    template = environment.from_string((folder / "page.html.j2").read_text(encoding="utf-8"))
    return template.render(
        page=page,
        style=(folder / "page.css").read_text(encoding="utf-8"),
        script=(folder / "page.js").read_text(encoding="utf-8"),
        vega=_vega() if figures else "",
        # Inside a script element only "<" can end it early; as an escape it is still the same JSON.
        specs=json.dumps(figures, allow_nan=False).replace("<", "\\u003c"),
    )


@cache
def _vega() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script, from the installed vl-convert."""
    return vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;").replace("</script", "<\\/script")
