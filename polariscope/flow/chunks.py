"""Flows in chunks that one call solves: small enough for memory, of one size, so that one compilation serves all."""

from collections.abc import Sequence
from typing import NamedTuple

from polariscope.flow.charts import Charts
from polariscope.flow.compiling import FEW, side_by_side

MEMORY = 1 << 28
"""Bytes that one chunk may take."""


class Chunk(NamedTuple):
    """Flows that are solved by one call.

    Attributes:
        members: their places in a list of problems.
        size: as many or more, for arrays that are filled up.
        together: side by side, or in turn.
        charts: of all score maps in the list.
        length: n of the arrays.
    """

    members: list[int]
    size: int
    together: bool
    charts: Charts
    length: int


def in_chunks(members: Sequence[int], most: int, each: int, charts: Charts, length: int) -> list[Chunk]:
    """Flows in chunks of at most ``most``, each flow of which takes ``each`` bytes."""
    largest = max(1, min(most, MEMORY // each))
    count = -(-len(members) // largest)
    size = -(-len(members) // count)
    together = side_by_side(size, len(charts.members))
    return [
        Chunk(list(members[first : first + size]), _rounded(size), together, charts, length)
        for first in range(0, len(members), size)
    ]


def _rounded(size: int) -> int:
    """The next power of two, or beyond 64 the next multiple of it, so that lists of similar length share a program."""
    if size <= FEW:
        return size
    return 1 << (size - 1).bit_length() if size <= 64 else -(-size // 64) * 64
