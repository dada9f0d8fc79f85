"""A table of named variants: one line each, loaded only when asked for."""

import importlib
from collections.abc import Iterator, Mapping
from typing import Any

from polariscope.errors import unknown_name


class Registry:
    """Maps a name to ``("module:attribute", "one-line summary")``; the module is imported at the first ``get``.

    Args:
        kind: what the names are, singular ("score map"); used in messages.
        entries: the table. Names are unique by construction; ``add`` refuses a name that is taken.
    """

    def __init__(self, kind: str, entries: Mapping[str, tuple[str, str]]) -> None:
        self.kind = kind
        self._entries: dict[str, tuple[str | Any, str]] = dict(entries)

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def summaries(self) -> dict[str, str]:
        """Name to one-line summary, in the order of the table. Imports nothing."""
        return {name: summary for name, (_, summary) in self._entries.items()}

    def add(self, name: str, item: Any, summary: str) -> None:
        """Register an object of your own. Raises ValueError if the name is taken."""
        if name in self._entries:
            raise ValueError(f"{self.kind} {name!r} is already registered; choose another name")
        self._entries[name] = (item, summary)

    def get(self, name: str) -> Any:
        """The object behind a name. Raises InputError with the nearest names if there is none."""
        if not isinstance(name, str) or name not in self._entries:
            raise unknown_name(self.kind, name, self._entries)
        target, summary = self._entries[name]
        if isinstance(target, str):
            module, attribute = target.split(":")
            target = getattr(importlib.import_module(module), attribute)
            self._entries[name] = (target, summary)
        return target
