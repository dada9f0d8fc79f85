"""C1: the velocity of softmax gradient flow has replicator form, checked against automatic differentiation."""

from pathlib import Path

import numpy as np
import pandas as pd

from polariscope.claims._base import Claim, Context, Outcome

STATES = "states.parquet"
TOLERANCE = 1e-9


def experiment(context: Context) -> None:
    """Draw random states for every loss and size, and a control that must not have replicator form."""
    from polariscope import flow

    settings = context.settings
    cases = [(loss, "softmax", n) for loss in settings["losses"] for n in settings["sizes"]]
    cases += [("logistic", "sigmoid", n) for n in settings["sizes"]]
    rows = []
    for done, (loss, scores, n) in enumerate(cases):
        context.progress(done, len(cases), f"{loss}, {scores}, n = {n}")
        for seed in range(settings["states"]):
            scale = settings["scales"][seed % len(settings["scales"])]
            problem = flow.random_problem(loss, scores=scores, n=n, d=n + 1, scale=scale, seed=seed)
            residual = flow.replicator_residual(problem)
            rows.append({"loss": loss, "scores": scores, "n": n, "scale": scale, "seed": seed, "residual": residual})
    pd.DataFrame(rows).to_parquet(context.folder / STATES, index=False)


def judge(folder: Path) -> Outcome:
    """The largest residual over all softmax states decides; the control shows that the test can fail."""
    states = pd.read_parquet(folder / STATES)
    softmax = states[states.scores == "softmax"]
    control = states[states.scores != "softmax"]
    worst = float(softmax.residual.max())
    control_least = float(control.residual.min())
    holds = bool(np.isfinite(softmax.residual).all() and worst <= TOLERANCE and control_least > 1e-3)
    return Outcome(
        verdict="supported" if holds else "not supported",
        statistic=worst,
        measure="largest relative difference between autodiff velocity and replicator form",
        interval=None,
        notes=f"An identity has no sampling error: {len(softmax)} random states over {softmax.loss.nunique()} losses "
        f"and n = {softmax.n.min()} to {softmax.n.max()} agree to {worst:.1e}. The control, an elementwise sigmoid, "
        f"misses the same form by {control_least:.2f} or more, so the test can fail.",
        details={"states": len(softmax), "control_smallest_residual": control_least},
    )


CLAIM = Claim(
    id="C1",
    claim="Softmax gradient flow is replicator-like: attention logits and weights move by a payoff minus its mean over "
    "the weights.",
    plain="Under gradient flow, tokens compete like species in evolutionary biology: a token's weight grows when its "
    "payoff is above the average payoff and shrinks when it is below. Elementwise maps such as the sigmoid lack that "
    "competition.",
    method="At random states, for four losses and many sizes, the velocity given by automatic differentiation is "
    "compared with the replicator formula; an elementwise sigmoid is the control that must fail.",
    source="arXiv:2603.06248, Section 3",
    rule=f"largest relative residual over all random states at most {TOLERANCE:g}, and above 1e-3 for the control",
    settings={
        "quick": {
            "losses": ["logistic", "square", "regression", "kl"],
            "sizes": [2, 5, 10, 30],
            "states": 25,
            "scales": [0.1, 1.0, 3.0],
        },
        "paper": {
            "losses": ["logistic", "square", "regression", "kl"],
            "sizes": [2, 5, 10, 30, 100, 300],
            "states": 200,
            "scales": [0.01, 0.1, 1.0, 3.0],
        },
    },
    experiment=experiment,
    judge=judge,
)
