"""Who wins: exact separatrices, small starts, ties, and the same answers as flows solved one by one."""

import numpy as np
import pytest

from polariscope import flow
from polariscope.errors import InputError


def logistic(n, seed, scale=1.0):
    return flow.random_problem("logistic", n=n, scale=scale, seed=seed)


def test_two_tokens_have_an_exact_separatrix():
    """With p = a₀ - a₁ and q = (u₀ - u₁)/‖β*‖: q' = tanh(p/2), p' = q/(2 cosh²(p/2)), so q² - 2 cosh p is constant and
    the path that ends in a tie is q = -2 sinh(p/2)."""
    problem = logistic(4, seed=0) | {"where": [True, True, False, False]}
    problem["target"] = (2.0 * np.array(problem["target"])).tolist()
    p, u = np.linspace(-3, 3, 8), np.linspace(-9, 9, 8)
    found = flow.basins(problem, (0, 1), grid=(p, u))
    side = u / 2 + 2 * np.sinh(p[:, None] / 2)
    assert np.abs(side).min() > 0.01
    np.testing.assert_array_equal(found.winner, np.where(side > 0, 0, 1))
    assert found.certain.all()
    assert "0 are ties" in found.message
    ahead = np.where(side > 0, p[:, None] > 0, p[:, None] < 0)
    np.testing.assert_array_equal(np.isneginf(found.log_t), ahead)
    # The other axes of the same plane, and the same with the two tokens exchanged.
    again = flow.basins(problem, (1, 0), grid=(-p, -u))
    np.testing.assert_array_equal(again.winner, found.winner)


def test_cells_are_flows_solved_one_by_one():
    problem = logistic(4, seed=5)
    a, u = np.array([-1.0, 0.3, 2.0]), np.array([-2.0, 1.0])
    found = flow.basins(problem, (1, 3), grid=(a, u), along="gaps")
    V0, a0, target = (np.array(problem[key]) for key in ("V0", "a0", "target"))
    start = V0.T @ target
    log_t = np.linspace(-8, 60, 2000)
    for i, j in ((0, 0), (1, 1), (2, 0)):
        a_cell, u_cell = a0.copy(), start.copy()
        a_cell[[1, 3]] = (a0[1] + a0[3]) / 2 + a[i] * np.array([0.5, -0.5])
        u_cell[[1, 3]] = (start[1] + start[3]) / 2 + u[j] * np.array([0.5, -0.5])
        cell = problem | {"V0": V0 + np.outer(target, u_cell - start), "a0": a_cell}
        lead = flow.solve(cell, log_t=log_t).s.argmax(axis=1)
        assert found.winner[i, j] == lead[-1]
        other = np.flatnonzero(lead != lead[-1])
        if len(other):
            assert found.log_t[i, j] == pytest.approx(log_t[other[-1]], abs=0.05)
        else:
            assert found.log_t[i, j] <= log_t[0]


def test_from_small_starts_the_largest_sum_of_both_wins():
    """Near s = 1/n the growing direction of (a, û) is a + û, û = u/‖β*‖: so u and s have equal say."""
    problems = [logistic(4, seed, scale=1e-4) for seed in range(50)]
    sums = [np.array(p["a0"]) + np.array(p["V0"]).T @ np.array(p["target"]) for p in problems]
    winners = flow.who_wins_many(problems)
    assert [w.outcome.winner for w in winners] == [int(v.argmax()) for v in sums]
    assert {w.by for w in winners} >= {"u", "s", "both"}
    # The path does not know the loss; the clocks of the two differ.
    other = flow.who_wins_many([p | {"loss": "exponential"} for p in problems])
    assert [w.outcome.winner for w in other] == [w.outcome.winner for w in winners]
    assert any(w.outcome.log_t != v.outcome.log_t for w, v in zip(other, winners, strict=True))


def test_statistics_count_every_start_and_agreeing_leaders_always_win():
    problems = [logistic(4, seed) for seed in range(60)]
    found = flow.winner_statistics(problems)
    assert sum(found.counts.values()) == len(found.winners) == 60
    assert found.uncertain == 0
    for problem, winner in zip(problems, found.winners, strict=True):
        u, s = np.array(problem["V0"]).T @ np.array(problem["target"]), np.array(problem["a0"])
        assert (winner.u_leader, winner.s_leader) == (u.argmax(), s.argmax())
        assert (winner.by == "both") == (winner.u_leader == winner.s_leader)
    parts = [found.fraction(by) for by in ("u", "s", "neither")]
    assert sum(part[0] for part in parts) == pytest.approx(1)
    for share, low, high, n in parts:
        assert low <= share <= high
        assert n == 60 - found.counts["both"]


