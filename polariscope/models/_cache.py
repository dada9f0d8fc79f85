"""The user's cache: where it is, and how a file in it is known to be whole."""

import os
import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import platformdirs

from polariscope.errors import InputError
from polariscope.files import read_json, write_json
from polariscope.models.gguf_file import sha256

VARIABLE = "POLARISCOPE_CACHE"
_PARTIAL = ".partial-"
_STALE = 24 * 3600.0  # seconds after which a temporary folder belongs to nobody alive


def cache_folder(part: str) -> Path:
    """The folder ``part`` of the cache: ``$POLARISCOPE_CACHE`` or the user's cache folder. It need not exist."""
    return Path(os.environ.get(VARIABLE) or platformdirs.user_cache_dir("polariscope")) / part


def workspace(folder: Path) -> tempfile.TemporaryDirectory[str]:
    """A temporary folder inside ``folder``, so that moving out of it is atomic.

    Raises:
        InputError: if none can be made there.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _sweep(folder)
        return tempfile.TemporaryDirectory(prefix=_PARTIAL, dir=folder)
    except OSError as problem:
        raise InputError(
            "cache folder",
            got=f"{folder} ({problem.strerror})",
            expected="a writable folder",
            fix=f"set {VARIABLE} to one",
        ) from problem


def is_whole(path: Path, digest: str | None = None) -> bool:
    """Whether a file is there with its sha256.

    Hashing is done once: size, modification time and sha256 are kept beside the file, and only a file whose size or
    time differ from that note is hashed again.

    Args:
        path: the file.
        digest: the sha256 it must have; None for the one that `note` wrote down.
    """
    if not path.is_file():
        return False
    noted = _noted(path)
    digest = digest or noted.get("sha256")
    if digest is None:
        return False
    if noted == {"sha256": digest, **_stamp(path)}:
        return True
    if sha256(path) != digest:
        return False
    with suppress(InputError):  # a cache that can only be read is hashed every time
        note(path, digest)
    return True


def note(path: Path, digest: str) -> None:
    """Write down that ``path`` as it is now has this sha256."""
    write_json(_note(path), {"sha256": digest, **_stamp(path)})


def put_folder(path: Path, fill: Callable[[Path], None]) -> None:
    """Make a folder whole or not at all; one that is there already is replaced."""
    with workspace(path.parent) as temporary:
        new, old = Path(temporary) / "new", Path(temporary) / "old"
        new.mkdir()
        fill(new)
        with suppress(FileNotFoundError):
            path.rename(old)
        try:
            new.rename(path)
        except OSError:
            # Another process put the same folder there in between: either will do.
            if not path.is_dir():
                raise
        shutil.rmtree(old, ignore_errors=True)


def _sweep(folder: Path) -> None:
    """Remove temporary folders that a killed process has left behind."""
    for path in folder.glob(f"{_PARTIAL}*"):
        with suppress(FileNotFoundError):
            if time.time() - path.stat().st_mtime > _STALE:
                shutil.rmtree(path, ignore_errors=True)


def _note(path: Path) -> Path:
    return path.with_name(path.name + ".sha256.json")


def _noted(path: Path) -> dict[str, Any]:
    with suppress(InputError):
        noted = read_json(_note(path))
        if isinstance(noted, dict):
            return noted
    return {}


def _stamp(path: Path) -> dict[str, int]:
    state = path.stat()
    return {"size": state.st_size, "modified_ns": state.st_mtime_ns}
