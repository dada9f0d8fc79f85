"""From result folders to a page: what kind each folder is, and the sections it becomes."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from polariscope.errors import InputError
from polariscope.files import SETTINGS, check_output_file, read_json, write_text
from polariscope.report import grids, kinds
from polariscope.report._page import Page, Section, render

# The kind that a folder's settings.json names, and what makes sections of it.
KINDS: dict[str, Callable[[Path], Sequence[Section]]] = {
    "study": kinds.study,
    "claim": kinds.claim,
    "probe": kinds.probe,
    "train": kinds.train,
    "flow": kinds.flow,
    "grid": grids.grid,
}
COMMANDS = {"grid": "flow --grid"}
"""What writes a kind, where it is not the verb of that name."""


def write(sources: Sequence[Path], output: Path) -> Path:
    """Write one offline HTML page from finished results.

    Args:
        sources: result folders (study, probe, train, flow --grid) or files written by ``polariscope flow``.
        output: the HTML file.

    Returns:
        The file written.

    Raises:
        InputError: for a source that is missing, unfinished or not a result of this package.
    """
    output = check_output_file(output)
    known = [(Path(source), *_kind(Path(source))) for source in sources]
    sections, claims = [], []
    for source, kind, _ in known:
        try:
            sections += [_only(section, sections) for section in KINDS[kind](source)]
            claims += kinds.claim_rows(source) if kind == "study" else []
        except (OSError, KeyError, TypeError, ValueError, AttributeError, IndexError) as problem:
            raise InputError(
                "result folder",
                got=f"{source}, incomplete or damaged ({type(problem).__name__}: {problem})",
                expected=f"the files that polariscope {COMMANDS.get(kind, kind)} writes",
                fix="run that command again",
            ) from problem
    page = Page(
        title=kinds.STUDY_TITLE if claims else "Attention measured: a polariscope report",
        lead=kinds.STUDY_LEAD if claims else (),
        sections=sections,
        claims=claims,
        settings=kinds.settings_rows(known[0][2]),
    )
    write_text(output, render(page))
    return output


def _only(section: Section, others: Sequence[Section]) -> Section:
    """The section with an anchor of its own; folders of one name have the same."""
    taken = {other.anchor for other in others}
    names = (f"{section.anchor}{end}" for end in ("", *(f"-{number}" for number in range(2, len(others) + 2))))
    return replace(section, anchor=next(name for name in names if name not in taken))


def _kind(source: Path) -> tuple[str, dict[str, Any]]:
    """The kind of a source and its settings; "flow" for a JSON file."""
    if source.is_file() and source.suffix == ".json":
        return "flow", {}
    settings = read_json(source / SETTINGS) if (source / SETTINGS).is_file() else {}
    kind = settings.get("kind") if isinstance(settings, dict) else None
    if not isinstance(kind, str) or kind not in KINDS:
        raise InputError(
            "result folder",
            got=f"{source}" + _lacking(source),
            expected="a folder of polariscope study, probe, train or flow --grid, or a file of polariscope flow",
            fix="check the path, or run that command first",
        )
    return kind, settings


def _lacking(source: Path) -> str:
    if not source.exists():
        return ", which does not exist"
    return ", which is not finished" if (source / "spec.json").is_file() and not (source / SETTINGS).exists() else ""
