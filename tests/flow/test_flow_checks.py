"""The checks of theory: on paths that keep a statement, on paths that break it, and where they do not apply."""

import numpy as np
import pytest

from polariscope import flow
from polariscope.flow.checks import check_path, remainder
from polariscope.flow.result import Path

LOG_T = np.geomspace(0.1, 1e6, 30)


def ordered(seed):
    """A logistic problem whose logits start in the order of u."""
    problem = flow.preset("logistic", n=8, seed=seed)
    u = np.array(problem["V0"]).T @ np.array(problem["target"])
    a = np.empty(8)
    a[np.argsort(u)] = np.sort(problem["a0"])
    return problem | {"a0": a.tolist()}


@pytest.fixture(scope="module")
def results():
    return [flow.solve(ordered(seed), log_t=LOG_T) for seed in range(12)]


def test_theorem_holds_on_ordered_starts(results):
    for result in results:
        assert len(result.checks) == 8
        assert all(check.holds for check in result.checks), result.checks


def test_gaps_of_the_weights_against_a_count_by_hand(results):
    """The note says which gaps between losers shrink; here they are counted from the stored times alone."""
    for result in results:
        check = {c.name: c for c in result.checks}["gap of the winner in s grows"]
        order = np.argsort(result.u[0])
        losers = np.diff(result.s[:, order][:, :-1], axis=1)
        shrinking = (np.diff(losers, axis=0) < -1e-7).any(axis=0).sum()
        assert shrinking > 0
        assert f": {shrinking} of {losers.shape[1]} neighbours" in check.note


def test_rate_law_to_one_in_a_thousand(results):
    for result in results:
        ratio = remainder(result.s[-1]) * 1e12 / (2 * (1 - 1 / 8))
        assert ratio == pytest.approx(1, abs=1e-3)


def path(**changed):
    """A path on which every statement holds, but for what is changed."""
    log_t = np.array([-np.inf, 0.0, 5.0, 12.0])
    gap = np.array([0.1, 0.5, 1.0, 2.0])
    a = np.stack([-gap, np.zeros(4), gap], axis=1)
    s = np.exp(a) / np.exp(a).sum(axis=1, keepdims=True)
    loss = np.array([0.7, 0.5, 0.3, 0.1])
    fields = {"u": 3 * a, "s": s, "a": a, "objective": loss, "log_objective": np.log(loss)}
    return Path(log_t=log_t, column_norms=np.ones((4, 3)), **(fields | changed))


def outcome(of, **kind):
    found = check_path(of, **({"softmax": True, "logistic": True, "tied": False, "tolerance": 1e-9} | kind))
    return {check.name: check for check in found}


def test_the_sound_path_passes():
    assert all(check.holds for check in outcome(path()).values() if check.name != "rate law")
    assert outcome(path())["rate law"].holds is None


BROKEN = {
    "order of u": {"u": np.array([[0, 1, 2], [0, 1, 2], [0, 2.5, 2], [0, 3, 2.0]])},
    "order of s": {"s": np.array([[0.2, 0.3, 0.5], [0.1, 0.2, 0.7], [0.3, 0.1, 0.6], [0.1, 0.2, 0.7]])},
    "gaps of u grow": {"u": np.array([[0, 1, 3], [0, 1, 3], [0, 0.5, 3], [0, 1, 4.0]])},
    "gap of the winner in s grows": {"s": np.array([[0.2, 0.3, 0.5], [0.1, 0.2, 0.7], [0.2, 0.3, 0.5], [0, 0.1, 0.9]])},
    "sum of a conserved": {"a": np.array([[-1, 0, 1], [-1, 0, 1], [-1, 0, 1.1], [-1, 0, 1.0]])},
    "loss decreases": {"objective": np.array([0.7, 0.5, 0.6, 0.1])},
    "one-hot limit": {"s": np.array([[0.1, 0.2, 0.7], [0.1, 0.2, 0.7], [0.1, 0.2, 0.7], [0.2, 0.2, 0.6]])},
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_statement_is_found_with_its_place(name):
    check = outcome(path(**BROKEN[name]))[name]
    assert check.holds is False
    assert check.margin < -check.tolerance
    assert check.where in (5.0, 12.0)


def test_nan_is_never_a_pass():
    assert outcome(path(objective=np.array([0.7, np.nan, 0.3, 0.1])))["loss decreases"].holds is False


def test_a_loss_beyond_floats_is_judged_by_its_logarithm():
    infinite = np.array([np.inf, np.inf, np.inf, 1.0])
    falls, rises = np.array([900.0, 850.0, 800.0, 0.0]), np.array([900.0, 850.0, 851.0, 0.0])
    assert outcome(path(objective=infinite, log_objective=falls))["loss decreases"].holds
    assert outcome(path(objective=infinite, log_objective=rises))["loss decreases"].where == 5.0


def test_what_does_not_apply_says_why():
    reversed_start = outcome(path(u=-path().u))
    for name in ("order of u", "order of s", "gaps of u grow", "gap of the winner in s grows"):
        assert reversed_start[name].holds is None
        assert "same order" in reversed_start[name].note
    assert set(outcome(path(), softmax=False)) == {"loss decreases"}
    assert set(outcome(path(), logistic=False)) == {"sum of a conserved", "loss decreases"}
    assert set(outcome(path(), tied=True)) == {"loss decreases"}
