"""Gradient flows of small attention models, solved to any time.

``solve`` and ``solve_many`` integrate problems, ``preset`` and ``random_problem`` make them, ``checks`` says what
theory says about a path, ``rates`` by what law it ends, ``losses.REGISTRY`` and ``models.REGISTRY`` list what there is.
``compare`` runs discrete optimizers beside the flow, ``sensitivity`` differentiates its outcome, ``basins`` and
``who_wins`` say which start lets which coordinate win, ``grid`` solves phase diagrams over random starts. JAX is loaded
when a name needs it.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from polariscope.flow import checks, identities, laws, losses, models, optimizers, presets
    from polariscope.flow.basin_map import Basins, basins
    from polariscope.flow.comparison import Comparison, compare, compare_many
    from polariscope.flow.grid_cells import grid_summary
    from polariscope.flow.grid_spec import GridSpec
    from polariscope.flow.grids import grid
    from polariscope.flow.identities import predictor_residual, replicator_residual
    from polariscope.flow.laws import rates
    from polariscope.flow.log_odds import Sensitivity, sensitivity
    from polariscope.flow.one_curve import shared_path
    from polariscope.flow.presets import preset, random_problem
    from polariscope.flow.problem import read_problem, read_problems
    from polariscope.flow.result import Path, Result
    from polariscope.flow.solver import solve, solve_many
    from polariscope.flow.winners import Winner, WinnerStatistics, who_wins, who_wins_many, winner_statistics

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
    "shared_path": "one_curve",
    "compare": "comparison",
    "compare_many": "comparison",
    "Comparison": "comparison",
    "sensitivity": "log_odds",
    "Sensitivity": "log_odds",
    "basins": "basin_map",
    "Basins": "basin_map",
    "who_wins": "winners",
    "who_wins_many": "winners",
    "Winner": "winners",
    "grid": "grids",
    "grid_summary": "grid_cells",
    "GridSpec": "grid_spec",
    "winner_statistics": "winners",
    "WinnerStatistics": "winners",
}
_MODULES = ("checks", "laws", "losses", "models", "optimizers", "presets", "identities")
__all__ = [
    "Basins",
    "Comparison",
    "GridSpec",
    "Path",
    "Result",
    "Sensitivity",
    "Winner",
    "WinnerStatistics",
    "basins",
    "checks",
    "compare",
    "compare_many",
    "grid",
    "grid_summary",
    "identities",
    "laws",
    "losses",
    "models",
    "optimizers",
    "predictor_residual",
    "preset",
    "presets",
    "random_problem",
    "rates",
    "read_problem",
    "read_problems",
    "replicator_residual",
    "sensitivity",
    "shared_path",
    "solve",
    "solve_many",
    "who_wins",
    "who_wins_many",
    "winner_statistics",
]


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(importlib.import_module(f"polariscope.flow.{_NAMES[name]}"), name)
    if name in _MODULES:
        return importlib.import_module(f"polariscope.flow.{name}")
    raise AttributeError(f"module 'polariscope.flow' has no attribute {name!r}")
