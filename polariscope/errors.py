"""The one error for bad input: what was got, what was expected, what to do."""

import difflib
from collections.abc import Iterable


class InputError(ValueError):
    """Bad input from a user. The command line prints it without a traceback and exits with code 2.

    Args:
        what: the subject, a short phrase ("unknown score map").
        got: what was given.
        expected: what would have been accepted.
        fix: one thing to do about it.
    """

    def __init__(self, what: str, *, got: object, expected: str, fix: str) -> None:
        self.what, self.got, self.expected, self.fix = what, got, expected, fix
        super().__init__(f"{what}: got {got}; expected {expected}; {fix}")


def unknown_name(kind: str, name: object, known: Iterable[str]) -> InputError:
    """An InputError for a name that is in no registry, with the nearest known names."""
    known = sorted(known)
    near = difflib.get_close_matches(str(name), known, n=3, cutoff=0.5)
    fix = f"did you mean {' or '.join(repr(n) for n in near)}?" if near else "choose one of those"
    return InputError(f"unknown {kind}", got=repr(name), expected="one of " + ", ".join(known), fix=fix)
