"""The command line: one file per verb, heavy imports inside the verb."""

import os
import signal
import sys

import typer
from rich.console import Console

from polariscope.cli import flow, ls, probe, report, study, train
from polariscope.errors import InputError

app = typer.Typer(
    name="polariscope",
    help="Why attention collapses onto one token: flows, trained transformers, probes, and a study of every claim.",
    epilog="Start with: polariscope study --scale quick -o results/study",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
for verb in (study, flow, probe, train, report, ls):
    app.command(name=verb.NAME, help=verb.HELP, epilog=verb.EPILOG)(verb.command)


INTERRUPTED, TERMINATED = 130, 143
"""Exit codes after SIGINT and SIGTERM, as shells count them."""


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 1 it ran and something failed, 2 wrong arguments or input."""
    words = sys.argv[1:] if arguments is None else arguments
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))  # so that unfinished folders are removed
    errors = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
    try:
        app(args=[_hyphenated(word) for word in words], prog_name="polariscope")
    except InputError as problem:
        errors.print(f"error: {problem.what}\n  got:      {problem.got}\n  expected: {problem.expected}")
        errors.print(f"  do this:  {problem.fix}")
        sys.exit(2)
    except SystemExit as end:
        if end.code == INTERRUPTED:
            errors.print("interrupted; nothing was half-written")
        if end.code in (INTERRUPTED, TERMINATED) and "jax" in sys.modules:
            _leave(end.code)
        raise


def _leave(code: int) -> None:
    """Exit without taking the interpreter down: JAX's threads may still compute, and would crash without it."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _hyphenated(word: str) -> str:
    """``--max_length=5`` as ``--max-length=5``; values and other words stay as they are."""
    if not word.startswith("--"):
        return word
    name, equals, value = word.partition("=")
    return name.replace("_", "-") + equals + value
