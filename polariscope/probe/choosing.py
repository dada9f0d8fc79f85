"""Which documents are measured: those that are long enough, so many of them."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from polariscope.errors import InputError
from polariscope.probe.documents import Tokens


@dataclass
class Chosen:
    """Goes through the documents, passes on those that are long enough and keeps the others for the count."""

    documents: Iterator[Tokens]
    length: int
    limit: int | None

    def __post_init__(self) -> None:
        self.skipped: list[Tokens] = []

    def __iter__(self) -> Iterator[Tokens]:
        wanted = itertools.count() if self.limit is None else range(self.limit)
        for _ in wanted:
            for tokens in self.documents:
                if tokens.pixels is not None or len(tokens.ids) == self.length:
                    yield tokens
                    break
                self.skipped.append(Tokens(tokens.id, [], tokens.count))
            else:
                return

    def first(self, documents: Iterator[Tokens]) -> Tokens:
        """The first document. Raises InputError if none is long enough."""
        for tokens in documents:
            return tokens
        longest = max((tokens.count for tokens in self.skipped), default=0)
        raise InputError(
            "documents",
            got=f"{len(self.skipped)} documents, the longest of {longest} tokens",
            expected=f"at least one of {self.length} tokens",
            fix=f"try --max-length {longest}" if longest >= 2 else "give other texts",
        )
