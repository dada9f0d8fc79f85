"""Flows against gradient descent, SciPy, diffrax and torchdiffeq; every ratio is between two measurements of one run.

    python benchmarks/flow.py [--only NAME] [--write docs/benchmarks.md]

Prints tables in Markdown. With --write they also replace what stands after the mark in that page.
"""

import argparse
import os
import time
from datetime import UTC, datetime
from pathlib import Path

from flow_one import against_descent, against_plain
from flow_stiff import stiff
from flow_tables import versions
from flow_thousand import far_out, in_ordinary_time

TABLES = {
    "thousand": far_out,
    "ordinary": in_ordinary_time,
    "stiff": stiff,
    "descent": against_descent,
    "steps": against_plain,
}
MARK = "<!-- What follows is written by benchmarks/flow.py -->\n"


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--only", choices=TABLES, help="one table")
    arguments.add_argument("--write", type=Path, help="page whose tables are replaced")
    asked = arguments.parse_args()
    if asked.write and (asked.only or MARK not in asked.write.read_text(encoding="utf-8")):
        arguments.error(f"--write needs all tables, and a page with the line {MARK.strip()}")
    start, written = time.perf_counter(), []
    for name in [asked.only] if asked.only else TABLES:
        written.append(str(TABLES[name]()))
        print(written[-1], flush=True)
    foot = (
        f"Measured {datetime.now(UTC):%Y-%m-%d} on {os.cpu_count()} CPU cores, no accelerator, "
        f"in {time.perf_counter() - start:.0f} seconds: {versions()}.\n"
    )
    print(foot)
    if asked.write:
        before, _, _ = asked.write.read_text(encoding="utf-8").partition(MARK)
        asked.write.write_text(before + MARK + "\n" + "\n".join([*written, foot]), encoding="utf-8")


if __name__ == "__main__":
    main()
