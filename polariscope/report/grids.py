"""A phase diagram as a section of the page, and as a page and a picture beside its tables."""

from pathlib import Path
from typing import Literal

import pandas as pd
import vl_convert

from polariscope.errors import InputError
from polariscope.files import SETTINGS, read_json, write_bytes
from polariscope.report._page import Section, Table
from polariscope.report.figures import grids
from polariscope.report.figures.grid_marks import AXES

CELLS = "cells.parquet"
PICTURE = "grid.png"
NAMES = {
    "n": "n =",
    "d": "d =",
    "scale": "scale",
    "target_norm": "‖β*‖ =",
    "temperature": "temperature",
    "condition_number": "κ =",
}


def grid(folder: Path) -> list[Section]:
    """The section of one phase diagram."""
    options, cells = _read(folder)
    axes = list(options["axes"])
    seeds = cells.seeds.iloc[0]
    statuses = {
        name.removeprefix("share_").replace("_", " "): round(float((cells[name] * cells.seeds).sum()))
        for name in cells.columns
        if name.startswith("share_")
    }
    flows, times = int(cells.seeds.sum()), cells.log_t.nunique()
    rows = [(name, str(count // times), f"{100 * count / flows:.1f} %") for name, count in statuses.items() if count]
    return [
        Section(
            anchor=f"grid-{folder.name}",
            title=f"Phase diagram: {options['name']}" if options["name"] else "Phase diagram",
            paragraphs=[
                ("What varies.", f"{' and '.join(AXES[name] for name in axes)}; {seeds} seeds a cell."),
                ("What stays.", f"{_fixed(options)}."),
            ],
            figures=grids.figures(cells, axes, _clock(options)),
            tables=[Table("How the flows ended", ("status", "flows", "share"), rows)],
        )
    ]


def draw_grid(folder: Path | str) -> Path:
    """Draw the finished phase diagram of a folder into it, as ``grid.png`` on white; the path of the picture.

    Raises InputError for a folder without a finished phase diagram.
    """
    folder = Path(folder)
    options, cells = _read(folder)
    subtitle = f"{_fixed(options)}; {cells.seeds.iloc[0]} seeds a cell{_time(options)}"
    title = options["name"] or "Phase diagram"
    spec = grids.picture(cells, list(options["axes"]), title, subtitle, _clock(options))
    write_bytes(folder / PICTURE, vl_convert.vegalite_to_png(spec, scale=2))
    return folder / PICTURE


def _read(folder: Path) -> tuple[dict, pd.DataFrame]:
    settings = read_json(folder / SETTINGS)
    if not isinstance(settings, dict) or settings.get("kind") != "grid" or not (folder / CELLS).is_file():
        expected = "the folder of a finished phase diagram"
        raise InputError("phase diagram", got=str(folder), expected=expected, fix="run polariscope flow --grid again")
    return settings["options"], pd.read_parquet(folder / CELLS)


def _fixed(options: dict) -> str:
    """What does not vary, in words; the loss, the score map and n also where they were left out."""
    shown = {"loss": "logistic", "scores": "softmax", "n": 8} | options["fixed"]
    return ", ".join(
        f"{value} {name}" if name in ("loss", "model") else value if name == "scores" else f"{NAMES[name]} {value:.4g}"
        for name, value in shown.items()
        if name not in options["axes"]
    )


def _clock(options: dict) -> Literal["t", "log_t"]:
    """In what the times were asked for."""
    return "t" if options["t"] else "log_t"


def _time(options: dict) -> str:
    """The last time, where the picture shows that one only."""
    key = _clock(options)
    one = len(options["axes"]) == 2 or len(options[key]) == 1
    return f"; {key.replace('_', ' ')} = {options[key][-1]:.4g}" if one else ""
