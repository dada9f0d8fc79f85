"""What every verb does: print a summary, as text or as one JSON object."""

import json
import sys
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from polariscope.files import plain

Json = Annotated[bool, typer.Option("--json", help="Print the summary as one JSON object on stdout.")]


def say(summary: Mapping[str, Any], text: str, *, as_json: bool) -> None:
    """Print the summary on stdout: ``text`` for people, the mapping for programs."""
    sys.stdout.write(json.dumps(plain(summary), allow_nan=False) + "\n" if as_json else text.rstrip() + "\n")
