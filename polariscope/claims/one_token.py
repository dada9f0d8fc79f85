"""C12: a softmax classifier's prediction hangs on the one token it attends to most."""

from pathlib import Path
from typing import Any

import pandas as pd

from polariscope.claims._base import Claim, Context, Outcome

RUNS, FLIPS = "runs.parquet", "flips.parquet"
HIGH, LOW = 0.95, 0.05
ENOUGH = 0.95
VOCABULARY = 41
"""The paper's: four groups of ten tokens. Other vocabularies are shown beside it and do not enter the rule."""
SWAPS = {
    "flip_rate": "most attended token",
    "flip_rate_random": "random token",
    "flip_rate_least": "least attended token",
}


def experiment(context: Context) -> None:
    """Train every attention kind with every seed, and mix labels in the evaluation sequences of each run."""
    from polariscope import train

    settings = context.settings
    plans = [
        train.RunSettings(
            task="classification", attention=kind, vocabulary=vocabulary, seed=seed, epochs=settings["epochs"]
        )
        for kind, vocabulary in settings["kinds"]
        for seed in range(settings["seeds"])
    ]
    runs = train.run_many(
        plans,
        processes=settings["processes"],
        progress=lambda done: context.progress(done, len(plans), "classifiers trained"),
    )
    table = pd.DataFrame([_row(plan, run) for plan, run in zip(plans, runs, strict=True)])
    table.to_parquet(context.folder / RUNS, index=False)
    _flip_table(table).to_parquet(context.folder / FLIPS, index=False)


def _row(plan: Any, run: Any) -> dict[str, Any]:
    head = run.metrics["heads"][0]
    keys = ("max_share", *SWAPS)
    label = plan.attention if plan.vocabulary == VOCABULARY else f"{plan.attention}, vocabulary {plan.vocabulary}"
    row = {"attention": label, "seed": plan.seed, "status": run.metrics["status"]}
    return row | {"accuracy": run.metrics["accuracy"]} | {key: head[key] for key in keys}


def _counted(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs that learnt the task: a flip rate of one that did not says nothing."""
    return runs[(runs.status == "ok") & (runs.accuracy > ENOUGH)]


def _flip_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Mean and 95 % interval over seeds of each swap's flip rate, per attention kind."""
    from polariscope.metrics import bootstrap_interval

    rows = []
    for kind, group in _counted(runs).groupby("attention"):
        for column, swap in SWAPS.items():
            low, high = (float(end) for end in bootstrap_interval(group[column].to_numpy()))
            rows.append({"attention": kind, "swap": swap, "mean": group[column].mean(), "low": low, "high": high})
    return pd.DataFrame(rows, columns=["attention", "swap", "mean", "low", "high"])


def judge(folder: Path) -> Outcome:
    """Softmax must flip with its top token and uniform attention must not, with intervals over seeds."""
    runs = pd.read_parquet(folder / RUNS)
    good = _counted(runs)
    flips = _flip_table(runs)
    flips = flips[flips.swap == SWAPS["flip_rate"]].set_index("attention")
    missing = sorted(set(runs.attention) - set(flips.index))
    ends = {str(kind): (float(row.low), float(row.high)) for kind, row in flips.iterrows()}
    means = {str(kind): float(row["mean"]) for kind, row in flips.iterrows()}
    needed = {"softmax", "uniform"} <= set(means)
    holds = needed and ends["softmax"][0] >= HIGH and ends["uniform"][1] <= LOW
    table = "; ".join(f"{kind}: {means[kind]:.3f}" for kind in sorted(means, key=means.__getitem__, reverse=True))
    return Outcome(
        verdict="supported" if holds else "not supported" if needed else "inconclusive",
        statistic=means.get("softmax"),
        measure=f"flip rate of softmax attention, mean over {runs.seed.nunique()} seeds",
        interval=ends.get("softmax"),
        notes=f"Flip rates by kind: {table}. {len(good)} of {len(runs)} runs reach an accuracy above 0.95 and are "
        + (
            f"counted; none of {', '.join(missing)}."
            if missing
            else "counted; all kinds solve the task, they differ in what they use."
        )
        + f" With vocabulary {VOCABULARY} a sequence holds its whole group, so the most attended token is the same in "
        "every sequence of a group and every mixture has lost it; larger groups, shown beside, are the harder test.",
        details={"means": means, "intervals": ends, "runs": len(runs), "counted": len(good)},
    )


KINDS = [["softmax", 41], ["sigmoid-normalized", 41], ["sigmoid", 41], ["uniform", 41], ["softmax", 81]]
"""Attention kind and vocabulary of the runs."""

CLAIM = Claim(
    id="C12",
    claim="A classifier with softmax attention decides by one token: its prediction follows the most attended one.",
    plain="Take the one token a classifier looks at most, put it among nine tokens of another class, and see which "
    "class wins. With softmax attention that single token decides; with uniform attention it is outvoted.",
    method="One-layer transformers learn to name the group that ten tokens belong to. For pairs of test sequences of "
    "different groups, the most attended token of one joins the rest of the other; the flip rate is the share of "
    "mixtures classified as that single token's group. Controls swap a random token and the least attended one.",
    source="arXiv:2603.06248, Section 4.2",
    rule=f"over seeds, the 95 % interval of the softmax flip rate at or above {HIGH} and that of uniform attention at "
    f"or below {LOW}, counting runs with accuracy above 0.95",
    settings={
        "quick": {"kinds": KINDS, "seeds": 3, "epochs": 10, "processes": 2},
        "paper": {"kinds": KINDS, "seeds": 10, "epochs": 10, "processes": 2},
    },
    experiment=experiment,
    judge=judge,
)
