"""What ``polariscope probe`` shows on the screen."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polariscope.cli._shared import aligned

if TYPE_CHECKING:
    from polariscope.cli._probe_options import Request

_SHOWN = {
    "sink_rate": "sink rate (Gu et al., first key)",
    "sink_rate_late": "sink rate without the first rows",
    "sink_keys": "keys that are sinks, of a head",
    "first_key_share": "share of the first key",
    "entropy": "entropy, nats",
    "normalized_entropy": "entropy / log(visible keys)",
    "max_weight": "largest weight of a row",
    "participation": "keys that take part, 1/ΣA²",
    "last_query_first_key": "first key, last query",
    "null_mass": "null mass, 1 − ΣA",
    "massive_max": "largest activation",
}


@contextmanager
def progress_bar(limit: int | None, max_length: int, part: str = "") -> Iterator[Callable[[int], None]]:
    """A bar on stderr: documents done, and tokens a second."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rate]}"))
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as bar:
        line = bar.add_task(f"documents, BOS {part}" if part else "documents", total=limit, rate="")
        before: list[int] = []  # what an earlier run had done

        def progress(done: int) -> None:
            before.append(done - 1) if not before else None
            seconds = bar.tasks[0].elapsed or 0.0
            tokens = (done - before[0]) * max_length
            bar.update(line, completed=done, rate=f"{tokens / max(seconds, 1e-9):.0f} tokens/s")

        yield progress


@contextmanager
def kept(partial: Path) -> Iterator[None]:
    """Say, after an interruption, where the work so far is."""
    try:
        yield
    except KeyboardInterrupt:
        sys.stderr.write(f"interrupted; what was measured is kept in {partial}: add --resume to go on\n")
        raise


def text_of(summary: Mapping[str, Any], model: str, limit: int | None, last: str) -> str:
    """A result in words."""
    documents, network = summary["documents"], summary["model"]
    until = summary["until"]
    wanted = f" ({limit} asked for)" if limit and documents["measured"] < limit and not until else ""
    lines = [
        f"{model}: {network['layers']} layers × {network['heads']} heads, {network['dtype']}",
        f"{documents['measured']} documents of {summary['max_length']} tokens{wanted}, {documents['too_short']} too "
        f"short; {summary['seconds']:.1f} s",
        *_until(until),
        f"at position 1: {_firsts(summary)} (BOS {summary['bos']['mode']})",
        f"engine: {_engines(network['engines'])}",
        "",
    ]
    for name, metric in summary["metrics"].items():
        if label := _label(name):
            lines.append(f"{label:<34} {metric['value']:>10.4g}   [{metric['low']:.4g}, {metric['high']:.4g}]")
    share = summary["sink_heads"]
    lines += [
        "",
        f"heads whose share of the first key is above {share['threshold']:g}: {share['share_by_first_key_share']:.1%}",
    ]
    layers = summary["massive_layers"]
    lines.append(f"layers with massive activations: {', '.join(map(str, layers)) if layers else 'none'}")
    return "\n".join([*lines, *_warnings(summary), "", last])


def _until(until: Mapping[str, Any] | None) -> list[str]:
    if until is None:
        return []
    if until["reached"]:
        return [f"stopped by itself: {until['metric']} is known to ± {until['half_width']:g}"]
    return [f"the documents ended before {until['metric']} was known to ± {until['half_width']:g}"]


def _label(name: str) -> str:
    """How a metric is shown; "" for one that is only in the files."""
    end = name.removeprefix("sink_rate_")
    numeric = end != name and end.replace(".", "").replace("e-", "").isdigit()
    return f"sink rate, threshold {end}" if numeric else _SHOWN.get(name, "")


def _engines(engines: Mapping[str, list[int]]) -> str:
    if len(engines) == 1:
        return next(iter(engines))
    return "; ".join(f"{name} in layers {', '.join(map(str, layers))}" for name, layers in engines.items())


def _warnings(summary: Mapping[str, Any]) -> list[str]:
    lines = [f"warning: not read to its end: {what}" for what in summary["documents"]["broken"]]
    if summary["bad_rows"]:
        lines.append(f"warning: {summary['bad_rows']} attention rows are not finite; their heads count without them")
    if summary["nonfinite"]:
        lines.append(f"warning: {summary['nonfinite']} entries of layer outputs are not finite and left out")
    return lines


def _firsts(summary: Mapping[str, Any]) -> str:
    firsts = summary["first_tokens"]["at_position_1"]
    words = [f"{first['token']!r} in {first['documents']}" for first in firsts[:3]]
    return ", ".join(words) + (" …" if len(firsts) > 3 else "")


def text_of_both(summary: Mapping[str, Any], request: "Request") -> str:
    """Both BOS modes side by side."""
    compared = summary["comparison"]
    off, on = summary["off"], summary["on"]
    rows = [("", "BOS off", "BOS on", "on − off", "interval")]
    for name, metric in compared["metrics"].items():
        if label := _label(name):
            difference = metric["difference"]
            interval = f"[{difference['low']:.4g}, {difference['high']:.4g}]"
            rows.append((label, f"{metric['a']:.4g}", f"{metric['b']:.4g}", f"{difference['value']:.4g}", interval))
    first = f"{request.model}: {compared['documents']['paired']} documents of {request.max_length} tokens, in pairs"
    positions = [f"at position 1, {name}: {_firsts(x)}" for name, x in (("off", off), ("on", on))]
    warned = list(dict.fromkeys([*_warnings(off), *_warnings(on)]))
    return "\n".join([first, *positions, "", *aligned(rows), *warned, "", f"written to {request.output}"])


def text_of_estimate(summary: Mapping[str, Any], request: "Request") -> str:
    """An estimate in words."""
    scans = " twice (BOS off and on)" if summary["scans"] == 2 else ""
    rows = [
        (
            "documents",
            f"{summary['documents']} of {request.max_length} tokens{scans}, {summary['too_short']} too short",
        ),
        ("time", f"about {_time(summary['seconds'])}, {summary['seconds_a_document']:.3g} s a document"),
        ("memory", f"about {_size(summary['peak_bytes'])} at most, {_size(summary['model_bytes'])} of it weights"),
        ("kept of all documents", _size(summary["record_bytes"])),
        ("engine", _engines(summary["engines"])),
    ]
    return "\n".join([f"{request.model}: nothing was written; this run would take", *aligned(rows)])


def _time(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _size(count: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} GB"
