"""What pydantic refuses, as the package's one error."""

import re
from collections.abc import Iterable

from pydantic import ValidationError

from polariscope.errors import InputError


def as_input_error(problem: ValidationError, kind: str, known: Iterable[str]) -> InputError:
    """The first complaint as an InputError; those that were raised as one pass unchanged.

    Args:
        problem: what pydantic raised.
        kind: what the fields are, singular ("run setting").
        known: the fields there are, for the message about one that is not.
    """
    first = problem.errors()[0]
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, InputError):
        return cause
    name = ".".join(str(part) for part in first["loc"]) or f"{kind}s"
    if first["type"] == "extra_forbidden":
        fix = f"leave it out; the {kind}s are {', '.join(known)}"
        return InputError(f"unknown {kind} {name}", got=repr(first["input"]), expected="nothing", fix=fix)
    if first["type"] == "missing":
        return InputError(f"{kind} {name}", got="nothing", expected="a value", fix=f"give {name}")
    expected = first["msg"].removeprefix("Input should be ").removeprefix("a valid ")
    expected = re.sub(r"\d[\d.]{12,}", lambda digits: f"{float(digits[0]):g}", expected)  # 1e-100 without its zeros
    return InputError(f"{kind} {name}", got=repr(first["input"])[:200], expected=expected, fix="give another value")
