"""Run claims one after the other, judge each from its files, keep going when one fails."""

import time
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from polariscope.claims import REGISTRY, SCALES, Claim, Context, get
from polariscope.errors import unknown_name
from polariscope.files import plain, settings_for, write_json

CLAIMS_FILE = "claims.json"

Progress = Callable[[str, float, float, str], None]
Finished = Callable[[dict[str, Any]], None]


def run(
    folder: Path,
    only: Iterable[str] | None = None,
    scale: str = "quick",
    progress: Progress = lambda claim, done, total, what: None,
    finished: Finished = lambda record: None,
) -> list[dict[str, Any]]:
    """Run the claims into ``folder/<id>`` and write ``claims.json`` anew after each.

    Args:
        folder: an existing folder.
        only: ids to run, in the registry's order; None means all.
        scale: "quick" (minutes on two cores) or "paper".
        progress: called with (id, done, total, what) while an experiment runs.
        finished: called with each claim's record as soon as it is judged.

    Returns:
        One record per claim: id, claim, source, verdict, statistic, measure, interval, rule, seconds, notes, details,
        settings, command.

    Raises:
        InputError: for an unknown id or scale.
    """
    if scale not in SCALES:
        raise unknown_name("scale", scale, SCALES)
    claims = [get(name) for name in select(only)]
    records: list[dict[str, Any]] = []
    for claim in claims:
        records.append(_run_one(claim, folder / claim.id, scale, progress))
        write_json(folder / CLAIMS_FILE, records)
        finished(records[-1])
    return records


def select(only: Iterable[str] | None) -> list[str]:
    """The ids asked for, in the registry's order, each once. Raises InputError for an unknown one."""
    wanted = list(REGISTRY) if only is None else [name.strip() for name in only if name.strip()]
    for name in wanted or [""]:
        if name not in REGISTRY:
            raise unknown_name("claim", name, REGISTRY)
    return [name for name in REGISTRY if name in wanted]


def _run_one(claim: Claim, folder: Path, scale: str, progress: Progress) -> dict[str, Any]:
    folder.mkdir()
    start = time.perf_counter()
    settings = dict(claim.settings[scale])
    record: dict[str, Any] = {"id": claim.id, "claim": claim.claim, "source": claim.source, "rule": claim.rule}
    record |= {
        "plain": claim.plain,
        "method": claim.method,
        "scale": scale,
        "settings": settings,
        "command": claim.command,
    }
    write_json(folder / "settings.json", settings_for("claim", settings, claim=claim.id, scale=scale))
    try:
        claim.experiment(Context(folder, settings, lambda done, total, what: progress(claim.id, done, total, what)))
        outcome = claim.judge(folder)
        record |= {"verdict": outcome.verdict, "statistic": outcome.statistic, "measure": outcome.measure}
        record |= {"interval": outcome.interval, "notes": outcome.notes, "details": dict(outcome.details)}
    except Exception as problem:
        # One claim that breaks must not take the others with it; it is shown as an error, never dropped.
        (folder / "error.txt").write_text(traceback.format_exc(), encoding="utf-8")
        record |= {"verdict": "error", "statistic": None, "measure": "", "interval": None, "details": {}}
        record["notes"] = f"The experiment stopped: {type(problem).__name__}: {problem}"
    record["seconds"] = round(time.perf_counter() - start, 2)
    return plain(record)
