"""C12: a softmax classifier's prediction hangs on the one token it attends to most."""

from pathlib import Path
from typing import Any

import pandas as pd

from polariscope.claims._base import Claim, Context, Outcome

RUNS = "runs.parquet"
HIGH, LOW = 0.95, 0.05


def experiment(context: Context) -> None:
    """Train every attention kind with every seed, and mix labels in the evaluation sequences of each run."""
    from polariscope import train

    settings = context.settings
    plans = [
        train.RunSettings(task="classification", attention=kind, seed=seed, epochs=settings["epochs"])
        for kind in settings["attention"]
        for seed in range(settings["seeds"])
    ]
    runs = train.run_many(
        plans,
        processes=settings["processes"],
        progress=lambda done: context.progress(done, len(plans), "classifiers trained"),
    )
    rows = [_row(plan, run) for plan, run in zip(plans, runs, strict=True)]
    pd.DataFrame(rows).to_parquet(context.folder / RUNS, index=False)


def _row(plan: Any, run: Any) -> dict[str, Any]:
    head = run.metrics["heads"][0]
    keys = ("max_share", "flip_rate", "flip_rate_random", "flip_rate_least")
    row = {"attention": plan.attention, "seed": plan.seed, "status": run.metrics["status"]}
    return row | {"accuracy": run.metrics["accuracy"]} | {key: head[key] for key in keys}


def judge(folder: Path) -> Outcome:
    """Softmax must flip with its top token and uniform attention must not, with intervals over seeds."""
    from polariscope.metrics import bootstrap_interval

    runs = pd.read_parquet(folder / RUNS)
    good = runs[(runs.status == "ok") & (runs.accuracy > 0.95)]
    rates = {kind: group.flip_rate.to_numpy() for kind, group in good.groupby("attention")}
    missing = sorted(set(runs.attention) - set(rates))
    ends = {kind: tuple(float(e) for e in bootstrap_interval(values)) for kind, values in rates.items()}
    means = {kind: float(values.mean()) for kind, values in rates.items()}
    needed = {"softmax", "uniform"} <= set(rates)
    holds = needed and ends["softmax"][0] >= HIGH and ends["uniform"][1] <= LOW
    table = ", ".join(f"{kind} {means[kind]:.3f}" for kind in sorted(means, key=means.__getitem__, reverse=True))
    return Outcome(
        verdict="supported" if holds else "not supported" if needed else "inconclusive",
        statistic=means.get("softmax"),
        measure="flip rate of softmax attention, mean over seeds",
        interval=ends.get("softmax"),
        notes=f"Flip rates: {table}. {len(good)} of {len(runs)} runs reach an accuracy above 0.95 and are counted"
        + (
            f"; none of {', '.join(missing)}."
            if missing
            else "; all kinds solve the task, they differ in what they use."
        ),
        details={"means": means, "intervals": ends, "runs": len(runs), "counted": len(good)},
    )


CLAIM = Claim(
    id="C12",
    claim="A classifier with softmax attention decides by one token: its prediction follows the most attended one.",
    plain="Take the one token a classifier looks at most, put it among ten tokens of another class, and see which "
    "class wins. With softmax attention that single token decides; with uniform attention it is outvoted.",
    method="One-layer transformers learn to name the group that ten tokens belong to. For pairs of test sequences of "
    "different groups, the most attended token of one joins the rest of the other; the flip rate is the share of "
    "mixtures classified as that single token's group. Controls swap a random token and the least attended one.",
    source="arXiv:2603.06248, Section 4.2",
    rule=f"over seeds, the 95 % interval of the softmax flip rate at or above {HIGH} and that of uniform attention at "
    f"or below {LOW}, counting runs with accuracy above 0.95",
    settings={
        "quick": {
            "attention": ["softmax", "sigmoid-normalized", "sigmoid", "uniform"],
            "seeds": 3,
            "epochs": 10,
            "processes": 2,
        },
        "paper": {
            "attention": ["softmax", "sigmoid-normalized", "sigmoid", "uniform"],
            "seeds": 10,
            "epochs": 10,
            "processes": 2,
        },
    },
    experiment=experiment,
    judge=judge,
)
