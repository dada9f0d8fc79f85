"""Draw when regression polarizes: python examples/phase_diagram.py results/regression (the folder to write)."""

import sys
from pathlib import Path

from polariscope import flow, report

SPEC = {
    "name": "Regression at t = 1000",
    "axes": {
        "condition_number": {"from": 1, "to": 1000, "count": 4, "spacing": "log"},
        "target_norm": [1, 3, 10, 30, 100],
    },
    "fixed": {"loss": "regression", "n": 6},
    "seeds": 10,
    "t": 1000,
}


def main(folder: Path) -> None:
    """Solve 200 regressions, write the tables and the picture; run again, only what is missing is solved."""
    cells = flow.grid_summary(flow.grid(SPEC, folder))
    columns = ["normalized_entropy", "normalized_entropy_low", "normalized_entropy_high", "won_by_u_leader"]
    print(cells[[*SPEC["axes"], *columns]].round(3).to_string(index=False))
    print(report.draw_grid(folder))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python examples/phase_diagram.py results/regression")
    main(Path(sys.argv[1]))
