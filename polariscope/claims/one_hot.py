"""C3: with the logistic loss the weights tend to one-hot and the loss to zero, at a logarithmic rate."""

import math
from pathlib import Path

import pandas as pd

from polariscope.claims import _flows
from polariscope.claims._base import Claim, Context, Outcome

NEAR, RATE = 1e-9, 0.01


def experiment(context: Context) -> None:
    """Solve random flows from unordered starts to log t = 10⁶."""
    _flows.experiment(context, _flows.free_problem)


def judge(folder: Path) -> Outcome:
    """Every flow must be one-hot to 1e-9 and obey the rate law 1 − max s = 2(1 − 1/n)/(log t)² to 1 %."""
    from polariscope.metrics import bootstrap_interval

    flows = pd.read_parquet(folder / _flows.FLOWS)
    remainder = flows.one_minus_max_s
    ratio = remainder * flows.log_t**2 / (2 * (1 - 1 / flows.n))
    low, high = (float(end) for end in bootstrap_interval(ratio.to_numpy()))
    worst = float(remainder.max())
    solved = bool((flows.status == "ok").all())
    holds = solved and worst <= NEAR and bool((flows.log_objective < -1e5).all())
    law = low >= 1 - RATE and high <= 1 + RATE
    return Outcome(
        verdict="supported" if holds and law else "not supported" if solved else "inconclusive",
        statistic=float(ratio.mean()),
        measure="(1 − max s)·(log t)² ÷ 2(1 − 1/n) at log t = 10⁶ (1 is the rate law), mean over flows",
        interval=(low, high),
        notes=f"At log t = 10⁶ the largest weight misses 1 by at most {worst:.1e} in all {len(flows)} flows, and the "
        f"logarithm of the loss is at most {flows.log_objective.max():,.0f}. The limit is reached logarithmically: "
        f"{_at_reachable_time(folder)}",
        details={"flows": len(flows), "largest_one_minus_max_s": worst, "steps_median": float(flows.steps.median())},
    )


def _at_reachable_time(folder: Path) -> str:
    """What is left at about t = 10¹², more steps than any training run takes."""
    rates = pd.read_parquet(folder / _flows.RATES)
    time = rates.log_t.iloc[(rates.log_t - 12 * math.log(10)).abs().argmin()]
    left = rates[rates.log_t == time].groupby("n").one_minus_max_s.median()
    return f"at t = {math.exp(time):.0e}, 1 − max s is still {left.min():.1e} to {left.max():.1e} (medians by n)."


CLAIM = Claim(
    id="C3",
    claim="With the logistic loss the attention weights tend to one-hot and the loss tends to zero.",
    plain="Left alone for long enough, softmax attention trained by gradient flow ends up looking at exactly one "
    "token. The question is only how long that takes: the distance to one-hot falls like 1/(log t)².",
    method="Random starts in any order are integrated in path time to log t = 10⁶, which no run in steps of t could "
    "reach; the distance to one-hot is compared with the predicted rate.",
    source="arXiv:2603.06248, Theorem 3.3; the rate law is this project's",
    rule=f"in every flow 1 − max s ≤ {NEAR:g} and log loss < −10⁵ at log t = 10⁶, and the 95 % interval of the mean "
    f"rate ratio within {RATE:.0%} of 1",
    settings={
        "quick": {"sizes": [2, 8, 32], "flows": 16, "seed": 0, "log_t_max": 1e6, "times": 60},
        "paper": {"sizes": [2, 4, 8, 16, 32, 100], "flows": 200, "seed": 0, "log_t_max": 1e6, "times": 200},
    },
    experiment=experiment,
    judge=judge,
)
