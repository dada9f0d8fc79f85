"""``polariscope train``: one run of a small transformer on a synthetic task."""

from pathlib import Path
from typing import Annotated, Any

import typer

from polariscope.cli._shared import Json, say

NAME = "train"
HELP = (
    "Train a small transformer with an attention kind of your choice, and measure what its prediction hangs on. "
    "An option that is left out takes the paper's value for the task; those in brackets are classification's."
)
EPILOG = "Example: polariscope train classification --attention sigmoid --seed 1 -o results/sigmoid-1"


def command(
    task: Annotated[str, typer.Argument(help="See: polariscope ls tasks", metavar="TASK")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write.")],
    attention: Annotated[str, typer.Option(help="See: polariscope ls attention")] = "softmax",
    seed: Annotated[int, typer.Option(help="Of all random streams.")] = 0,
    lr: Annotated[float | None, typer.Option(help="Learning rate (1e-3).")] = None,
    epochs: Annotated[int | None, typer.Option(help="Passes over the training sequences (10); or --steps.")] = None,
    steps: Annotated[int | None, typer.Option(help="Optimizer steps, instead of --epochs.")] = None,
    layers: Annotated[int | None, typer.Option(help="Depth (1).")] = None,
    heads: Annotated[int | None, typer.Option(help="Attention heads per layer (1).")] = None,
    dim: Annotated[int | None, typer.Option(help="Width (128).")] = None,
    mlp: Annotated[bool | None, typer.Option("--mlp/--no-mlp", help="With an MLP or without (--no-mlp).")] = None,
    layernorm: Annotated[
        bool | None, typer.Option("--layernorm/--no-layernorm", help="With LayerNorm or without (--no-layernorm).")
    ] = None,
    positions: Annotated[str | None, typer.Option(help="none, add or concat (none).")] = None,
    vocabulary: Annotated[int | None, typer.Option(help="Number of token ids (41).")] = None,
    length: Annotated[int | None, typer.Option(help="Sequence length (11).")] = None,
    batch_size: Annotated[int | None, typer.Option(help="Sequences per step (256).")] = None,
    optimizer: Annotated[str, typer.Option(help="adamw or sgd.")] = "adamw",
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    json: Json = False,
) -> None:
    given = {name: value for name, value in locals().items() if name not in ("output", "json")}
    from rich.console import Console
    from rich.progress import Progress

    from polariscope.train import RunSettings, run

    settings = RunSettings(**given)
    with Progress(console=Console(stderr=True), transient=True) as bar:
        line = bar.add_task(f"{task}, {attention}", total=settings.total_steps())
        result = run(settings, output, progress=lambda done, total: bar.update(line, completed=done))
    say({"output": output, **result.metrics}, _summary(result.metrics, output), as_json=json)
    if result.metrics["status"] != "ok":
        raise typer.Exit(1)


def _summary(metrics: dict[str, Any], output: Path) -> str:
    title = f"{metrics['task']}, {metrics['attention']} attention, seed {metrics['seed']}: {metrics['status']}"
    lines = [f"{title} after {metrics['steps']} steps, {metrics['seconds']:.1f} s"]
    if metrics["status"] != "ok":
        return "\n".join([*lines, metrics["message"], f"written to {output}"])
    lines += [f"accuracy {metrics['accuracy']:.4f}, loss {metrics['loss']:.3g}", ""]
    names = list(metrics["heads"][0])
    widths = [max(len(name), 7) for name in names]
    lines.append("  ".join(f"{name:>{width}}" for name, width in zip(names, widths, strict=True)))
    for head in metrics["heads"]:
        cells = zip(head.values(), widths, strict=True)
        lines.append("  ".join(f"{_cell(value):>{width}}" for value, width in cells))
    return "\n".join([*lines, "", f"written to {output}"])


def _cell(value: float | None) -> str:
    return "–" if value is None else str(value) if isinstance(value, int) else f"{value:.5f}"
