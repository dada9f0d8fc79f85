"""``polariscope probe``: what every attention head of a language model does, on texts."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from polariscope.cli._shared import Json, say

if TYPE_CHECKING:
    from collections.abc import Callable

    from polariscope.probe import ProbeResult

NAME = "probe"
HELP = (
    "Measure every attention head and every layer's output of a language model on texts: sink rate, entropy, largest "
    "weights, massive activations, each with an interval over documents."
)
EPILOG = "Example: polariscope probe smollm2-135m --data pydoc --limit 20 -o results/smollm2"

_SHOWN = {
    "sink_rate": "sink rate (Gu et al., first key)",
    "sink_rate_late": "sink rate without the first rows",
    "first_key_share": "share of the first key",
    "entropy": "entropy, nats",
    "normalized_entropy": "entropy / log(visible keys)",
    "max_weight": "largest weight of a row",
    "participation": "keys that take part, 1/ΣA²",
    "last_query_first_key": "first key, last query",
    "null_mass": "null mass, 1 − ΣA",
    "massive_max": "largest activation",
}


def command(
    model: Annotated[str, typer.Argument(help="See: polariscope ls models", metavar="MODEL")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write.")],
    data: Annotated[
        str,
        typer.Option(
            help="A .txt, .jsonl(.gz, .zst) or .parquet file, a folder of them, hub:NAME, pydoc, random-tokens or "
            "repeated-token."
        ),
    ] = "pydoc",
    max_length: Annotated[int, typer.Option(help="Tokens of a document; shorter ones are skipped and counted.")] = 256,
    limit: Annotated[int, typer.Option(help="Documents to measure.")] = 20,
    bos: Annotated[
        str, typer.Option(help="At position 1. auto: what the tokenizer does; on: its BOS token; off: nothing.")
    ] = "auto",
    eps: Annotated[str, typer.Option(help="Thresholds of the sink rate, comma-separated.")] = "0.3",
    seed: Annotated[int, typer.Option(help="Of the intervals' resampling, and of random texts.")] = 0,
    device: Annotated[str, typer.Option(help="cpu, cuda or cuda:1.")] = "cpu",
    dtype: Annotated[str, typer.Option(help="float32, bfloat16, float16, float64; auto: as stored.")] = "float32",
    revision: Annotated[str | None, typer.Option(help="Revision of a hub model.")] = None,
    trust_remote_code: Annotated[bool, typer.Option(help="Run code that comes with a hub model.")] = False,
    json: Json = False,
) -> None:
    options = {name: value for name, value in locals().items() if name not in ("output", "json")}
    from polariscope.files import check_output_folder, output_folder, settings_for

    thresholds = _numbers(eps)
    check_output_folder(output, NAME)
    from polariscope import models, probe
    from polariscope.probe import corpora
    from polariscope.probe.arguments import check_arguments

    check_arguments(max_length, limit, bos, thresholds, seed=seed)
    texts = corpora.read(data, seed=seed, count=limit)
    asked: dict[str, Any] = {"revision": revision, "trust_remote_code": trust_remote_code or None}
    loaded = models.load(model, device=device, dtype=dtype, **asked)
    with _progress(limit, max_length) as progress:
        result = probe.scan(
            loaded.model,
            loaded.tokenizer,
            texts,
            max_length=max_length,
            limit=limit,
            bos=bos,
            eps=thresholds,
            seed=seed,
            progress=progress,
        )
    identity = {"name": loaded.name, "source": loaded.source, "revision": loaded.revision}
    precision = {"dtype": loaded.dtype, "checkpoint_dtype": loaded.checkpoint_dtype}
    with output_folder(output, settings_for(NAME, options, model={**identity, **precision})) as folder:
        result.save(folder)
    say({"output": output, **result.summary}, _text(result, model, output), as_json=json)


def _numbers(text: str) -> tuple[float, ...]:
    from polariscope.errors import InputError

    try:
        return tuple(float(word) for word in text.split(","))
    except ValueError:
        raise InputError(
            "--eps", got=repr(text), expected="numbers separated by commas", fix="for example --eps 0.3,0.5"
        ) from None


@contextmanager
def _progress(limit: int, max_length: int) -> "Iterator[Callable[[int], None]]":
    """A bar on stderr: documents done, and tokens a second."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rate]}"))
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as bar:
        line = bar.add_task("documents", total=limit, rate="")

        def progress(done: int) -> None:
            seconds = bar.tasks[0].elapsed or 0.0
            bar.update(line, completed=done, rate=f"{done * max_length / max(seconds, 1e-9):.0f} tokens/s")

        yield progress


def _text(result: "ProbeResult", model: str, output: Path) -> str:
    summary = result.summary
    documents, network = summary["documents"], summary["model"]
    lines = [
        f"{model}: {network['layers']} layers × {network['heads']} heads, {network['dtype']}",
        f"{documents['measured']} documents of {summary['max_length']} tokens, {documents['too_short']} too short; "
        f"{summary['seconds']:.1f} s",
        f"at position 1: {_firsts(summary)} (BOS {summary['bos']['mode']})",
        "",
    ]
    for name, metric in summary["metrics"].items():
        if name in _SHOWN or name.startswith("sink_rate_"):
            label = _SHOWN.get(name, name.replace("sink_rate_", "sink rate, threshold "))
            lines.append(f"{label:<34} {metric['value']:>10.4g}   [{metric['low']:.4g}, {metric['high']:.4g}]")
    share = summary["sink_heads"]
    lines += [
        "",
        f"heads whose share of the first key is above {share['threshold']:g}: {share['share_by_first_key_share']:.1%}",
    ]
    layers = summary["massive_layers"]
    lines.append(f"layers with massive activations: {', '.join(map(str, layers)) if layers else 'none'}")
    if summary["bad_rows"]:
        lines.append(f"warning: {summary['bad_rows']} attention rows are not finite; their heads count without them")
    return "\n".join([*lines, "", f"written to {output}"])


def _firsts(summary: dict[str, Any] | Any) -> str:
    firsts = summary["first_tokens"]["at_position_1"]
    words = [f"{first['token']!r} in {first['documents']}" for first in firsts[:3]]
    return ", ".join(words) + (" …" if len(firsts) > 3 else "")
