"""What a probe keeps on disk while it runs, so that it can be killed at any moment and go on later.

A folder beside the results: one file of records for every few documents, and after each the sums over all of them. A
file appears whole or not at all, and a record file counts only if the sums that go with it are there: what is read back
is what had been measured up to some document, to the last bit.
"""

import io
import json
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from polariscope.errors import InputError
from polariscope.files import SETTINGS, plain, read_json, write_bytes, write_json
from polariscope.metrics import Sums
from polariscope.probe.gathered import Gathered, Record

EVERY_DOCUMENTS, EVERY_SECONDS = 64, 20.0
_SUMS = ("alpha", "sinks", "value_norms")


class Checkpoint:
    """The state of a running probe.

    Args:
        folder: where it is kept.
        settings: what must be equal for another run to go on with it.
        resume: go on with what is there; otherwise the first save deletes it.

    Raises:
        InputError: if what is there was made with other settings.
    """

    def __init__(self, folder: Path, settings: Mapping[str, Any], *, resume: bool) -> None:
        self.folder, self.saved, self.number = Path(folder), 0, 0
        self.then = time.monotonic()
        self.settings = json.loads(json.dumps(plain(settings)))
        path = self.folder / SETTINGS
        self.begun = resume and path.exists()
        if self.begun:
            _same(read_json(path), self.settings, self.folder)

    def restore(self, found: Gathered) -> None:
        """Put the documents of the earlier run into ``found``."""
        if not self.begun:
            return
        last = max((int(path.stem.split("-")[1]) for path in self.folder.glob("sums-*.npz")), default=0)
        for number in range(1, last + 1):
            with np.load(self.folder / f"records-{number}.npz") as file:
                arrays = {name: file[name] for name in file.files}
            count = int(arrays["n"])
            found.records += [
                Record.of_arrays({k: arrays[f"{i}.{k}"] for k in _names(arrays, i)}) for i in range(count)
            ]
        if last:
            with np.load(self.folder / f"sums-{last}.npz") as file:
                for name in _SUMS:
                    sums = Sums(*(file[f"{name}.{part}"] for part in ("count", "nan", "total")))
                    setattr(found, name, sums)
        self.number, self.saved = last, len(found.records)

    def add(self, found: Gathered) -> None:
        """Called after each document: saves if enough came together."""
        waiting = len(found.records) - self.saved
        if waiting >= EVERY_DOCUMENTS or (waiting and time.monotonic() - self.then > EVERY_SECONDS):
            self.save(found)

    def save(self, found: Gathered) -> None:
        """Save what is not saved yet."""
        records = found.records[self.saved :]
        if not records:
            return
        if not self.begun:
            self._begin()
        number = self.number + 1
        arrays = {f"{i}.{k}": v for i, record in enumerate(records) for k, v in record.arrays().items()}
        _write(self.folder / f"records-{number}.npz", {"n": np.array(len(records)), **arrays})
        sums = {name: getattr(found, name) for name in _SUMS}
        parts = ("count", "nan", "total")
        _write(self.folder / f"sums-{number}.npz", {f"{n}.{p}": getattr(s, p) for n, s in sums.items() for p in parts})
        (self.folder / f"sums-{self.number}.npz").unlink(missing_ok=True)
        self.number, self.saved, self.then = number, len(found.records), time.monotonic()

    def _begin(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        write_json(self.folder / SETTINGS, self.settings)
        self.begun = True

    def remove(self) -> None:
        """Delete it, once the results are written."""
        shutil.rmtree(self.folder, ignore_errors=True)


def _same(there: Any, mine: Any, folder: Path) -> None:
    other = [key for key in sorted(set(there) | set(mine)) if there.get(key) != mine.get(key)]
    if other:
        was = ", ".join(f"{key} = {there.get(key)!r}, now {mine.get(key)!r}" for key in other[:4])
        raise InputError(
            "resume",
            got=f"other settings than the run that was interrupted: {was}",
            expected="the same command",
            fix=f"repeat that command, or leave --resume away to start anew (kept in {folder})",
        )


def _names(arrays: Mapping[str, Any], index: int) -> list[str]:
    return [name.partition(".")[2] for name in arrays if name.startswith(f"{index}.")]


def _write(path: Path, arrays: Mapping[str, Any]) -> None:
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    write_bytes(path, buffer.getvalue())
