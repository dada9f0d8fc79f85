"""What a probe will cost, from its first documents."""

import itertools
import resource
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Any

import torch

from polariscope.probe._document import AnyDocument
from polariscope.probe.arguments import check_arguments, check_window
from polariscope.probe.choosing import Chosen
from polariscope.probe.documents import tokens_of
from polariscope.probe.scanning import engine_of
from polariscope.probe.session import prepare

# Tables and intervals hold the records about so many times at once.
COPIES = 4


def estimate(
    model: torch.nn.Module,
    tokenizer: Any,
    texts: Iterable[str | AnyDocument],
    *,
    max_length: int = 256,
    limit: int | None = None,
    bos: str = "auto",
    eps: Sequence[float] = (0.3,),
    layers: Sequence[int] | None = None,
    kernel: str = "auto",
) -> dict[str, Any]:
    """Measure one document for practice and one with the clock, and count the others.

    Args:
        model, tokenizer, texts, max_length, limit, bos, eps, layers, kernel: as for `polariscope.probe.scan`.

    Returns:
        ``documents`` and ``tokens`` that would be measured, ``too_short``, ``seconds`` for all of them,
        ``seconds_a_document``, ``model_bytes`` of the weights, ``record_bytes`` kept of all documents, ``peak_bytes``
        of memory (of the device where that is an accelerator), and ``engines``, layer by layer.

    Raises:
        InputError: as `polariscope.probe.scan`.
    """
    check_arguments(max_length, limit, bos, eps)
    check_window(model, max_length)
    chosen = Chosen(tokens_of(texts, tokenizer, max_length, bos), max_length, limit)
    documents = iter(chosen)
    first = chosen.first(documents)
    session = prepare(model, tokenizer, first, eps, layers=layers, engine=engine_of(kernel, None))
    second = next(documents, first)
    with session.open() as measure:
        measure(first)
        started = time.perf_counter()
        record, _ = measure(second)
        seconds = time.perf_counter() - started
    count = 1 + (second is not first) + sum(1 for _ in documents)
    kept = sum(array.nbytes for array in record.arrays().values()) * count
    engines: dict[str, list[int]] = {}
    for site in session.sites:
        engines.setdefault(site.engine, []).append(site.layer)
    weights = itertools.chain(model.parameters(), model.buffers())
    return {
        "documents": count,
        "too_short": len(chosen.skipped),
        "tokens": count * max_length,
        "seconds": seconds * count,
        "seconds_a_document": seconds,
        "model_bytes": sum(x.nbytes for x in weights),
        "record_bytes": kept,
        "peak_bytes": _peak(session.body.model.device) + COPIES * kept,
        "engines": {name: sorted(set(numbers)) for name, numbers in engines.items()},
    }


def _peak(device: torch.device) -> int:
    """The most memory used so far, in bytes: of the accelerator, or of this process."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
