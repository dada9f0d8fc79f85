"""Gradient flows of small attention models, solved to any time.

``solve`` and ``solve_many`` integrate problems, ``preset`` and ``random_problem`` make them, ``checks`` says what
theory says about a path, ``rates`` by what law it ends, ``losses.REGISTRY`` and ``models.REGISTRY`` list what there is.
JAX is loaded when a name needs it.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polariscope.flow import checks, identities, laws, losses, models, presets
    from polariscope.flow.identities import predictor_residual, replicator_residual
    from polariscope.flow.laws import rates
    from polariscope.flow.presets import preset, random_problem
    from polariscope.flow.problem import read_problem, read_problems
    from polariscope.flow.result import Path, Result
    from polariscope.flow.solver import solve, solve_many

_NAMES = {
    "solve": "solver",
    "solve_many": "solver",
    "Result": "result",
    "Path": "result",
    "read_problem": "problem",
    "read_problems": "problem",
    "preset": "presets",
    "random_problem": "presets",
    "replicator_residual": "identities",
    "predictor_residual": "identities",
    "rates": "laws",
}
_MODULES = ("checks", "laws", "losses", "models", "presets", "identities")
__all__ = [
    "Path",
    "Result",
    "checks",
    "identities",
    "laws",
    "losses",
    "models",
    "predictor_residual",
    "preset",
    "presets",
    "random_problem",
    "rates",
    "read_problem",
    "read_problems",
    "replicator_residual",
    "solve",
    "solve_many",
]


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(importlib.import_module(f"polariscope.flow.{_NAMES[name]}"), name)
    if name in _MODULES:
        return importlib.import_module(f"polariscope.flow.{name}")
    raise AttributeError(f"module 'polariscope.flow' has no attribute {name!r}")
