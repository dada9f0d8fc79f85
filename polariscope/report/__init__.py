"""One offline HTML page from finished result files. It draws and arranges; it computes nothing."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polariscope.report.build import write
    from polariscope.report.grids import draw_grid

__all__ = ["draw_grid", "write"]


def __getattr__(name: str) -> Any:
    if name == "write":
        from polariscope.report.build import write

        return write
    if name == "draw_grid":
        from polariscope.report.grids import draw_grid

        return draw_grid
    raise AttributeError(f"module 'polariscope.report' has no attribute {name!r}")
