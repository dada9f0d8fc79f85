"""Where documents come from: files, folders, the hub, Python's own manual, random and repeated tokens."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from polariscope.errors import InputError, unknown_name
from polariscope.probe._corpora_lines import BrokenOff
from polariscope.probe._document import AnyDocument, Document, TokenDocument
from polariscope.registry import Registry

__all__ = ["REGISTRY", "Document", "Source", "TokenDocument", "read"]

# Entries in small letters are names; those in capitals say what form a path or a hub name has.
REGISTRY = Registry(
    "data source",
    {
        "pydoc": (
            "polariscope.probe._corpora_generated:pydoc",
            "the language reference inside every CPython (the default)",
        ),
        "random-tokens": ("polariscope.probe._corpora_generated:random_tokens", "tokens drawn uniformly"),
        "repeated-token": ("polariscope.probe._corpora_generated:repeated_token", "one random token over and over"),
        "FILE": (
            "polariscope.probe._corpora_files:read_file",
            ".txt (one document), .jsonl, .jsonl.gz, .jsonl.zst (field 'text') or .parquet (column 'text')",
        ),
        "FOLDER": ("polariscope.probe._corpora_files:read_folder", "all such files below it, in order of their paths"),
        "hub:NAME": (
            "polariscope.probe._corpora_hub:read_hub",
            "a dataset of the Hugging Face hub with a column 'text', streamed; hub:NAME:CONFIG:SPLIT",
        ),
    },
)


@dataclass
class Source(Iterator[AnyDocument]):
    """The documents of a DATA source, one at a time.

    Args:
        documents: where they come from.
        broken: what could not be read to its end, a phrase each, as far as it was met.
    """

    documents: Iterator[AnyDocument]
    broken: list[str] = field(default_factory=list)

    def __next__(self) -> AnyDocument:
        return next(self.documents)


def read(name: str, *, seed: int = 0, subset: str | None = None, count: int = 100) -> Source:
    """The documents of a DATA source, one at a time, in the order of the source.

    Args:
        name: a name of ``REGISTRY`` (it wins over a file of that name: write ``./pydoc`` for the file), a path, or
            ``hub:NAME``.
        seed: of ``random-tokens`` and ``repeated-token``.
        subset: keep only documents whose ``meta["pile_set_name"]`` is this (the Pile's form).
        count: how many documents ``random-tokens`` and ``repeated-token`` give; other sources give what they have.

    Returns:
        A `Source`: an iterator of `Document`, or of `TokenDocument` where tokens are drawn. A source is checked at
        once, its content as it is reached.

    Raises:
        InputError: for an unknown name, a missing or foreign file, a source without any text, and one that breaks off
            before its first document. What breaks off later is kept up to there and listed in ``Source.broken``.
    """
    broken: list[str] = []
    documents = _unbroken(_open(name, seed, count), broken)
    return Source(_nonempty(documents if subset is None else _only(documents, subset, name), name), broken)


def _unbroken(parts: Iterator[Iterator[AnyDocument]], broken: list[str]) -> Iterator[AnyDocument]:
    """The documents of each part in turn, up to where it breaks off. Raises BrokenOff at the end if there was none."""
    count, first = 0, None
    for part in parts:
        try:
            for document in part:
                yield document
                count += 1
        except BrokenOff as problem:
            first = first or problem
            broken.append(str(problem.got))
    if first is not None and not count:
        raise first


def _open(name: str, seed: int, count: int) -> Iterator[Iterator[AnyDocument]]:
    if not isinstance(name, str) or not name.strip():
        raise unknown_name("data source", name, REGISTRY)
    path = Path(name).expanduser()
    if name in REGISTRY and name == name.lower():
        source = REGISTRY.get(name)
        return iter([source() if name == "pydoc" else source(seed=seed, count=count)])
    if name.startswith("hub:"):
        return iter([REGISTRY.get("hub:NAME")(name.removeprefix("hub:"))])
    if path.is_dir():
        return REGISTRY.get("FOLDER")(path)
    if path.exists():
        return iter([REGISTRY.get("FILE")(path, path.name)])
    if path.suffix or "/" in name or "\\" in name:
        raise InputError("data", got=f"{name}, which does not exist", expected="a file or folder", fix="check the path")
    raise unknown_name("data source", name, REGISTRY)


def _only(documents: Iterator[AnyDocument], subset: str, name: str) -> Iterator[AnyDocument]:
    """Documents of one part of the Pile. Raises InputError at the end if there was none."""
    seen: dict[str, None] = {}
    found = False
    for document in documents:
        part = str(document.meta.get("pile_set_name", "(no pile_set_name)"))
        seen[part] = None
        if part == subset:
            found = True
            yield document
    if not found:
        raise InputError(
            "subset",
            got=repr(subset),
            expected=f"a pile_set_name of {name}: {', '.join(seen)}",
            fix="choose one of those",
        )


def _nonempty(documents: Iterator[AnyDocument], name: str) -> Iterator[AnyDocument]:
    """The documents. Raises InputError at the end if none of them had any text."""
    found = False
    for document in documents:
        found = found or isinstance(document, TokenDocument) or bool(document.text.strip())
        yield document
    if not found:
        raise InputError("data", got=f"{name}, without any text in it", expected="documents", fix="name another source")
