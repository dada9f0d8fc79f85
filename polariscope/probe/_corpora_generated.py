"""Sources that need no file."""

import functools
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from polariscope.errors import InputError
from polariscope.probe._document import Document, TokenDocument


def pydoc() -> Iterator[Document]:
    """The chapters of Python's language reference that ``help()`` shows, in the order of the module."""
    from pydoc_data.topics import topics

    for topic, text in topics.items():
        yield Document(topic, text)


def random_tokens(*, seed: int, count: int) -> Iterator[TokenDocument]:
    """Ids drawn uniformly and independently (Gu et al. 2024, arXiv:2410.10781, measure sinks on such inputs too)."""
    return _drawn("random-tokens", _uniform, seed, count)


def repeated_token(*, seed: int, count: int) -> Iterator[TokenDocument]:
    """One id, drawn uniformly, T times: without positions every head must then be uniform."""
    return _drawn("repeated-token", _repeated, seed, count)


def _drawn(name: str, rule: Callable[..., NDArray[np.int64]], seed: int, count: int) -> Iterator[TokenDocument]:
    if seed < 0:
        raise InputError("seed", got=seed, expected="a number from 0 on", fix="give another seed")
    if count < 1:
        raise InputError("count", got=count, expected="at least 1 document", fix="give a larger count")
    for index in range(count):
        draw = functools.partial(rule, seed=seed, index=index)
        yield TokenDocument(f"{name}:{seed}:{index}", draw)


def _uniform(ids: NDArray[np.int64], length: int, *, seed: int, index: int) -> NDArray[np.int64]:
    return np.random.default_rng([seed, index]).choice(ids, size=length)


def _repeated(ids: NDArray[np.int64], length: int, *, seed: int, index: int) -> NDArray[np.int64]:
    return np.full(length, np.random.default_rng([seed, index]).choice(ids))
