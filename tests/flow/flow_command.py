"""``polariscope flow`` as the tests call it."""

import pytest

from polariscope.cli import main


def run(*words):
    """The exit code of the command."""
    with pytest.raises(SystemExit) as caught:
        main(["flow", *map(str, words)])
    return caught.value.code or 0
