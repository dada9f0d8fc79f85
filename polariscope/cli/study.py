"""``polariscope study``: every claim as an experiment with a verdict, and one report."""

from pathlib import Path
from typing import Annotated, Any

import typer

from polariscope.cli._shared import Json, say

NAME = "study"
HELP = "Run the paper's claims as experiments, with a verdict each, and write claims.json and report.html."
EPILOG = "Example: polariscope study --only C1,C3 -o results/study"


def command(
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write.")],
    scale: Annotated[str, typer.Option(help="quick: minutes on two cores; paper: more seeds and documents.")] = "quick",
    only: Annotated[str | None, typer.Option(help="Claims to run, comma-separated: C1,C3. Default: all.")] = None,
    json: Json = False,
) -> None:
    from polariscope import report
    from polariscope.claims import SCALES, study
    from polariscope.errors import unknown_name
    from polariscope.files import output_folder, settings_for

    if scale not in SCALES:
        raise unknown_name("scale", scale, SCALES)
    ids = study.select(None if only is None else only.split(","))
    settings = settings_for("study", {"scale": scale, "only": ids, "output": output})
    with output_folder(output, settings) as folder:
        with _Live() as live:
            records = study.run(folder, ids, scale, progress=live.progress, finished=live.finished)
        report.write([folder], folder / "report.html")
    lines = [f"{r['id']:<4} {r['verdict']:<14} {r['claim']}" for r in records]
    lines += ["", f"report: {output / 'report.html'}", f"claims: {output / 'claims.json'}"]
    say({"output": output, "claims": records}, "\n".join(lines), as_json=json)
    if any(record["verdict"] == "error" for record in records):
        raise typer.Exit(1)


class _Live:
    """Progress of the running claim and a line per finished one, on stderr."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        what = TextColumn("{task.fields[what]}")
        columns = (TextColumn("{task.description}"), BarColumn(24), what, TimeElapsedColumn())
        self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task("start", total=1, what="")
        self._current = ""

    def __enter__(self) -> "_Live":
        self._bar.start()
        return self

    def __exit__(self, *problem: object) -> None:
        self._bar.stop()

    def progress(self, claim: str, done: float, total: float, what: str) -> None:
        if claim != self._current:
            self._current = claim
            self._bar.reset(self._task)
        self._bar.update(self._task, description=claim, completed=done, total=total, what=f"{done:g}/{total:g} {what}")

    def finished(self, record: dict[str, Any]) -> None:
        from polariscope.report.kinds import number

        line = f"{record['id']:<4} {record['verdict']:<14} {record['seconds']:6.1f} s  {number(record)}"
        self._bar.console.print(line, markup=False, highlight=False)
