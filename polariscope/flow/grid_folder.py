"""The folder of a phase diagram, which is filled part by part and can be left and taken up at any moment."""

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pandas as pd

from polariscope.errors import InputError
from polariscope.files import SETTINGS, check_output_folder, plain, read_json, settings_for, write_bytes, write_json
from polariscope.flow.grid_spec import GridSpec

KIND = "grid"
SPEC, PARTS, ROWS, CELLS = "spec.json", "parts", "grid.parquet", "cells.parquet"


@dataclass(frozen=True)
class GridFolder:
    """Where a phase diagram is kept.

    The folder holds ``spec.json`` from the start, ``parts/*.parquet`` as they are solved, and at the end
    ``grid.parquet`` (one row per flow and time), ``cells.parquet`` (one per cell and time) and ``settings.json``. That
    comes last: where it stands, the tables are complete. Every file is put in place whole.

    Args:
        path: the folder.
        spec: what is solved.
        started: the settings that were written when it was begun.
    """

    path: Path
    spec: GridSpec
    started: dict[str, Any]

    @classmethod
    def open(cls, path: Path, spec: GridSpec) -> Self:
        """A new folder, or one that an earlier run with the same spec has left.

        Raises InputError for a folder with another spec or with other things in it, and for a place that cannot be
        written.
        """
        if not (path / SPEC).is_file():
            path = check_output_folder(path, KIND)
            (path / PARTS).mkdir(parents=True, exist_ok=True)
            write_json(path / SPEC, settings_for(KIND, spec.model_dump()))
        started = read_json(path / SPEC)
        kept = started.get("options") if isinstance(started, dict) else None
        if not isinstance(kept, dict) or _solved(kept) != _solved(plain(spec.model_dump())):
            raise InputError(
                "output path",
                got=f"{path}, which holds a grid with another {_difference(kept, plain(spec.model_dump()))}",
                expected="a new folder, or one with the same spec",
                fix="give another -o, or delete that folder",
            )
        (path / PARTS).mkdir(exist_ok=True)
        return cls(path, spec, started)

    def part(self, index: int, keys: pd.DataFrame) -> pd.DataFrame | None:
        """The rows of a part that was saved, if they are those of ``keys``; None if it must be solved."""
        try:
            part = pd.read_parquet(self._part(index))
            return part if part[list(keys)].equals(keys) else None
        except (OSError, ValueError, KeyError):  # not there, damaged, or of another plan
            return None

    def save(self, index: int, part: pd.DataFrame) -> None:
        """Keep the rows of a part."""
        _write(self._part(index), part)

    def finish(self, rows: pd.DataFrame, cells: pd.DataFrame) -> None:
        """Write the tables of the whole, and then the settings."""
        _write(self.path / ROWS, rows)
        _write(self.path / CELLS, cells)
        started = {key: self.started[key] for key in ("created", "versions") if key in self.started}
        write_json(self.path / SETTINGS, settings_for(KIND, self.spec.model_dump(), started=started))

    def _part(self, index: int) -> Path:
        return self.path / PARTS / f"{index:05d}.parquet"


def _solved(options: dict[str, Any]) -> dict[str, Any]:
    """What decides the numbers: not the title, and not in which order the axes come."""
    return {key: value for key, value in options.items() if key != "name"}


def _difference(kept: Any, wanted: dict[str, Any]) -> str:
    if not isinstance(kept, dict):
        return SPEC
    return ", ".join(key for key in wanted if key != "name" and kept.get(key) != wanted[key]) or "spec"


def _write(path: Path, table: pd.DataFrame) -> None:
    buffer = io.BytesIO()
    table.to_parquet(buffer, index=False)
    write_bytes(path, buffer.getvalue())
