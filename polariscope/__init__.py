"""Polariscope: why attention collapses onto one token, from the smallest gradient flow to real language models.

The subpackages are loaded when first used, so that ``import polariscope`` costs nothing and a probe never imports JAX:
``polariscope.scores``, ``.metrics``, ``.flow``, ``.nets``, ``.tasks``, ``.train``, ``.models``, ``.probe``,
``.claims``, ``.plots`` and ``.report``.

Source: Varre, Rofin, Flammarion (2026), Gradient Flow Polarizes Softmax Outputs towards Low-Entropy Solutions,
arXiv:2603.06248.
"""

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from polariscope import claims, flow, influence, metrics, models, nets, plots, probe, report, scores, tasks, train

__version__ = "0.1.0"

__all__ = [
    "claims",
    "flow",
    "influence",
    "metrics",
    "models",
    "nets",
    "plots",
    "probe",
    "report",
    "scores",
    "tasks",
    "train",
]


def __getattr__(name: str) -> ModuleType:
    if name in __all__:
        return importlib.import_module(f"polariscope.{name}")
    raise AttributeError(f"module 'polariscope' has no attribute {name!r}")
