"""How much one token decides: what happens to a prediction when single tokens are exchanged."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polariscope.influence.label_mixing import LabelMixing, mix_labels

__all__ = ["LabelMixing", "mix_labels"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(importlib.import_module("polariscope.influence.label_mixing"), name)
    raise AttributeError(f"module 'polariscope.influence' has no attribute {name!r}")
