"""``polariscope report``: one HTML page from finished results."""

from pathlib import Path
from typing import Annotated

import typer

from polariscope.cli._shared import Json, say

NAME = "report"
HELP = "Write one offline HTML page from finished results: study, probe, train and flow --grid folders, or flow files."
EPILOG = "Example: polariscope report results/study results/probe -o report.html"


def command(
    sources: Annotated[list[Path], typer.Argument(metavar="DIR…", help="Result folders, or JSON files of flows.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The HTML file to write.")],
    json: Json = False,
) -> None:
    from polariscope import report

    written = report.write(sources, output)
    size = written.stat().st_size
    say({"report": written, "bytes": size}, f"{written}  ({size / 1e6:.1f} MB, opens offline)", as_json=json)
