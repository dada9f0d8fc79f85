"""A study runs claims in order, keeps going past one that breaks, and says so."""

import pytest

from polariscope.claims import Claim, Outcome, study
from polariscope.errors import InputError
from polariscope.files import read_json


def fake(claim_id, experiment):
    outcome = Outcome("supported", 1.0, "a number", (0.5, 1.5), "Fine.")
    settings = {"quick": {"n": 1}, "paper": {"n": 2}}
    return Claim(claim_id, "A.", "plain", "method", "source", "rule", settings, experiment, lambda folder: outcome)


@pytest.fixture
def registry(monkeypatch):
    def write(context):
        context.progress(0, 1, "writing")
        (context.folder / "result").write_text(str(context.settings["n"]))

    def broken(context):
        raise RuntimeError("no luck")

    claims = {"X1": fake("X1", write), "X2": fake("X2", broken), "X3": fake("X3", write)}
    monkeypatch.setattr(study, "REGISTRY", claims)
    monkeypatch.setattr(study, "get", claims.__getitem__)
    return claims


def test_a_broken_claim_is_an_error_and_the_others_run(tmp_path, registry):
    seen = []
    records = study.run(tmp_path, finished=lambda record: seen.append(record["id"]))
    assert [r["verdict"] for r in records] == ["supported", "error", "supported"]
    assert seen == ["X1", "X2", "X3"]
    assert "no luck" in records[1]["notes"]
    assert "RuntimeError" in (tmp_path / "X2" / "error.txt").read_text()
    assert read_json(tmp_path / "claims.json") == records


def test_scale_and_selection(tmp_path, registry):
    records = study.run(tmp_path, only=["X3", "X1"], scale="paper")
    assert [r["id"] for r in records] == ["X1", "X3"]
    assert (tmp_path / "X3" / "result").read_text() == "2"


def test_unknown_ids_and_scales_are_refused_before_anything_runs(tmp_path, registry):
    with pytest.raises(InputError, match="unknown claim"):
        study.run(tmp_path, only=["X9"])
    with pytest.raises(InputError, match="unknown scale"):
        study.run(tmp_path, scale="large")
    assert not list(tmp_path.iterdir())
