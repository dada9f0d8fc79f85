"""``polariscope flow``: gradient flows of small attention models, solved to any time."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from polariscope.cli import _grid
from polariscope.cli._shared import Json, aligned, options_given, progress_bar, say
from polariscope.errors import InputError

NAME = "flow"
HELP = "Solve gradient flows of small attention models, to any time: by file, by preset, or a phase diagram."
EPILOG = "Example: polariscope flow --preset logistic --n 8 --seed 0 --log-t 1,10,1e6 -o flow.json"


def command(
    context: typer.Context,
    problem: Annotated[Path | None, typer.Argument(help="JSON file: one problem or a list.", metavar="PROBLEM")] = None,
    preset: Annotated[
        str | None, typer.Option(help="Make a problem instead; named by its loss (polariscope ls losses).")
    ] = None,
    n: Annotated[int, typer.Option(help="Number of keys of the preset.", min=1)] = 8,
    d: Annotated[int | None, typer.Option(help="Dimension of the preset; n if not given.", min=1)] = None,
    seed: Annotated[int, typer.Option(help="Seed of the preset.", min=0)] = 0,
    t: Annotated[str | None, typer.Option(help="Times, as 1,10,100; instead of the problem's.")] = None,
    log_t: Annotated[str | None, typer.Option(help="The same as log t, for times beyond 1e308.")] = None,
    rtol: Annotated[float, typer.Option(help="Accuracy of the attention weights.")] = 1e-9,
    grid: Annotated[
        Path | None, typer.Option(help="Solve a phase diagram instead: a YAML file.", metavar="SPEC")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="JSON file to write (flow.json); with --grid a folder (grid).")
    ] = None,
    json: Json = False,
) -> None:
    if grid is not None:
        _grid.run(context, grid, output or Path("grid"), as_json=json)
        return
    output = output or Path("flow.json")
    from polariscope.files import check_output_file, read_json, write_json

    check_output_file(output)
    if (problem is None) == (preset is None):
        raise InputError(
            "what to solve",
            got="nothing" if problem is None else "a problem file and a preset",
            expected="a problem file, --preset, or --grid",
            fix="try polariscope flow --preset logistic -o flow.json",
        )
    if problem is not None and (given := options_given(context, ("n", "d", "seed"))):
        got, fix = f"{problem.name} and {', '.join(given)}", "drop them: the file says everything but times"
        raise InputError("options", got=got, expected="them with --preset only", fix=fix)
    times = {"t": _numbers("--t", t), "log_t": _numbers("--log-t", log_t)}
    raw = _preset(preset, n, d, seed) if preset is not None else read_json(problem)  # pyright: ignore[reportArgumentType]
    several = isinstance(raw, list)

    from polariscope.flow import read_problems, solve_many

    read_problems(raw, **times)  # every problem is good before the first is solved
    problems = raw if several else [raw]
    with progress_bar(len(problems)) as progress:
        results = solve_many(problems, **times, rtol=rtol, progress=progress)
    found = [result.to_dict() for result in results]
    write_json(output, found if several else found[0])
    failed = [result.name for result in results if not result.complete]
    rows = [_row(result) for result in results]
    count = f"{len(results) - len(failed)} of {len(results)}"
    text = f"{_table(rows)}\n{count} reached every time asked for; written to {output}"
    say({"output": str(output), "failed": failed, "problems": rows}, text, as_json=json)
    if failed:
        raise typer.Exit(1)


def _preset(name: str, n: int, d: int | None, seed: int) -> Any:
    from polariscope import flow

    return flow.preset(name, n=n, d=d, seed=seed)


def _numbers(option: str, text: str | None) -> list[float] | None:
    """The numbers of a comma-separated option."""
    if text is None:
        return None
    try:
        return [float(word) for word in text.split(",")]
    except ValueError:
        raise InputError(
            option, got=repr(text), expected="numbers with commas between them", fix="write 1,10,100"
        ) from None


def _row(result: Any) -> dict[str, Any]:
    """What the table shows of one result, at the last time."""
    holds = [check.holds for check in result.checks]
    return {
        "problem": result.name,
        "status": result.status,
        "log_t": float(result.log_t[-1]),
        "max_s": float(result.s[-1].max()),
        "normalized_entropy": None if result.normalized_entropy is None else float(result.normalized_entropy[-1]),
        "checks_held": holds.count(True),
        "checks_not_applicable": holds.count(None),
        "checks_failed": [check.name for check in result.checks if check.holds is False],
        "message": result.message,
    }


def _table(rows: Sequence[dict[str, Any]]) -> str:
    """One line a problem, columns aligned; what failed is said below."""
    head = ("problem", "status", "last t", "max s", "H/log n", "checks")
    lines = aligned([head, *(_cells(row) for row in rows)])
    said = ("Every time asked for was reached.",)
    notes = [f"{row['problem']}: {row['message']}" for row in rows if row["message"] not in said]
    notes += [
        f"{row['problem']}: does not hold: {', '.join(row['checks_failed'])}" for row in rows if row["checks_failed"]
    ]
    return "\n".join([*lines, *notes])


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    entropy, failed = row["normalized_entropy"], len(row["checks_failed"])
    beside = ((failed, "failed"), (row["checks_not_applicable"], "not applicable"))
    checks = ", ".join([f"{row['checks_held']} held", *(f"{count} {what}" for count, what in beside if count)])
    return (
        row["problem"],
        row["status"],
        _time(row["log_t"]),
        f"{row['max_s']:.6f}",
        "-" if entropy is None else f"{entropy:.2e}" if 0 < entropy < 1e-3 else f"{entropy:.4f}",
        checks,
    )


def _time(log_t: float) -> str:
    """t where a float holds it, else e to its logarithm."""
    from math import exp

    return f"{exp(log_t):.4g}" if log_t < 700 else f"e^{log_t:.6g}"
