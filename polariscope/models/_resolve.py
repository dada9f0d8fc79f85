"""Which source a MODEL names, and which options that source takes."""

import difflib
import functools
import inspect
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from polariscope.errors import InputError, unknown_name
from polariscope.models._loaded import LoadedModel
from polariscope.registry import Registry

# A hub id: NAME or OWNER/NAME of letters, digits, '.', '_' and '-'.
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[\w.-]+)?", re.ASCII)
# A plain word this similar to a registered name is a misspelling of it rather than a hub name: "smollm2-135x" has
# similarity 0.92 with "smollm2-135m", "gpt2" has 0.25 at most.
_MISSPELT = 0.7


def resolve(name: str, registry: Registry) -> tuple[str, str]:
    """The registry entry that a MODEL names, and the part of it that the entry's opener takes.

    The order: registered names; ``PREFIX:…`` of an entry; ``*.gguf``; an existing folder; a hub id. A plain word that
    is nearly a registered name is refused with a suggestion, so that a misspelling never becomes a download;
    ``hub:WORD`` asks for the hub whatever the word.

    Raises:
        InputError: if it is none of these.
    """
    exact = _exact_names(registry)
    if not isinstance(name, str) or not name.strip():
        raise unknown_name("model", name, registry)
    prefixes = {entry.partition(":")[0]: entry for entry in registry if ":" in entry}
    prefix, colon, rest = name.partition(":")
    path = Path(name).expanduser()
    if name in exact:
        return name, name
    if colon and prefix in prefixes:
        return prefixes[prefix], _after_prefix(name, rest)
    if path.suffix.lower() == ".gguf":
        return "FILE.gguf", str(path)
    if path.is_dir():
        return "FOLDER", str(path)
    return "hub:NAME", _hub_id(name, exact, prefixes)


def opener(source: str, registry: Registry, options: Mapping[str, Any]) -> Callable[[str], LoadedModel]:
    """The function that opens a source, with the options given bound to it.

    Raises:
        InputError: for an option that the source does not have.
    """
    function = registry.get(source)
    accepted = list(inspect.signature(function).parameters)[1:]
    given = {key: value for key, value in options.items() if value is not None}
    for key in given:
        if key not in accepted:
            near = difflib.get_close_matches(key, accepted, n=1)
            raise InputError(
                "option of load",
                got=f"{key!r} for {source}",
                expected="one of " + ", ".join(accepted),
                fix=f"did you mean {near[0]!r}?" if near else "leave it out",
            )
    return functools.partial(function, **given)


def _exact_names(registry: Registry) -> list[str]:
    """The entries that are names themselves; the others hold a placeholder in capitals."""
    return [entry for entry in registry if entry == entry.lower()]


def _after_prefix(name: str, rest: str) -> str:
    if rest:
        return rest
    raise InputError("model", got=repr(name), expected="something after the colon", fix="for example hub:gpt2")


def _hub_id(name: str, exact: list[str], prefixes: Mapping[str, str]) -> str:
    near = difflib.get_close_matches(name.lower(), exact, n=3, cutoff=_MISSPELT)
    if near and "/" not in name:
        raise InputError(
            "unknown model",
            got=repr(name),
            expected="one of " + ", ".join(exact) + ", a .gguf file, a folder or a hub id",
            fix=f"did you mean {' or '.join(map(repr, near))}? (hub:{name} asks the hub for exactly that)",
        )
    if _HUB_ID.fullmatch(name) and not Path(name).exists():
        return name
    raise InputError(
        "model",
        got=f"{name!r}, " + ("a file" if Path(name).is_file() else "which is no existing folder and no hub id"),
        expected="one of "
        + ", ".join([*exact, *prefixes.values()])
        + ", a .gguf file, an existing folder or a hub id OWNER/NAME",
        fix="check the path",
    )
