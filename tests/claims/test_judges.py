"""A verdict follows from the result files alone, and each rule can fail."""

import numpy as np
import pandas as pd
import pytest

from polariscope import claims
from polariscope.claims import one_token
from polariscope.files import write_json


def judge(claim_id, folder):
    return claims.get(claim_id).judge(folder)


@pytest.mark.parametrize(
    ("softmax", "control", "verdict"),
    [
        (1e-14, 0.5, "supported"),
        (1e-3, 0.5, "not supported"),
        (np.nan, 0.5, "not supported"),
        (1e-14, 1e-9, "not supported"),
    ],
)
def test_c1(tmp_path, softmax, control, verdict):
    rows = [
        {"loss": "kl", "scores": s, "n": 2, "scale": 1.0, "seed": 0, "residual": r}
        for s, r in (("softmax", softmax), ("softmax", 1e-15), ("sigmoid", control))
    ]
    pd.DataFrame(rows).to_parquet(tmp_path / "states.parquet")
    assert judge("C1", tmp_path).verdict == verdict


def write_c2(folder, broken):
    from polariscope.claims.order import THEOREM

    checks = [
        {"flow": f, "n": 3, "name": name, "holds": not (f < broken and name == THEOREM[0]), "margin": 0.0}
        for f in range(60)
        for name in THEOREM
    ]
    pd.DataFrame(checks).astype({"holds": "boolean"}).to_parquet(folder / "checks.parquet")
    path = {
        "flow": 0,
        "n": 3,
        "log_t": [0.0] * 3 + [1.0] * 3,
        "coordinate": [0, 1, 2] * 2,
        "s": [0.2, 0.3, 0.5, 0.0, 0.01, 0.99],
        "u": 0.0,
    }
    pd.DataFrame(path).to_parquet(folder / "paths.parquet")


@pytest.mark.parametrize(("broken", "verdict"), [(0, "supported"), (1, "not supported")])
def test_c2(tmp_path, broken, verdict):
    write_c2(tmp_path, broken)
    outcome = judge("C2", tmp_path)
    assert outcome.verdict == verdict
    assert outcome.statistic == pytest.approx(1 - broken / 60)
    assert outcome.interval[0] <= outcome.statistic <= outcome.interval[1]


@pytest.mark.parametrize(
    ("ratio", "log_objective", "status", "verdict"),
    [
        (1.0, -1e6, "ok", "supported"),
        (1.5, -1e6, "ok", "not supported"),
        (1.0, -5.0, "ok", "not supported"),
        (1.0, -1e6, "step limit", "inconclusive"),
    ],
)
def test_c3(tmp_path, ratio, log_objective, status, verdict):
    log_t, n = 1e6, 8
    remainder = ratio * 2 * (1 - 1 / n) / log_t**2
    row = {
        "n": n,
        "status": status,
        "steps": 100,
        "log_t": log_t,
        "max_s": 1 - remainder,
        "one_minus_max_s": remainder,
        "log_objective": log_objective,
    }
    pd.DataFrame([{"flow": k} | row for k in range(5)]).to_parquet(tmp_path / "flows.parquet")
    rate = {"flow": 0, "n": n, "log_t": [1.0, 27.0, 30.0], "one_minus_max_s": [0.9, 0.0025, 0.001], "law": 0.0}
    pd.DataFrame(rate).to_parquet(tmp_path / "rates.parquet")
    outcome = judge("C3", tmp_path)
    assert outcome.verdict == verdict
    assert "still 2.5e-03" in outcome.notes


def test_c11_gives_no_verdict_on_a_comparison_it_did_not_make(tmp_path):
    value = {"value": 0.5, "low": 0.4, "high": 0.6}
    write_json(tmp_path / "results.json", {"metrics": {"sink_rate": value, "normalized_entropy": value}})
    pd.DataFrame({"first_key_share": [0.1, 0.5]}).to_parquet(tmp_path / "heads.parquet")
    outcome = judge("C11", tmp_path)
    assert (outcome.verdict, outcome.statistic, outcome.interval) == ("inconclusive", 0.5, (0.4, 0.6))


def runs(softmax, uniform, accuracy=1.0, status="ok"):
    rows = [
        {
            "attention": kind,
            "seed": seed,
            "status": status,
            "accuracy": accuracy,
            "max_share": 0.5,
            "flip_rate": rate,
            "flip_rate_random": 0.1,
            "flip_rate_least": 0.0,
        }
        for kind, rates in (("softmax", softmax), ("uniform", uniform))
        for seed, rate in enumerate(rates)
    ]
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    ("table", "verdict"),
    [
        (runs([1.0, 0.99, 1.0], [0.0, 0.01, 0.0]), "supported"),
        (runs([0.5, 0.99, 1.0], [0.0, 0.0, 0.0]), "not supported"),
        (runs([1.0, 1.0, 1.0], [0.0, 0.3, 0.0]), "not supported"),
        (runs([1.0, 1.0, 1.0], [0.0, 0.0, 0.0], accuracy=0.5), "inconclusive"),
        (runs([1.0, 1.0, 1.0], [0.0, 0.0, 0.0], status="diverged"), "inconclusive"),
    ],
)
def test_c12(tmp_path, table, verdict):
    table.to_parquet(tmp_path / one_token.RUNS)
    assert judge("C12", tmp_path).verdict == verdict


@pytest.mark.parametrize("claim_id", list(claims.REGISTRY))
def test_every_claim_is_complete(claim_id):
    claim = claims.get(claim_id)
    assert claim.id == claim_id
    assert set(claim.settings) == set(claims.SCALES)
    for text in (claim.claim, claim.plain, claim.method, claim.source, claim.rule):
        assert len(text) > 15
    assert claim.claim.endswith(".")
