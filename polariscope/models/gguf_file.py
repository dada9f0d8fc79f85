"""A GGUF file (the format of llama.cpp), dequantized by transformers."""

import functools
import hashlib
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from transformers import modeling_gguf_pytorch_utils

from polariscope.errors import InputError
from polariscope.models import _transformers as hf
from polariscope.models._dtype import dtype_name, torch_device, torch_dtype
from polariscope.models._loaded import LoadedModel
from polariscope.models._transformers import quiet, refusing

_MAGIC = b"GGUF"
_HEADER = struct.Struct("<4sIQQ")  # magic, version, number of tensors, number of metadata entries


def open_gguf(path: str, *, dtype: str = "float32", device: str = "cpu", tokenizer: str | None = None) -> LoadedModel:
    """The model in a ``.gguf`` file; ``revision`` is the file's sha256.

    Args:
        path: the file.
        dtype: of the weights in memory after dequantization.
        device: where to put them.
        tokenizer: a folder or hub id to take the tokenizer from, where the file's own cannot be used.

    Raises:
        InputError: if the file is missing, truncated, no GGUF file, or of an architecture transformers cannot read.
    """
    wanted, place = torch_dtype(dtype), torch_device(device)
    file = check_gguf(Path(path))
    with Console(stderr=True).status(f"dequantizing {file.name}"):
        model = dequantized(file, torch.float32 if isinstance(wanted, str) else wanted)
    with (
        quiet(),
        refusing("tokenizer", tokenizer or path, expected="a tokenizer", fix="name one with the option tokenizer"),
    ):
        words = hf.load_tokenizer(tokenizer) if tokenizer else tokenizer_of(file)
    return LoadedModel(
        model=model.to(place),
        tokenizer=words,
        name=path,
        source="FILE.gguf",
        revision=f"sha256:{sha256(file)}",
        dtype=dtype_name(next(model.parameters()).dtype),
        checkpoint_dtype="GGUF",
    )


def dequantized(file: Path, dtype: torch.dtype) -> Any:
    """The model of a GGUF file as a plain transformers model."""
    with (
        quiet(),
        _no_dequantization_bar(),
        refusing(
            "GGUF file",
            str(file),
            expected="a complete GGUF file of an architecture that transformers reads",
            fix="copy the file again if it may be truncated; other architectures need the original checkpoint",
        ),
    ):
        return hf.load_model(str(file.parent), dtype, torch.device("cpu"), gguf_file=file.name)


@contextmanager
def _no_dequantization_bar() -> Iterator[None]:
    """Switch off the one progress bar of transformers that its own settings do not reach."""
    library: Any = modeling_gguf_pytorch_utils
    bar = library.tqdm
    library.tqdm = functools.partial(bar, disable=True)
    try:
        yield
    finally:
        library.tqdm = bar


def tokenizer_of(file: Path) -> Any:
    """The tokenizer that a GGUF file carries."""
    return hf.load_tokenizer(str(file.parent), gguf_file=file.name)


def check_gguf(path: Path) -> Path:
    """The path, if a GGUF file with a whole header is there. Raises InputError otherwise."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEADER.size)
    except OSError as problem:
        raise InputError(
            "GGUF file", got=f"{path} ({problem.strerror})", expected="a readable .gguf file", fix="check the path"
        ) from problem
    if head[:4] != _MAGIC:
        began = f"it begins with {head[:4]!r}" if head else "it is empty"
        raise InputError(
            "GGUF file", got=f"{path}: {began}", expected="a file that begins with b'GGUF'", fix="name another file"
        )
    if len(head) < _HEADER.size or not _HEADER.unpack(head)[2]:
        raise InputError(
            "GGUF file", got=f"{path}, {path.stat().st_size} bytes", expected="a whole file", fix="copy it again"
        )
    return path


def sha256(path: Path) -> str:
    """The sha256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
