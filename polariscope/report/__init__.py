"""One offline HTML page from finished result files. It draws and arranges; it computes nothing."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polariscope.report.build import write

__all__ = ["write"]


def __getattr__(name: str) -> Any:
    if name == "write":
        from polariscope.report.build import write

        return write
    raise AttributeError(f"module 'polariscope.report' has no attribute {name!r}")
