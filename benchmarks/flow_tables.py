"""What the flow benchmarks share: timing, tables in Markdown, versions."""

import time
from dataclasses import dataclass
from importlib import metadata

PACKAGES = ("polariscope", "numpy", "scipy", "jax", "diffrax", "torch", "torchdiffeq")


@dataclass(frozen=True)
class Table:
    """A table of one benchmark: a title, a sentence below it, column names and rows of text."""

    title: str
    note: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    def __str__(self) -> str:
        lines = [self.columns, ("---",) * len(self.columns), *self.rows]
        return f"## {self.title}\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines) + f"\n\n{self.note}\n"


def timed(run, repeats=3):
    """The result and the smallest of the wall times."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = run()
        times.append(time.perf_counter() - start)
    return result, min(times)


def first_and_warm(run, repeats=3):
    """The result, the wall time of the first call, which compiles, and the smallest of those after it."""
    _, first = timed(run, 1)
    result, warm = timed(run, repeats)
    return result, first, warm


def seconds(value):
    return f"{value:.4f}" if value < 0.1 else f"{value:.2f}" if value < 100 else f"{value:,.0f}"


def times_as_long(value):
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def versions():
    """The versions of the packages that are compared, in one line."""
    found = []
    for name in PACKAGES:
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            found.append(f"{name} (not installed)")
    return ", ".join(found)
