"""Which engine computes a call."""

from polariscope.probe import blocks
from polariscope.probe.attention import Call, Engine

KERNELS = ("auto", "blocks", "fused")


def choose(call: Call, kernel: str = "auto") -> Engine:
    """The engine for a call."""
    return blocks.attend
