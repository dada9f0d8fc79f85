"""Several runs in processes of their own: in order, failures kept, nothing left running."""

import multiprocessing
import os
import signal

import pytest
import torch

from polariscope import train
from polariscope.errors import InputError


def running():
    return {process.pid for process in multiprocessing.active_children()}


def test_results_come_in_order_and_a_failure_is_kept(make, tmp_path):
    (tmp_path / "taken").write_text("a file")
    plans = [make(attention="softmax", steps=6), make(steps=2), make(attention="uniform", steps=2)]
    heard = []
    results = train.run_many(
        plans, processes=2, progress=heard.append, folders=[tmp_path / "a", tmp_path / "taken", tmp_path / "c"]
    )
    assert [r.metrics["status"] for r in results] == ["ok", "error", "ok"]
    assert [r.settings for r in results] == plans
    assert heard == [1, 2, 3]
    failed = results[1]
    assert "output path" in failed.metrics["message"]
    assert failed.model is None
    assert failed.metrics["accuracy"] is None
    assert failed.metrics["heads"] == [dict.fromkeys(results[0].metrics["heads"][0]) | {"layer": 0, "head": 0}]
    assert set(failed.metrics) == set(results[0].metrics)
    alone = train.run(plans[0])
    assert alone.metrics["heads"] == results[0].metrics["heads"]
    assert torch.equal(alone.model.readout.weight, results[0].model.readout.weight)
    assert train.load(tmp_path / "c").metrics == results[2].metrics
    assert not running()


def test_a_process_that_dies_loses_its_run_only(make):
    def kill_first(done):
        if done == 1:
            os.kill(*running(), signal.SIGKILL)

    results = train.run_many([make(steps=1)] * 3, processes=1, progress=kill_first)
    assert [r.metrics["status"] for r in results] == ["ok", "error", "ok"]
    assert "exit code -9" in results[1].metrics["message"]
    assert not running()


def test_an_interrupt_stops_the_processes(make):
    def interrupt(done):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train.run_many([make(steps=1), make(steps=10**7)], processes=1, progress=interrupt)
    assert not running()


def test_no_runs_need_no_process():
    assert train.run_many([]) == []


def test_bad_arguments_are_refused(make, tmp_path):
    with pytest.raises(InputError, match="processes"):
        train.run_many([make()], processes=0)
    with pytest.raises(InputError, match="folders"):
        train.run_many([make()], folders=[])
