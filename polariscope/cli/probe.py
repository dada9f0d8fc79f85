"""``polariscope probe``: what every attention head of a transformer does, on texts or images."""

import shutil
from pathlib import Path
from typing import Annotated, Any

import typer

from polariscope.cli._probe_options import Request, with_preset
from polariscope.cli._shared import Json

NAME = "probe"
HELP = (
    "Measure every attention head and every layer's output of a transformer on texts: sink rate, entropy, largest "
    "weights, massive activations, each with an interval over documents."
)
EPILOG = "Example: polariscope probe smollm2-135m --data pydoc --limit 20 -o results/smollm2"


def command(
    context: typer.Context,
    model: Annotated[str, typer.Argument(help="See: polariscope ls models", metavar="MODEL")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write.")],
    data: Annotated[
        str,
        typer.Option(
            help="A .txt, .jsonl(.gz, .zst) or .parquet file, a folder of them, hub:NAME, pydoc, random-tokens or "
            "repeated-token."
        ),
    ] = "pydoc",
    subset: Annotated[str | None, typer.Option(help="Only documents with this meta.pile_set_name.")] = None,
    preset: Annotated[
        str | None,
        typer.Option(help="gu2024, paper, sun2024, streaming or barbero: lengths, limits and BOS as published."),
    ] = None,
    max_length: Annotated[int, typer.Option(help="Tokens of a document; shorter ones are skipped and counted.")] = 256,
    limit: Annotated[int | None, typer.Option(help="Documents to measure.")] = 20,
    bos: Annotated[
        str,
        typer.Option(
            help="At position 1. auto: what the tokenizer does; on: its BOS token; off: nothing; both: off and on, "
            "compared document by document."
        ),
    ] = "auto",
    eps: Annotated[str, typer.Option(help="Thresholds of the sink rate, comma-separated.")] = "0.3",
    layers: Annotated[str | None, typer.Option(help="Layers whose attention to measure, for example 0-3,7.")] = None,
    heads: Annotated[str | None, typer.Option(help="Heads to show, for example 0,2-4.")] = None,
    until_ci: Annotated[
        float | None,
        typer.Option(help="Stop when half the interval of --until-metric is at most this; --limit is then the most."),
    ] = None,
    until_metric: Annotated[str, typer.Option(help="The metric of --until-ci.")] = "sink_rate",
    seed: Annotated[int, typer.Option(help="Of the intervals' resampling, and of random texts.")] = 0,
    kernel: Annotated[str, typer.Option(help="What computes attention: auto, blocks or fused.")] = "auto",
    device: Annotated[str, typer.Option(help="cpu, cuda or cuda:1.")] = "cpu",
    dtype: Annotated[str, typer.Option(help="float32, bfloat16, float16, float64; auto: as stored.")] = "float32",
    revision: Annotated[str | None, typer.Option(help="Revision of a hub model.")] = None,
    trust_remote_code: Annotated[bool, typer.Option(help="Run code that comes with a hub model.")] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on where an interrupted run of this command was.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what it would cost in time and memory.")] = False,
    json: Json = False,
) -> None:
    request = Request(**with_preset(context, {name: x for name, x in locals().items() if name != "context"}))
    if request.resume and (done := request.finished()) is not None:
        return _say_finished(request, done)
    _run(request)
    return None


def _run(request: Request) -> None:
    from polariscope.files import check_output_folder

    arguments = request.arguments()
    if not request.dry_run:
        check_output_folder(request.output, NAME)
    from polariscope import models
    from polariscope.probe import corpora

    texts = corpora.read(request.data, seed=request.seed, subset=request.subset, count=request.limit or 100)
    asked: dict[str, Any] = {"revision": request.revision, "trust_remote_code": request.trust_remote_code or None}
    loaded = models.load(request.model, device=request.device, dtype=request.dtype, **asked)
    if request.dry_run:
        return _say_estimate(request, loaded, texts, arguments)
    identity = {"name": loaded.name, "source": loaded.source, "revision": loaded.revision}
    settings = request.settings({**identity, "dtype": loaded.dtype, "checkpoint_dtype": loaded.checkpoint_dtype})
    if request.bos == "both":
        return _both(request, loaded, arguments, settings)
    return _one(request, loaded, texts, arguments, settings)


def _one(request: Request, loaded: Any, texts: Any, arguments: dict[str, Any], settings: dict[str, Any]) -> None:
    from polariscope.cli._probe_text import text_of
    from polariscope.cli._shared import say
    from polariscope.files import output_folder

    result, checkpoint = _scan(request, loaded, texts, arguments, settings)
    with output_folder(request.output, settings) as folder:
        result.save(folder)
    checkpoint.remove()
    words = text_of(result.summary, request.model, request.limit, f"written to {request.output}")
    say({"output": request.output, **result.summary}, words, as_json=request.json)
    if result.summary["documents"]["broken"]:
        raise typer.Exit(1)


def _scan(
    request: Request, loaded: Any, texts: Any, arguments: dict[str, Any], settings: dict[str, Any], part: str = ""
) -> tuple[Any, Any]:
    """The result of one scan, and the state to remove once it is written."""
    from polariscope import probe
    from polariscope.cli._probe_text import kept, progress_bar
    from polariscope.probe.saving import Checkpoint

    checkpoint = Checkpoint(request.partial / part, request.identity(settings), resume=request.resume)
    with kept(request.partial), progress_bar(request.limit, request.max_length, part) as progress:
        result = probe.scan(
            loaded.model, loaded.tokenizer, texts, **arguments, progress=progress, checkpoint=checkpoint
        )
    return result, checkpoint


def _both(request: Request, loaded: Any, arguments: dict[str, Any], settings: dict[str, Any]) -> None:
    from polariscope.cli._probe_text import text_of_both
    from polariscope.cli._shared import say
    from polariscope.files import output_folder, write_json
    from polariscope.probe import compare, corpora
    from polariscope.probe.documents import prefix

    prefix(loaded.tokenizer, "on")  # refused before hours of "off"
    results, states = {}, []
    for bos in ("off", "on"):
        texts = corpora.read(request.data, seed=request.seed, subset=request.subset, count=request.limit or 100)
        results[bos], state = _scan(request, loaded, texts, {**arguments, "bos": bos}, settings, bos)
        states.append(state)
    compared = compare(results["off"], results["on"])
    summary = {**{bos: result.summary for bos, result in results.items()}, "comparison": compared.summary}
    with output_folder(request.output, settings) as folder:
        for name, result in (*results.items(), ("comparison", compared)):
            (folder / name).mkdir()
            result.save(folder / name)
            options = {**settings["options"], **({"bos": name} if name in results else {})}
            kind = NAME if name in results else "compare"
            write_json(folder / name / "settings.json", {**settings, "kind": kind, "options": options})
        write_json(folder / "results.json", summary)
        _stacked(folder, results)
    for state in states:
        state.remove()
    shutil.rmtree(request.partial, ignore_errors=True)
    say({"output": request.output, **summary}, text_of_both(summary, request), as_json=request.json)
    if any(result.summary["documents"]["broken"] for result in results.values()):
        raise typer.Exit(1)


def _stacked(folder: Path, results: dict[str, Any]) -> None:
    """The tables of both scans, one below the other, with a column that says which."""
    import pandas as pd

    from polariscope.probe.result import TABLES

    for name in TABLES:
        tables = [getattr(result, name).assign(bos=bos) for bos, result in results.items()]
        pd.concat(tables, ignore_index=True).to_parquet(folder / f"{name}.parquet", index=False)


def _say_estimate(request: Request, loaded: Any, texts: Any, arguments: dict[str, Any]) -> None:
    from polariscope.cli._probe_text import text_of_estimate
    from polariscope.cli._shared import say
    from polariscope.probe.estimating import estimate

    scans = 2 if request.bos == "both" else 1
    options = {name: arguments[name] for name in ("max_length", "limit", "eps", "layers", "kernel")}
    bos = "on" if request.bos == "both" else request.bos
    found = estimate(loaded.model, loaded.tokenizer, texts, bos=bos, **options)
    summary = {**found, "scans": scans, "seconds": scans * found["seconds"], "tokens": scans * found["tokens"]}
    say(summary, text_of_estimate(summary, request), as_json=request.json)


def _say_finished(request: Request, summary: dict[str, Any]) -> None:
    from polariscope.cli._probe_text import text_of, text_of_both
    from polariscope.cli._shared import say

    both = "comparison" in summary
    last = f"nothing to resume: {request.output} is complete"
    words = text_of_both(summary, request) if both else text_of(summary, request.model, request.limit, last)
    say({"output": request.output, **summary}, words, as_json=request.json)
