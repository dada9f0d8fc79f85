"""A dataset of the Hugging Face hub, streamed."""

from collections.abc import Iterator
from typing import Any

from polariscope.errors import InputError
from polariscope.probe._corpora_files import document_of
from polariscope.probe._corpora_lines import BrokenOff
from polariscope.probe._document import Document


def read_hub(name: str) -> Iterator[Document]:
    """The rows of ``NAME``, ``NAME:CONFIG`` or ``NAME:CONFIG:SPLIT`` (split "train" unless given)."""
    parts = name.split(":")
    if not parts[0] or len(parts) > 3:
        raise InputError(
            "hub dataset", got=f"hub:{name}", expected="hub:NAME:CONFIG:SPLIT", fix="for example hub:OWNER/NAME"
        )
    dataset, config, split = (*parts, "", "")[:3]
    for number, row in enumerate(_rows(dataset, config or None, split or "train")):
        yield document_of(row, f"hub:{name}, row {number}", f"{dataset}:{number}")


def _rows(dataset: str, config: str | None, split: str) -> Iterator[Any]:
    import datasets

    # Every exception counts: offline, unknown, gated, needing code of its own, damaged on the way.
    try:
        rows: Any = datasets.load_dataset(dataset, config, split=split, streaming=True)
        yield from rows
    except InputError:
        raise
    except Exception as problem:
        said = str(problem).strip().partition("\n")[0]
        raise BrokenOff(
            "dataset of the Hugging Face hub",
            got=f"{dataset!r} ({type(problem).__name__}: {said})",
            expected="a dataset that can be reached and streamed, with a column 'text'",
            fix="check the name, the configuration and the connection, or name a local file; 'pydoc' needs none",
        ) from problem
