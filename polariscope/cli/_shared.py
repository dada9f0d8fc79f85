"""What every verb does: print a summary, as text or as one JSON object."""

import json
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from polariscope.files import plain

Json = Annotated[bool, typer.Option("--json", help="Print the summary as one JSON object on stdout.")]


def say(summary: Mapping[str, Any], text: str, *, as_json: bool) -> None:
    """Print the summary on stdout: ``text`` for people, the mapping for programs."""
    sys.stdout.write(json.dumps(plain(summary), allow_nan=False) + "\n" if as_json else text.rstrip() + "\n")


@contextmanager
def progress_bar(total: int) -> Iterator[Callable[[int, int, str], None]]:
    """A bar on stderr, if that is a terminal, moved by (done, total, what)."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("compiling", total=total)
        yield lambda done, _, name: bar.update(task, completed=done, description=name)


def options_given(context: typer.Context, names: Collection[str | None]) -> list[str]:
    """Those of the named parameters that were given on the command line, as they are written there."""
    return [
        parameter.opts[0]
        for parameter in context.command.params
        if parameter.name in names
        and getattr(context.get_parameter_source(parameter.name or ""), "name", "") == "COMMANDLINE"
    ]


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """One line a row, columns aligned."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
