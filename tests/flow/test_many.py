"""Lists of problems: the same answers as one by one, in order, from one compilation."""

import os
import subprocess
import sys

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polariscope import flow
from polariscope.flow import chunks, clock, compiling, following, paths, solver

LOG_T = np.geomspace(0.1, 1e6, 25)


def test_fifty_flows_from_one_compilation():
    problems = [flow.preset("logistic", n=8, seed=seed) for seed in range(50)]
    before = following._integrate._cache_size()
    seen = []
    results = flow.solve_many(problems, log_t=LOG_T, progress=lambda *told: seen.append(told))
    assert following._integrate._cache_size() - before <= 1
    assert [name for _, _, name in seen] == [p["name"] for p in problems]
    assert seen[-1][:2] == (50, 50)
    for index in (0, 17, 49):
        alone = flow.solve(problems[index], log_t=LOG_T)
        np.testing.assert_allclose(results[index].s, alone.s, rtol=0, atol=1e-9)
        assert results[index].name == problems[index]["name"]
    rest = np.array([np.sort(r.s[-1])[:-1].sum() for r in results])
    np.testing.assert_allclose(rest * 1e12 / (2 * (1 - 1 / 8)), 1, atol=1e-3)


def test_mixed_lists_keep_their_order():
    problems = [
        flow.random_problem(loss, scores=scores, n=4, seed=seed, t=[1.0]) | {"name": f"{loss} {scores} {seed}"}
        for seed in range(2)
        for loss, scores in (("logistic", "softmax"), ("square", "softmax"), ("logistic", "square"))
    ]
    results = flow.solve_many(problems)
    assert [r.name for r in results] == [p["name"] for p in problems]
    for problem, result in zip(problems, results, strict=True):
        a = result.a[0]
        wanted = np.exp(a) / np.exp(a).sum() if problem["scores"] == "softmax" else a**2 / np.sum(a**2)
        np.testing.assert_allclose(result.s[0], wanted, rtol=0, atol=1e-12)


finite = st.floats(-3, 3).map(lambda x: round(x, 6))


@settings(max_examples=20, deadline=None, derandomize=True)
@given(
    V0=st.lists(st.lists(finite, min_size=4, max_size=4), min_size=2, max_size=2),
    a0=st.lists(finite, min_size=4, max_size=4),
    target=st.lists(finite, min_size=2, max_size=2).filter(lambda v: np.linalg.norm(v) > 1e-3),
)
def test_conservation_laws_from_any_start(V0, a0, target):
    problem = {"model": "value", "scores": "softmax", "loss": "logistic", "V0": V0, "a0": a0, "target": target}
    result = flow.solve(problem, log_t=[-3.0, 0.0, 3.0, 1e3])
    assert result.status == "ok"
    square = np.dot(target, target)
    u0 = np.array(V0).T @ np.array(target)
    np.testing.assert_allclose(result.s.sum(axis=1), 1, rtol=0, atol=1e-12)
    np.testing.assert_allclose(result.a.sum(axis=1), np.sum(a0), rtol=0, atol=1e-9)
    np.testing.assert_allclose(result.u.sum(axis=1), u0.sum() + square * result.tau, rtol=1e-9, atol=1e-9)
    margin = np.sum(result.u * result.s, axis=1)
    assert (np.diff(margin) > 0).all()
    log_loss = np.where(margin > 30, -margin, np.log(np.logaddexp(0, -np.minimum(margin, 30))))
    np.testing.assert_allclose(result.log_objective, log_loss, rtol=1e-9, atol=1e-9)


def test_chunks_over_several_devices_give_the_same(tmp_path):
    problems = [flow.preset("logistic", n=3, seed=seed) for seed in range(300)]
    alone = flow.solve_many(problems, log_t=[5.0])
    np.savez(tmp_path / "alone.npz", s=np.stack([r.s for r in alone]))
    program = f"""
import jax, numpy as np
from polariscope import flow
assert jax.device_count() == 2
problems = [flow.preset("logistic", n=3, seed=seed) for seed in range(300)]
found = np.stack([r.s for r in flow.solve_many(problems, log_t=[5.0])])
np.testing.assert_allclose(found, np.load({str(tmp_path / "alone.npz")!r})["s"], rtol=0, atol=1e-12)
"""
    devices = os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    done = subprocess.run([sys.executable, "-c", program], env=devices, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("loss", ["logistic", "square"])
def test_chunks_within_memory_give_the_same(monkeypatch, loss):
    problems = [flow.random_problem(loss, n=3, seed=seed) for seed in range(40)]
    whole = flow.solve_many(problems, t=[1.0, 10.0])
    monkeypatch.setattr(chunks, "MEMORY", 1 << 18)
    monkeypatch.setattr(paths, "MEMORY", 1)  # point by point
    monkeypatch.setattr(clock, "FEW", 3)
    several = flow.solve_many(problems, t=[1.0, 10.0])
    for one, other in zip(whole, several, strict=True):
        np.testing.assert_allclose(one.s, other.s, rtol=0, atol=1e-9)


def test_programs_of_few_kinds_are_kept(monkeypatch):
    cleared = []
    monkeypatch.setattr(compiling, "KINDS", 2)
    monkeypatch.setattr(solver, "AT_ONCE", 2)
    monkeypatch.setattr(jax, "clear_caches", lambda: cleared.append(True))
    problems = [flow.random_problem("logistic", n=n, scores="sum", seed=1) for n in (2, 3)]
    flow.solve_many(problems, t=[1.0])
    before = len(cleared)
    flow.solve_many(problems, t=[1.0])
    assert len(cleared) == before  # the same kinds again
    flow.solve_many([flow.random_problem("square", n=n, seed=1) for n in (2, 3)], t=[1.0])
    assert len(cleared) == before + 1


def test_programs_are_dropped_before_memory_maps_run_out(monkeypatch, tmp_path):
    cleared = []
    monkeypatch.setattr(jax, "clear_caches", lambda: cleared.append(True))
    monkeypatch.setattr(compiling, "MAPS", tmp_path / "maps")
    monkeypatch.setattr(compiling, "MOST_MAPS", tmp_path / "most")
    monkeypatch.setattr(compiling, "_kept", {"first"})
    assert not compiling.crowded()  # where the system does not tell
    compiling.MOST_MAPS.write_text("10\n")
    for mapped, others, dropped in ((5, "second", 0), (6, "second", 0), (6, "third", 1)):
        compiling.MAPS.write_text("a piece\n" * mapped)
        compiling.make_room([others])
        assert len(cleared) == dropped
    assert compiling._kept == {"third"}
