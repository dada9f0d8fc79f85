"""The probe: documents in, tables with intervals out."""

import functools
import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch

from polariscope.errors import InputError
from polariscope.probe import blocks, layer_tables, summary, tables
from polariscope.probe._document import AnyDocument
from polariscope.probe.arguments import Until, check_arguments, check_window
from polariscope.probe.attention import Call, Engine, MapStatistics
from polariscope.probe.choosing import Chosen
from polariscope.probe.documents import Tokens, prefix, tokens_of
from polariscope.probe.engine import choose
from polariscope.probe.gathered import Gathered
from polariscope.probe.intervals import Intervals
from polariscope.probe.result import ProbeResult
from polariscope.probe.saving import Checkpoint
from polariscope.probe.session import Session, check_choice, prepare
from polariscope.probe.statistics import metric_names


def scan(
    model: torch.nn.Module,
    tokenizer: Any,
    texts: Iterable[str | AnyDocument],
    *,
    max_length: int = 256,
    limit: int | None = None,
    bos: str = "auto",
    eps: Sequence[float] = (0.3,),
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
    until: Until | None = None,
    progress: Callable[[int], None] | None = None,
    confidence: float = 0.95,
    seed: int = 0,
    kernel: str = "auto",
    rows: int | None = None,
    checkpoint: Checkpoint | None = None,
) -> ProbeResult:
    """Measure every attention head and every layer's output of a transformer on documents or images.

    Each document is cut to T tokens and run alone, in evaluation mode, without gradients and without the language
    model's head. The attention is computed exactly, in blocks of queries, and never held as a whole map. Self-checks on
    the first document come before (`polariscope.probe.checks`). The model is as before afterwards, also after an
    exception.

    Args:
        model: a model of transformers: decoder, encoder, encoder-decoder or vision transformer.
        tokenizer: its tokenizer; for a vision transformer its image processor, or None for images that are tensors.
        texts: strings, or the documents of `polariscope.probe.corpora`; images: `polariscope.probe.images`.
        max_length: T, tokens of each document, BOS included. Shorter documents are skipped and counted.
        limit: number of documents to measure; None: all.
        bos: what stands before the text: ``auto`` what the tokenizer puts there, ``on`` its BOS token, ``off`` nothing.
        eps: thresholds of the sink rate; the first gives the column ``sink_rate``.
        layers: which layers' attention to measure; None: all. Layer outputs are measured in all.
        heads: which heads to show; None: all.
        until: end as soon as an interval is narrow enough.
        progress: called with the number of documents measured, after each.
        confidence: coverage of the intervals.
        seed: of the resampling of documents for the intervals.
        kernel: what computes attention, one of `polariscope.probe.engine.KERNELS`; named in the result, layer by layer.
        rows: queries in a block of the engine "blocks"; None: as many as fit.
        checkpoint: where to keep what was measured while it runs.

    Returns:
        A `ProbeResult`.

    Raises:
        InputError: for arguments out of range, a model that cannot be measured, a self-check that fails, and texts of
            which none is long enough.
    """
    check_arguments(max_length, limit, bos, eps, confidence, seed, until, rows)
    check_window(model, max_length)
    chosen = Chosen(tokens_of(texts, tokenizer, max_length, bos), max_length, limit)
    documents = iter(chosen)
    first = chosen.first(documents)
    started = time.perf_counter()
    session = prepare(model, tokenizer, first, eps, layers=layers, engine=engine_of(kernel, rows))
    wanted = None if heads is None else frozenset(heads)
    check_choice("--heads", wanted, set(range(max(site.heads for site in session.sites))), "heads")
    intervals = Intervals(confidence, seed)
    found = Gathered(metric_names(eps), eps[0])
    gather(found, itertools.chain([first], documents), session, intervals, until, progress, checkpoint)
    about = {
        "max_length": max_length,
        "bos": {"mode": bos, "prefix": session.words(prefix(tokenizer, bos))},
        "eps": list(eps),
        "confidence": confidence,
        "resampling_seed": seed,
        "until": None if until is None else until.record(found, intervals),
        "model": summary.of_model(session),
        "self_checks": session.examination.record,
        "seconds": time.perf_counter() - started,
    }
    context = tables.Context(session.body, session.sites, session.words, intervals, wanted)
    return result_of(found, chosen.skipped, context, about, getattr(texts, "broken", ()))


def engine_of(kernel: str, rows: int | None) -> Engine:
    """What computes attention: chosen call by call, or blocks of a size that is given."""
    if rows is not None:
        return functools.partial(blocks.attend, rows=rows)

    def chosen_engine(call: Call) -> tuple[torch.Tensor, MapStatistics]:
        return choose(call, kernel)(call)

    return chosen_engine


def gather(
    found: Gathered,
    documents: Iterator[Tokens],
    session: Session,
    intervals: Intervals,
    until: Until | None,
    progress: Callable[[int], None] | None,
    checkpoint: Checkpoint | None,
) -> None:
    """Measure the documents into ``found``, in order, without those that an earlier run has measured."""
    if checkpoint is not None:
        checkpoint.restore(found)
    done = len(found.records)
    for tokens, record in zip(itertools.islice(documents, done), list(found.records), strict=False):
        if tokens.id != record.id or tokens.ids[: len(record.first_ids)] != record.first_ids.tolist():
            raise InputError(
                "resume",
                got=f"document {tokens.id} where {record.id} was measured",
                expected="the same documents in the same order",
                fix="start anew without --resume",
            )
    if until is not None and until.reached(found, intervals):
        return
    with session.open() as measure:
        for tokens in documents:
            record, measured = measure(tokens)
            found.add(record, measured)
            if checkpoint is not None:
                checkpoint.add(found)
            if progress is not None:
                progress(len(found.records))
            if until is not None and until.reached(found, intervals):
                break
    if checkpoint is not None:
        checkpoint.save(found)


def result_of(
    found: Gathered,
    skipped: Sequence[Tokens],
    context: tables.Context,
    about: dict[str, Any],
    broken: Sequence[str] = (),
) -> ProbeResult:
    """The tables and the summary; ``broken`` says which files could not be read to their end."""
    by_layer = layer_tables.document_layers_table(found, context)
    layers = layer_tables.layers_table(by_layer, context)
    largest = summary.largest_activations(by_layer, len(found.records))
    short = [(tokens.id, tokens.count) for tokens in skipped]
    return ProbeResult(
        heads=tables.heads_table(found, context),
        layers=layers,
        positions=tables.positions_table(found, context),
        documents=tables.documents_table(found, short, largest, context.words),
        activations=layer_tables.activations_table(found, context),
        document_heads=tables.document_heads_table(found, context),
        document_layers=by_layer,
        summary={
            **summary.results(found, by_layer, layers, context),
            "documents": {"measured": len(found.records), "too_short": len(skipped), "broken": list(broken)},
            **about,
        },
    )
