"""The probe: documents in, tables with intervals out."""

import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from polariscope.errors import InputError, unknown_name
from polariscope.probe import checks, hooks, summary, tables
from polariscope.probe._document import AnyDocument
from polariscope.probe.body import Body, body_of, evaluating
from polariscope.probe.documents import BOS_MODES, Tokens, prefix, strings, tokens_of
from polariscope.probe.gathered import Gathered, Intervals
from polariscope.probe.result import ProbeResult
from polariscope.probe.statistics import Recorder, metric_names


def scan(
    model: torch.nn.Module,
    tokenizer: Any,
    texts: Iterable[str | AnyDocument],
    *,
    max_length: int = 256,
    limit: int | None = None,
    bos: str = "auto",
    eps: Sequence[float] = (0.3,),
    progress: Callable[[int], None] | None = None,
    confidence: float = 0.95,
    seed: int = 0,
    rows: int | None = None,
) -> ProbeResult:
    """Measure every attention head and every layer's output of a causal language model on documents.

    Each document is cut to T tokens and run alone, in evaluation mode, without gradients and without the language
    model's head. The attention is computed exactly, in blocks of queries, and never held as a whole map. Three
    self-checks on the first document come before (`polariscope.probe.checks`). The model is as before afterwards.

    Args:
        model: a causal language model of transformers whose attention goes through AttentionInterface.
        tokenizer: its tokenizer.
        texts: strings, or the documents of `polariscope.probe.corpora`.
        max_length: T, tokens of each document, BOS included. Shorter documents are skipped and counted.
        limit: number of documents to measure; None: all.
        bos: what stands before the text: ``auto`` what the tokenizer puts there, ``on`` its BOS token, ``off`` nothing.
        eps: thresholds of the sink rate; the first gives the column ``sink_rate``.
        progress: called with the number of documents measured, after each.
        confidence: coverage of the intervals.
        seed: of the resampling of documents for the intervals.
        rows: queries in a block; None: 128, fewer where a block would pass 32 MiB.

    Returns:
        A `ProbeResult`.

    Raises:
        InputError: for arguments out of range, a model that cannot be measured, a self-check that fails, and texts of
            which none is long enough.
    """
    check_arguments(max_length, limit, bos, eps, confidence, seed)
    body = body_of(model)
    _check_window(body, max_length)
    chosen = _Chosen(tokens_of(texts, tokenizer, max_length, bos), max_length, limit)
    found = Gathered(metric_names(eps), eps[0])
    started = time.perf_counter()
    checked = _measure(body, chosen, found, eps, progress, rows)
    about = {
        "max_length": max_length,
        "bos": {"mode": bos, "prefix": strings(tokenizer, prefix(tokenizer, bos))},
        "eps": list(eps),
        "confidence": confidence,
        "resampling_seed": seed,
        "model": summary.of_model(body),
        "self_checks": checked,
        "seconds": time.perf_counter() - started,
    }
    return _result(found, chosen.skipped, tokenizer, Intervals(confidence, seed), about)


def _measure(
    body: Body,
    chosen: "_Chosen",
    found: Gathered,
    eps: Sequence[float],
    progress: Callable[[int], None] | None,
    rows: int | None,
) -> dict[str, Any]:
    """Check the model on the first document, then measure all of them into ``found``; what the checks found."""
    with evaluating(body.model):
        documents = iter(chosen)
        first = next(documents, None)
        if first is None:
            raise chosen.nothing()
        checked = checks.check(body, first.ids, rows)
        recorder = Recorder(len(body.layers), eps)
        with hooks.measuring(body, recorder.on_attention, recorder.on_output, rows):
            for tokens in itertools.chain([first], documents):
                body(tokens.ids)
                found.add(tokens, recorder.finish())
                if progress is not None:
                    progress(len(found.tokens))
    return checked


def _result(
    found: Gathered, skipped: Sequence[Tokens], tokenizer: Any, intervals: Intervals, about: dict[str, Any]
) -> ProbeResult:
    by_layer = tables.document_layers_table(found, tokenizer)
    layers = tables.layers_table(by_layer, intervals)
    return ProbeResult(
        heads=tables.heads_table(found, intervals),
        layers=layers,
        positions=tables.positions_table(found, tokenizer),
        documents=tables.documents_table(found, skipped, by_layer, tokenizer),
        document_heads=tables.document_heads_table(found),
        document_layers=by_layer,
        summary={
            **summary.results(found, by_layer, layers, intervals, tokenizer),
            "documents": {"measured": len(found.tokens), "too_short": len(skipped)},
            **about,
        },
    )


@dataclass
class _Chosen:
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
                if len(tokens.ids) == self.length:
                    yield tokens
                    break
                self.skipped.append(Tokens(tokens.id, [], tokens.count))
            else:
                return

    def nothing(self) -> InputError:
        """The error for texts of which none is long enough."""
        longest = max((tokens.count for tokens in self.skipped), default=0)
        return InputError(
            "documents",
            got=f"{len(self.skipped)} documents, the longest of {longest} tokens",
            expected=f"at least one of {self.length} tokens",
            fix=f"try --max-length {longest}" if longest >= 2 else "give other texts",
        )


def check_arguments(
    max_length: int, limit: int | None, bos: str, eps: Sequence[float], confidence: float = 0.95, seed: int = 0
) -> None:
    """Refuse arguments of `scan` that are out of range, which needs no model."""
    if bos not in BOS_MODES:
        raise unknown_name("BOS mode", bos, BOS_MODES)
    for name, value in (("max_length", max_length), ("limit", limit or 1), ("seed", seed)):
        if not isinstance(value, int):
            raise InputError(name, got=repr(value), expected="a whole number", fix=f"give {name} as an integer")
    if not isinstance(eps, Sequence) or not all(isinstance(e, float | int) for e in eps):
        raise InputError("eps", got=repr(eps), expected="a sequence of numbers", fix="for example eps=(0.3,)")
    if seed < 0:
        raise InputError("--seed", got=seed, expected="0 or more", fix="0 is the default")
    if max_length < 2:
        raise InputError("--max-length", got=max_length, expected="2 tokens or more", fix="256 is the default")
    if limit is not None and limit < 1:
        raise InputError("--limit", got=limit, expected="1 document or more", fix="give a positive number")
    if not eps or not all(0 < e < 1 for e in eps) or len({f"{e:g}" for e in eps}) < len(eps):
        raise InputError(
            "--eps", got=list(eps), expected="different numbers between 0 and 1", fix="0.3 is the usual one"
        )
    if not 0 < confidence < 1:
        raise InputError("confidence", got=confidence, expected="a number between 0 and 1", fix="0.95 is usual")


def _check_window(body: Body, max_length: int) -> None:
    window = getattr(body.model.config.get_text_config(decoder=True), "max_position_embeddings", None)
    if window is not None and max_length > window:
        raise InputError(
            "--max-length",
            got=max_length,
            expected=f"at most {window}, the positions that this model was trained for",
            fix=f"--max-length {window} or less",
        )
