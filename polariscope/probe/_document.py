"""One document to be measured."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polariscope.errors import InputError


@dataclass(frozen=True)
class Document:
    """A text, or a rule that draws token ids.

    Args:
        id: what names it within its source, the same on every machine: compared results are paired by it.
        text: the text; empty for a document of tokens.
        meta: what the source says about it, for example ``pile_set_name``.
        draw: for documents of tokens, the function (vocabulary ids (v,), length T) -> ids (T,).
    """

    id: str
    text: str
    meta: Mapping[str, Any] = field(default_factory=dict)
    draw: Callable[[NDArray[np.int64], int], NDArray[np.int64]] | None = None

    def ids_for(self, tokenizer: Any, length: int) -> list[int] | None:
        """The T token ids of a document of tokens; None for a text, which is tokenized by whoever measures it.

        Args:
            tokenizer: whose ids to draw from, without its special tokens.
            length: T.

        Raises:
            InputError: if T < 1 or the tokenizer has no ordinary token.
        """
        if self.draw is None:
            return None
        if length < 1:
            raise InputError("length", got=length, expected="at least 1 token", fix="give a larger length")
        return self.draw(ordinary_ids(tokenizer), length).tolist()


def ordinary_ids(tokenizer: Any) -> NDArray[np.int64]:
    """All ids of a vocabulary but those of special tokens, in increasing order."""
    special = set(tokenizer.all_special_ids)
    special |= {key for key, token in getattr(tokenizer, "added_tokens_decoder", {}).items() if token.special}
    ids = np.setdiff1d(np.arange(len(tokenizer)), sorted(special))
    if not ids.size:
        raise InputError("tokenizer", got="special tokens only", expected="a vocabulary", fix="name another tokenizer")
    return ids