def test_no_start_in_which_the_leaders_differ_gives_no_fraction():
    problem = logistic(4, seed=0)
    problem |= {"V0": np.eye(4), "a0": problem["target"]}
    assert np.isnan(flow.winner_statistics([problem]).fraction("u")[:3]).all()


def test_ties_are_said():
    V0 = [[0.3, 0.3, -0.5, -0.5], [0.1, 0.1, 0.2, 0.2]]
    tied = {"model": "value", "scores": "softmax", "loss": "logistic", "V0": V0, "a0": [0.2, 0.2, 0.0, -0.1]}
    found = flow.who_wins(tied | {"target": [1.0, 0.0]})
    assert (found.outcome.winner, found.by, found.u_leader, found.s_leader) == (-1, "tie", -1, -1)
    assert np.isnan(found.outcome.log_t)
    grid = flow.basins(tied | {"target": [0.6, 0.8]}, (0, 1), grid=([0.0, 1.0], [0.0, 1.0]))
    assert grid.winner.tolist() == [[-1, 0], [0, 0]]
    assert "1 are ties" in grid.message


def test_a_lead_from_a_tie_or_from_just_behind_has_its_own_time():
    """With a₀ = a₁ the leader of u leads s at every t > 0. From δ behind in a₀ - a₁ it takes the lead where
    (a₀ - a₁)(t) = δ - t·(its first derivative), long before the first look."""
    problem = logistic(4, seed=1)
    found = flow.basins(problem, (0, 1), grid=([0.0], [4.0, -4.0])).log_t
    assert np.isneginf(found).all()
    start = np.array(problem["V0"])
    for gap in (1e-9, 1e-7):
        a0 = np.array([1.0 - gap, 1.0, -1.0, -1.0])
        near = flow.basins(problem | {"a0": a0}, (0, 1), grid=([-gap], [4.0]))
        u = start.T @ np.array(problem["target"])
        u[:2] = u[:2].mean() + np.array([2.0, -2.0])
        s = np.exp(a0) / np.exp(a0).sum()
        speed = s * (u - s @ u) / (1 + np.exp(s @ u))
        assert near.winner[0, 0] == 0
        assert near.log_t[0, 0] == pytest.approx(np.log(gap / (speed[0] - speed[1])), abs=1e-2)


def test_flows_of_other_losses_and_of_other_axes():
    problem = flow.random_problem("square", n=3, d=3, seed=0, t=[1e3])
    a = np.array([-1.0, 2.0])
    found = flow.basins(problem, (0, 2), grid=(a, a), along="a")
    assert set(found.status.ravel()) == {"converged"}
    for i, j in ((0, 1), (1, 0)):
        start = np.array(problem["a0"])
        start[[0, 2]] = a[i], a[j]
        assert found.winner[i, j] == flow.solve(problem | {"a0": start}).s[0].argmax()
    u = flow.basins(logistic(4, seed=1), (0, 2), grid=([9.0, -9.0], [9.0, -9.0]), along="u")
    assert u.winner[0, 1] == 0
    assert u.winner[1, 0] == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"axes": (0, 0)}, "two different"),
        ({"axes": (0, 9)}, "two different"),
        ({"along": "v"}, "gaps"),
        ({"grid": ([1.0],)}, "two lists"),
        ({"grid": ([1.0], ["x"])}, "grid of axis 1"),
        ({"problem": flow.random_problem("kl", n=3)}, "without a target"),
        ({"problem": 3}, "problem"),
    ],
)
def test_bad_input(change, message):
    arguments = {"problem": logistic(3, 0), "axes": (0, 1), "grid": ([0.0], [0.0])} | change
    with pytest.raises(InputError, match=message):
        flow.basins(**arguments)


def test_who_leads_needs_a_target():
    with pytest.raises(InputError, match="target"):
        flow.who_wins(flow.random_problem("kl", n=3))
