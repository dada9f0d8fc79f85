"""``polariscope flow --grid``: a phase diagram from a YAML file, into a folder."""

from pathlib import Path
from typing import Any

import typer

from polariscope.cli._shared import aligned, options_given, progress_bar, say
from polariscope.errors import InputError

WITH_GRID = ("context", "grid", "output", "json")
MOST = 12
"""Columns and rows of the table that is printed."""


def run(context: typer.Context, source: Path, output: Path, *, as_json: bool) -> None:
    """Solve, write and draw the phase diagram of a file; what the folder already holds is not solved again.

    Raises InputError for a bad file, options that do not go with it, and a folder that holds something else.
    """
    _refuse_others(context)
    import pandas as pd

    from polariscope import flow, report
    from polariscope.flow.grid_folder import CELLS
    from polariscope.flow.grid_spec import read_spec

    spec = read_spec(source)
    with progress_bar(len(spec.cells) * len(spec.seeds)) as progress:
        rows = flow.grid(spec, output, progress)
    report.draw_grid(output)
    report.write([output], output / "grid.html")
    cells = pd.read_parquet(output / CELLS)
    last = rows[rows.log_t == rows.log_t.max()]
    statuses = {str(name): int(count) for name, count in last.status.value_counts().items()}
    axes = list(spec.axes)
    summary = {"output": output, "axes": axes, "statuses": statuses, "cells": cells.to_dict("records")}
    when = f"t = {spec.t[-1]:.4g}" if spec.t else f"log t = {spec.times[-1]:.4g}"
    say(summary, "\n".join([*_table(cells, axes, when), *_words(last, statuses, output)]), as_json=as_json)
    if not last.reached.all():
        raise typer.Exit(1)


def _refuse_others(context: typer.Context) -> None:
    """The file says everything: options that would say it again are refused."""
    names = [parameter.name for parameter in context.command.params if parameter.name not in WITH_GRID]
    if given := options_given(context, names):
        raise InputError(
            "options", got=f"--grid and {', '.join(given)}", expected="--grid, -o, --json", fix="say it in the file"
        )


def _table(cells: Any, axes: list[str], when: str) -> list[str]:
    """The measure at the last time: the first axis to the right, the second downwards."""
    last = cells[cells.log_t == cells.log_t.max()]
    measure = "normalized_entropy" if last.normalized_entropy.notna().any() else "max_s"
    rows, columns = (axes[1], axes[0]) if len(axes) == 2 else (axes[0], None)
    if last[rows].nunique() > MOST or (columns is not None and last[columns].nunique() > MOST):
        return []
    title = "mean " + measure.replace("_", " ").replace("max s", "largest weight")
    title += f" at {when}"
    if columns is None:
        lines = [["", title], *([_short(row[rows]), _number(row[measure])] for row in last.to_dict("records"))]
        return [f"{rows} downwards", *aligned(lines), ""]
    wide = last.pivot(index=rows, columns=columns, values=measure)
    wide = wide.reindex(index=last[rows].unique(), columns=last[columns].unique())
    lines = [["", *map(_short, wide.columns)]]
    lines += [[_short(name), *map(_number, values)] for name, values in zip(wide.index, wide.to_numpy(), strict=True)]
    return [f"{title}; {columns} to the right, {rows} downwards", *aligned(lines), ""]


def _words(last: Any, statuses: dict[str, int], output: Path) -> list[str]:
    """Who won, how the flows ended, where it is written."""
    said = []
    for name in ("u", "s"):
        won = last[f"won_by_{name}_leader"].dropna()
        if len(won):
            said.append(f"the initial leader of {name} won {100 * float(won.mean()):.0f} % of {len(won)} flows")
    ends = ", ".join(f"{count} {name}" for name, count in statuses.items())
    return [*said, f"{len(last)} flows: {ends}; written to {output}", f"picture: {output / 'grid.png'}"]


def _short(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:.4g}"


def _number(value: float) -> str:
    return "-" if value != value else f"{value:.3f}"
