"""One document to be measured: a text, or a rule that draws token ids."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polariscope.errors import InputError


@dataclass(frozen=True)
class Document:
    """A text. Whoever measures it tokenizes it.

    Args:
        id: what names it within its source, the same on every machine: compared results are paired by it.
        text: the text.
        meta: what the source says about it, for example ``pile_set_name``.
    """

    id: str
    text: str
    meta: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TokenDocument:
    """Token ids drawn by a rule, for any vocabulary and any length.

    Args:
        id: what names it; the same id and vocabulary give the same tokens.
        draw: the rule, (vocabulary ids (v,), length T) -> ids (T,).
        meta: what the source says about it.
    """

    id: str
    draw: Callable[[NDArray[np.int64], int], NDArray[np.int64]]
    meta: Mapping[str, Any] = field(default_factory=dict)

    def ids_for(self, tokenizer: Any, length: int) -> list[int]:
        """The T token ids, nothing put before them.

        Args:
            tokenizer: whose ids to draw from, without its special tokens.
            length: T.

        Raises:
            InputError: if T < 1 or the tokenizer has no ordinary token.
        """
        if length < 1:
            raise InputError("length", got=length, expected="at least 1 token", fix="give a larger length")
        return self.draw(ordinary_ids(tokenizer), length).tolist()


AnyDocument = Document | TokenDocument


def ordinary_ids(tokenizer: Any) -> NDArray[np.int64]:
    """All ids of a vocabulary but those of special tokens, in increasing order."""
    special = set(tokenizer.all_special_ids)
    special |= {key for key, token in getattr(tokenizer, "added_tokens_decoder", {}).items() if token.special}
    ids = np.setdiff1d(np.arange(len(tokenizer)), sorted(special))
    if not ids.size:
        raise InputError("tokenizer", got="special tokens only", expected="a vocabulary", fix="name another tokenizer")
    return ids
