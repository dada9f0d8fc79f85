"""Result files: folders that appear whole or not at all, strict JSON, and the settings that made them."""

import json
import math
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from polariscope.errors import InputError

SETTINGS = "settings.json"
_PACKAGES = ("polariscope", "numpy", "scipy", "jax", "diffrax", "torch", "transformers", "tokenizers", "gguf")


def plain(value: Any) -> Any:
    """The value with arrays and NumPy scalars as lists and numbers, and non-finite numbers as None or strings.

    NaN becomes ``None``; infinities become ``"inf"`` and ``"-inf"``: strict JSON has no words for them.
    """
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    if isinstance(value, Path):
        return str(value)
    return value


def write_json(path: Path, value: Any) -> None:
    """Write strict JSON through a temporary file beside it, so that a reader never sees half of it."""
    text = json.dumps(plain(value), indent=1, allow_nan=False)
    write_text(path, text + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically, encoded as UTF-8. Raises InputError if the path cannot be written."""
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".partial", dir=path.parent)
    except (OSError, ValueError) as problem:
        raise InputError(
            "output path", got=f"{path} ({problem})", expected="a writable place", fix="give another -o"
        ) from problem
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    Path(name).chmod(0o644)
    Path(name).replace(path)


def read_json(path: Path) -> Any:
    """Read a JSON file. Raises InputError if it is missing, not UTF-8 text or not JSON (NaN and Infinity included)."""

    def refuse(word: str) -> None:
        raise InputError(
            "number in JSON", got=f"{word} in {path}", expected="finite numbers", fix="replace it by a number"
        )

    try:
        return json.loads(Path(path).read_text(encoding="utf-8"), parse_constant=refuse)
    except OSError as problem:
        raise InputError(
            "input file", got=f"{path} ({problem.strerror})", expected="a readable JSON file", fix="check the path"
        ) from problem
    except UnicodeDecodeError as problem:
        raise InputError(
            "input file", got=f"{path}, which is not UTF-8 text", expected="a JSON file", fix="check the path"
        ) from problem
    except json.JSONDecodeError as problem:
        raise InputError(
            "malformed JSON",
            got=f"{path}, line {problem.lineno} column {problem.colno}: {problem.msg}",
            expected="valid JSON",
            fix="mend that place",
        ) from problem


def check_output_file(path: Path) -> Path:
    """The path, if a file can be written there. Raises InputError for a folder."""
    path = Path(path)
    if path.is_dir():
        raise InputError("output path", got=f"{path}, a folder", expected="a file name", fix=f"try -o {path}/out.json")
    return path


def check_output_folder(path: Path) -> Path:
    """The path, if a result folder can be put there. Call it before long work.

    Raises InputError for a file, for a folder that holds something other than results of this package, and for a
    place that cannot be written.
    """
    path = Path(path)
    if path.exists() and not path.is_dir():
        raise InputError("output path", got=f"{path}, a file", expected="a folder", fix="give another -o")
    if path.is_dir() and any(path.iterdir()) and not (path / SETTINGS).exists():
        raise InputError(
            "output path",
            got=f"{path}, a folder with other things in it",
            expected="a new or empty folder, or earlier results",
            fix="give another -o",
        )
    parent = path.absolute().parent
    try:
        parent.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise InputError(
            "output path", got=f"{path} ({problem.strerror})", expected="a writable place", fix="give another -o"
        ) from problem
    if not os.access(parent, os.W_OK):
        raise InputError(
            "output path", got=f"{path} (no permission)", expected="a writable place", fix="give another -o"
        )
    return path


@contextmanager
def output_folder(path: Path, settings: Mapping[str, Any]) -> Iterator[Path]:
    """A new folder to fill, put in place of ``path`` when the block ends well and removed when it does not.

    ``settings`` (see `settings_for`) is written into it as ``settings.json``.
    """
    path = check_output_folder(path).absolute()
    work = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".partial", dir=path.parent))
    try:
        work.chmod(0o755)
        write_json(work / SETTINGS, settings)
        yield work
        if path.exists():
            old = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".partial", dir=path.parent))
            path.rename(old / "old")
            work.rename(path)
            shutil.rmtree(old)
        else:
            work.rename(path)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def settings_for(kind: str, options: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """What made a result: its kind, every option, the command line, versions and the machine."""
    return {
        "kind": kind,
        "options": dict(options),
        **more,
        "command_line": [Path(sys.argv[0]).name, *sys.argv[1:]],
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "versions": {name: _version(name) for name in _PACKAGES},
    }


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
