"""Documents in files. Each form has one reader: path and short name in, documents out."""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from polariscope.errors import InputError
from polariscope.probe._corpora_lines import Broken, BrokenOff, gzip_lines, plain_lines, zstd_lines
from polariscope.probe._document import Document


def read_folder(folder: Path) -> Iterator[Iterator[Document]]:
    """The documents of each known file below a folder, in order of path; other and hidden files are left out."""
    below = sorted(path for path in folder.rglob("*") if path.is_file() and _reader(path))
    paths = [path for path in below if not any(part.startswith(".") for part in path.relative_to(folder).parts)]
    if not paths:
        raise InputError(
            "data folder", got=f"{folder}, without such files", expected=_forms(), fix="name another folder"
        )
    for path in paths:
        yield read_file(path, path.relative_to(folder).as_posix())


def read_file(path: Path, name: str) -> Iterator[Document]:
    """The documents of one file; ``name`` begins their ids."""
    reader = _reader(path)
    if reader is None:
        raise InputError("data file", got=str(path), expected=_forms(), fix="convert it to one of these")
    try:
        path.open("rb").close()
    except OSError as problem:
        raise InputError(
            "data file", got=f"{path} ({problem.strerror})", expected="a readable file", fix="check its permissions"
        ) from problem
    return reader(path, name)


def _text(path: Path, name: str) -> Iterator[Document]:
    yield Document(name, _decoded(path.read_bytes(), str(path)))


def _jsonl(path: Path, name: str, lines: Callable[[Path], Iterator[bytes]]) -> Iterator[Document]:
    count = 0
    try:
        for number, line in enumerate(lines(path), start=1):
            if line.strip():
                yield _record(line, f"{path}, line {number}", f"{name}:{number}")
                count += 1
    except Broken as problem:
        raise BrokenOff(
            "data file",
            got=f"{path}, which breaks off after {count} documents ({problem})",
            expected="a whole compressed file",
            fix="fetch it again",
        ) from problem


def _record(line: bytes, place: str, name: str) -> Document:
    text = _decoded(line, place)
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise InputError(
            "JSON line", got=f"{place}: {problem}", expected="one JSON object a line", fix="mend or drop that line"
        ) from problem
    return document_of(record, place, name)


def document_of(record: Any, place: str, name: str) -> Document:
    """The document in a record with the field ``text`` and perhaps ``meta``. Raises InputError if it has no text."""
    text = record.get("text") if isinstance(record, Mapping) else None
    if not isinstance(text, str):
        had = ", ".join(map(str, record)) if isinstance(record, Mapping) else type(record).__name__
        raise InputError(
            "record",
            got=f"{place}, without a string in 'text' (it has: {had})",
            expected="a field 'text' with the document",
            fix="rename the field that holds the text",
        )
    try:
        text.encode()
    except UnicodeEncodeError as problem:
        raise InputError(
            "record", got=f"{place}, with half a surrogate pair", expected="Unicode text", fix="drop that record"
        ) from problem
    meta = record.get("meta")
    return Document(name, text, meta if isinstance(meta, Mapping) else {})


def _parquet(path: Path, name: str) -> Iterator[Document]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            known = file.schema_arrow.names
            if "text" not in known:
                raise InputError(
                    "Parquet file",
                    got=f"{path} with columns {', '.join(known)}",
                    expected="a column 'text'",
                    fix="rename the column that holds the text",
                )
            columns = [column for column in ("text", "meta") if column in known]
            rows = (row for batch in file.iter_batches(batch_size=256, columns=columns) for row in batch.to_pylist())
            for number, row in enumerate(rows):
                yield document_of(row, f"{path}, row {number}", f"{name}:{number}")
    except (pa.ArrowException, OSError) as problem:
        raise BrokenOff(
            "Parquet file", got=f"{path} ({problem})", expected="a whole Parquet file", fix="fetch it again"
        ) from problem


def _decoded(data: bytes, place: str) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise InputError(
            "text",
            got=f"{place}, with byte {data[problem.start]:#04x} at {problem.start}",
            expected="UTF-8 text",
            fix="convert it to UTF-8",
        ) from problem
    if "\0" in text:
        raise InputError("text", got=f"{place}, with NUL bytes", expected="UTF-8 text", fix="name a text file")
    return text


READERS: dict[str, Callable[[Path, str], Iterator[Document]]] = {
    ".txt": _text,
    ".jsonl": lambda path, name: _jsonl(path, name, plain_lines),
    ".jsonl.gz": lambda path, name: _jsonl(path, name, gzip_lines),
    ".jsonl.zst": lambda path, name: _jsonl(path, name, zstd_lines),
    ".parquet": _parquet,
}


def _reader(path: Path) -> Callable[[Path, str], Iterator[Document]] | None:
    return next((reader for suffix, reader in READERS.items() if path.name.lower().endswith(suffix)), None)


def _forms() -> str:
    return "a file that ends in " + ", ".join(READERS)
