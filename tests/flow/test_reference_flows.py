"""The 21 reference flows, integrated apart from this package in all parameters (SciPy DOP853 and LSODA, rtol 1e-12)."""

import json
from pathlib import Path

import numpy as np
import pytest

from polariscope import flow

REFERENCE = json.loads((Path(__file__).parents[1] / "data" / "flows.json").read_text())
# The attention weights must agree to this, at every time.
PATH_TIME, OTHERS = 1e-8, 1e-7


@pytest.fixture(scope="module")
def solved():
    return dict(zip([p["name"] for p in REFERENCE], flow.solve_many(REFERENCE), strict=True))


@pytest.mark.parametrize("wanted", REFERENCE, ids=lambda p: p["name"])
def test_weights_agree_at_every_time(solved, wanted):
    got = solved[wanted["name"]]
    assert got.complete
    tolerance = PATH_TIME if wanted["name"].startswith("logistic-softmax") else OTHERS
    np.testing.assert_allclose(got.s, np.array(wanted["s"]), rtol=0, atol=tolerance)
    np.testing.assert_allclose(got.t, wanted["t"], rtol=1e-14)
    np.testing.assert_allclose(got.objective, wanted["objective"], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("wanted", REFERENCE, ids=lambda p: p["name"])
def test_no_check_of_the_theory_fails_on_them(solved, wanted):
    assert [check.name for check in solved[wanted["name"]].checks if check.holds is False] == []


def test_logits_agree_where_softmax_fixes_them(solved):
    wanted = next(p for p in REFERENCE if p["name"] == "logistic-softmax-8")
    np.testing.assert_allclose(solved["logistic-softmax-8"].a, np.array(wanted["a"]), rtol=0, atol=1e-7)
