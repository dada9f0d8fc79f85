"""From texts to token ids of one length: what stands at position 1, what is cut, what is too short."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from polariscope.errors import InputError
from polariscope.probe._document import AnyDocument, Document, TokenDocument

if TYPE_CHECKING:
    from torch import Tensor

BOS_MODES = ("auto", "on", "off")


@dataclass(frozen=True)
class Tokens:
    """One document as token ids, or one image.

    Args:
        id: of the document.
        ids: its first T tokens; all it has if they are fewer. Of an image the numbers of its positions.
        count: number of tokens it has, prefix included.
        pixels: of an image, (C, height, width).
    """

    id: str
    ids: list[int]
    count: int
    pixels: "Tensor | None" = None

    @property
    def sample(self) -> "list[int] | Tensor":
        """What a model is fed with."""
        return self.ids if self.pixels is None else self.pixels


class Vocabulary:
    """From token ids to strings, each looked up once.

    Args:
        tokenizer: with the interface of transformers, or the strings themselves in order of their ids.
    """

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer, self.known = tokenizer, {-1: ""}

    def __call__(self, ids: Sequence[int]) -> list[str]:
        """The string of each id; "" for −1."""
        for i in set(ids) - self.known.keys():
            listed = isinstance(self.tokenizer, Sequence)
            self.known[i] = self.tokenizer[i] if listed else self.tokenizer.decode([i])
        return [self.known[i] for i in ids]

    def column(self, ids: Any) -> np.ndarray:
        """The same for a whole column of a table."""
        unique, where = np.unique(np.asarray(ids, dtype=np.int64), return_inverse=True)
        return np.array(self(unique.tolist()), dtype=object)[where]


def prefix(tokenizer: Any, bos: str) -> list[int]:
    """The ids put before every document.

    Args:
        tokenizer: with the interface of transformers.
        bos: ``auto``: what the tokenizer puts there by itself; ``on``: its BOS token; ``off``: nothing.

    Raises:
        InputError: for ``on`` where the tokenizer has no BOS token.
    """
    if bos == "off":
        return []
    if bos == "auto":
        return _own_prefix(tokenizer)
    if tokenizer.bos_token_id is None:
        raise InputError("BOS", got="a tokenizer without a BOS token", expected="one with", fix="use --bos off")
    return [tokenizer.bos_token_id]


def tokens_of(texts: Iterable[str | AnyDocument], tokenizer: Any, length: int, bos: str) -> Iterator[Tokens]:
    """Each text as its first ``length`` token ids. Nothing is appended or padded, and no BOS doubled.

    Args:
        texts: strings, or the documents of `polariscope.probe.corpora`.
        tokenizer: with the interface of transformers.
        length: T.
        bos: see `prefix`.
    """
    before = prefix(tokenizer, bos)
    if isinstance(texts, str):
        raise InputError("texts", got="one string", expected="several texts", fix="give a list: [text]")
    for index, text in enumerate(texts):
        document = Document(str(index), text) if isinstance(text, str) else text
        if not isinstance(document, Document | TokenDocument):
            raise InputError(
                f"text {index}", got=type(text).__name__, expected="a string or a Document", fix="decode it to text"
            )
        drawn = isinstance(document, TokenDocument)
        ids = document.ids_for(tokenizer, length) if drawn else _plain(tokenizer, document.text)
        doubled = bool(before) and before[-1] == tokenizer.bos_token_id and ids[:1] == before[-1:]
        ids = ids if doubled else before + ids
        yield Tokens(document.id, ids[:length], length if drawn else len(ids))


def _plain(tokenizer: Any, text: str) -> list[int]:
    # verbose=False: a document longer than the model's window is cut later, which is no cause for a warning.
    return list(tokenizer(text, add_special_tokens=False, verbose=False).input_ids)


def _own_prefix(tokenizer: Any) -> list[int]:
    """What the tokenizer puts before a text by itself; what it appends is left out."""
    bare = _plain(tokenizer, "a")
    full = list(tokenizer("a", verbose=False).input_ids)
    for start in range(len(full) - len(bare) + 1):
        if full[start : start + len(bare)] == bare:
            return full[:start]
    return []
