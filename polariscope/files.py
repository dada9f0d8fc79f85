"""Result files: folders that appear whole or not at all, strict JSON, and the settings that made them."""

import json
import math
import os
import platform
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
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
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file atomically. Raises InputError if the path cannot be written."""
    path = check_output_file(path)
    handle, name = tempfile.mkstemp(prefix=f".{path.name[:100]}.", suffix=".partial", dir=path.parent)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    Path(name).chmod(0o644)
    Path(name).replace(path)


def read_text(path: Path, kind: str) -> str:
    """The text of a file of some kind, "JSON" for one. Raises InputError if it is missing or not UTF-8 text."""
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except OSError as problem:
        raise InputError(
            "input file", got=f"{path} ({problem.strerror})", expected=f"a readable {kind} file", fix="check the path"
        ) from problem
    except UnicodeDecodeError as problem:
        raise InputError(
            "input file", got=f"{path}, which is not UTF-8 text", expected=f"a {kind} file", fix="check the path"
        ) from problem


def read_json(path: Path) -> Any:
    """Read a JSON file. Raises InputError if it is missing, not UTF-8 text or not JSON (NaN and Infinity included)."""

    def refuse(word: str) -> None:
        raise InputError(
            "number in JSON", got=f"{word} in {path}", expected="finite numbers", fix="replace it by a number"
        )

    try:
        return json.loads(read_text(path, "JSON"), parse_constant=refuse)
    except InputError:
        raise
    except json.JSONDecodeError as problem:
        raise InputError(
            "malformed JSON",
            got=f"{path}, line {problem.lineno} column {problem.colno}: {problem.msg}",
            expected="valid JSON",
            fix="mend that place",
        ) from problem
    except (ValueError, RecursionError) as problem:
        raise InputError(
            "input file", got=f"{path} ({problem})", expected="JSON of ordinary size", fix="check the file"
        ) from problem


def check_output_file(path: Path) -> Path:
    """The path a file will be written to, symbolic links followed. Call it before long work.

    Raises InputError for a folder, a device or anything else that is no regular file, and for a place that cannot be
    written.
    """
    target = _resolved(path)
    mode = _mode(target)
    if mode is not None and not stat.S_ISREG(mode):
        folder = stat.S_ISDIR(mode)
        what, fix = ("a folder", f"try -o {path}/out.json") if folder else ("a device or pipe", "name a file")
        raise _bad_output(path, what, "a file name", fix)
    return target


def check_output_folder(path: Path, kind: str | None = None) -> Path:
    """The path a result folder will be put at, symbolic links followed. Call it before long work.

    Args:
        path: where the folder shall stand.
        kind: of the results; an earlier folder is replaced only by results of its own kind.

    Raises InputError for a file, for a folder that this package did not write or that holds another kind of result, and
    for a place that cannot be written.
    """
    target = _resolved(path)
    mode = _mode(target)
    if mode is not None and not stat.S_ISDIR(mode):
        raise _bad_output(path, "a file", "a folder", "give another -o")
    found = _kind_of(target)
    # Looked at several times: another run may be putting its results there just now.
    if found is None and all(_foreign(target) for _ in range(5)):
        raise _bad_output(
            path, "a folder with other things in it", "a new or empty folder, or earlier results", "give another -o"
        )
    if found is not None and kind is not None and found != kind:
        raise _bad_output(path, f"the results of {found}", f"a new folder, or results of {kind}", "give another -o")
    return target


def _mode(path: Path) -> int | None:
    """The file mode, or None where there is nothing; one look, since another run may move things meanwhile."""
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None


def _foreign(folder: Path) -> bool:
    try:
        return any(folder.iterdir()) and _kind_of(folder) is None
    except FileNotFoundError:
        return False


def _kind_of(folder: Path) -> str | None:
    """The kind of result a folder holds, or None where its settings are not of this package."""
    try:
        settings = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
        return str(settings["kind"]) if "polariscope" in settings["versions"] else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _resolved(path: Path) -> Path:
    """The path without symbolic links, in a folder that exists and can be written."""
    try:
        target = Path(path).resolve()
        target.exists()
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=target.parent):
            pass
    except (OSError, RuntimeError, ValueError) as problem:
        raise _bad_output(path, getattr(problem, "strerror", None) or str(problem)) from problem
    return target


def _bad_output(
    path: Path, problem: str, expected: str = "a writable place", fix: str = "give another -o"
) -> InputError:
    return InputError("output path", got=f"{str(path)[:200]} ({problem})", expected=expected, fix=fix)


@contextmanager
def output_folder(path: Path, settings: Mapping[str, Any]) -> Iterator[Path]:
    """A new folder to fill, put in place of ``path`` when the block ends well and removed when it does not.

    ``settings`` (see `settings_for`) is written into it as ``settings.json``.
    """
    path = check_output_folder(path, settings["kind"])
    work = Path(tempfile.mkdtemp(prefix=f".{path.name[:100]}.", suffix=".partial", dir=path.parent))
    try:
        work.chmod(0o755)
        write_json(work / SETTINGS, settings)
        yield work
        _put_in_place(work, path)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _put_in_place(work: Path, path: Path) -> None:
    """Rename ``work`` to ``path``, and what stood there away first; again, if another run was quicker."""
    with tempfile.TemporaryDirectory(prefix=f".{path.name[:100]}.", suffix=".partial", dir=path.parent) as old:
        for attempt in range(100):
            with suppress(FileNotFoundError):
                path.rename(Path(old) / str(attempt))
            try:
                work.rename(path)
                return
            except OSError:
                if attempt == 99:
                    raise


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
