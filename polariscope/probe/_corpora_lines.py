"""Lines of plain and compressed files, read as a stream; a file that breaks off is said to be so."""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path

import zstandard

from polariscope.errors import InputError

_CHUNK = 1 << 18
# The Pile was packed with long windows; the default limit of 128 MB refuses some files.
_WINDOW = 1 << 31


class Broken(Exception):
    """A compressed file is damaged or ends before its end."""


class BrokenOff(InputError):
    """A source cannot be read to its end: what came before is good."""


def plain_lines(path: Path) -> Iterator[bytes]:
    """The lines of a file."""
    with path.open("rb") as file:
        yield from file


def gzip_lines(path: Path) -> Iterator[bytes]:
    """The lines of a gzip file. Raises Broken where it is damaged or breaks off, after the lines before."""
    try:
        with gzip.open(path, "rb") as file:
            yield from file
    except (EOFError, gzip.BadGzipFile, zlib.error) as problem:
        raise Broken(str(problem)) from problem


def zstd_lines(path: Path) -> Iterator[bytes]:
    """The lines of a Zstandard file of one or more frames. Raises Broken as `gzip_lines` does."""
    rest = b""
    for block in _zstd_blocks(path):
        *lines, rest = (rest + block).split(b"\n")
        yield from lines
    if rest:
        yield rest


def _zstd_blocks(path: Path) -> Iterator[bytes]:
    """Decompressed blocks. The stream reader of zstandard takes a truncated frame for a whole one; this does not."""
    unpacker = zstandard.ZstdDecompressor(max_window_size=_WINDOW)
    frame, begun = unpacker.decompressobj(), False
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            while chunk:
                try:
                    block, begun = frame.decompress(chunk), True
                except zstandard.ZstdError as problem:
                    raise Broken(str(problem)) from problem
                if block:
                    yield block
                chunk = b""
                if frame.eof:
                    chunk, begun = frame.unused_data, False
                    frame = unpacker.decompressobj()
    if begun:
        raise Broken("the last frame ends early")
