"""C2: along gradient flow of the logistic loss the order of u and s is kept and gaps grow."""

from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from polariscope.claims import _flows
from polariscope.claims._base import Claim, Context, Outcome

THEOREM = ("order of u", "order of s", "gaps of u grow", "gap of the winner in s grows")


def experiment(context: Context) -> None:
    """Solve many random flows whose logits start in the order of u, and keep every check."""
    _flows.experiment(context, _flows.ordered_problem)


def judge(folder: Path) -> Outcome:
    """The share of flows in which all four statements hold, with an exact binomial interval."""
    checks = pd.read_parquet(folder / _flows.CHECKS)
    tested = checks[checks.name.isin(THEOREM)]
    complete = tested.groupby("flow").holds.agg(lambda h: bool(h.fillna(False).all()) and len(h) == len(THEOREM))
    flows, kept = len(complete), int(complete.sum())
    low, high = binomtest(kept, flows).proportion_ci(confidence_level=0.95, method="exact")
    shrinking = _shrinking_gaps(folder)
    verdict = "supported" if kept == flows and low > 0.9 else "not supported" if kept < flows else "inconclusive"
    return Outcome(
        verdict=verdict,
        statistic=kept / flows,
        measure="share of flows in which all four statements hold",
        interval=(low, high),
        notes=f"{kept} of {flows} flows keep all four. What does not grow: in {shrinking:.0%} of the flows the gap in "
        "s between the runner-up and the last token ends smaller than it began, because every loser goes to zero. "
        "The theorem is about starts where the logits are ordered as u is; other starts are not tested here.",
        details={"flows": flows, "kept": kept, "share_with_shrinking_loser_gap": shrinking},
    )


def _shrinking_gaps(folder: Path) -> float:
    """Share of flows in which s of the runner-up minus s of the last is smaller at the end than at the start."""
    paths = pd.read_parquet(folder / _flows.PATHS)
    shrinks = []
    for _, path in paths[paths.n > 2].groupby("flow"):
        weights = path.pivot(index="log_t", columns="coordinate", values="s").to_numpy()
        ordered = weights[:, np.argsort(weights[0])]
        gap = ordered[:, -2] - ordered[:, 0]
        shrinks.append(gap[-1] < gap[0])
    return float(np.mean(shrinks))


CLAIM = Claim(
    id="C2",
    claim="Gradient flow of the logistic loss keeps the order of the projections u and of the weights s, and gaps "
    "grow.",
    plain="Whoever is ahead stays ahead. If one token starts with the larger value projection and the larger attention "
    "weight, training never lets another one overtake it, and its lead grows.",
    method="Random starts in which the logits are ordered as u is (the theorem's hypothesis) are integrated in path "
    "time to log t = 10⁶, far beyond any training run; order and gaps are checked at every stored time.",
    source="arXiv:2603.06248, Theorem 3.2",
    rule="all four statements (order of u, order of s, gaps of u grow, the winner's gap in s grows) in every flow, and "
    "the lower end of the 95 % interval of that share above 0.9",
    settings={
        "quick": {"sizes": [2, 8, 32], "flows": 16, "seed": 1000, "log_t_max": 1e6, "times": 60},
        "paper": {"sizes": [2, 4, 8, 16, 32, 100], "flows": 200, "seed": 1000, "log_t_max": 1e6, "times": 200},
    },
    experiment=experiment,
    judge=judge,
)
