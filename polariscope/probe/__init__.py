"""What a language model's attention does, measured without keeping a map: ``scan`` and its result.

Importing this package is cheap: torch and transformers are imported by the first use of a name.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polariscope.probe.result import ProbeResult as ProbeResult
    from polariscope.probe.scanning import scan as scan

__all__ = ["ProbeResult", "scan"]


def __getattr__(name: str) -> Any:
    if name == "scan":
        from polariscope.probe.scanning import scan

        return scan
    if name == "ProbeResult":
        from polariscope.probe.result import ProbeResult

        return ProbeResult
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
