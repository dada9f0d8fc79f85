"""``polariscope flow``: files, tables, exit codes."""

import json

import pytest
from flow_command import run

from polariscope import flow

SMALL = flow.preset("logistic", n=8, seed=0, t=[1.0, 10.0])


@pytest.fixture
def problem(tmp_path):
    path = tmp_path / "problem.json"
    path.write_text(json.dumps(SMALL))
    return path


def test_preset_to_a_time_beyond_floats(tmp_path, capsys):
    out = tmp_path / "long.json"
    assert run("--preset", "logistic", "--n", 8, "--seed", 0, "--log-t", "10,1e6", "-o", out) == 0
    found = json.loads(out.read_text())
    assert found["t"][1] == "inf"
    assert found["log_t"] == [10, 1e6]
    assert max(found["s"][1]) > 1 - 1e-11
    assert {"a", "u", "objective", "log_objective", "entropy", "status", "message", "checks", "stats"} <= set(found)
    assert {"name", "holds", "margin", "where", "tolerance", "statement"} <= set(found["checks"][0])
    table = capsys.readouterr().out
    assert "logistic-8-seed0" in table
    assert "e^1e+06" in table


def test_object_in_object_out_list_in_list_out(tmp_path, problem):
    out = tmp_path / "out.json"
    assert run(problem, "-o", out) == 0
    one = json.loads(out.read_text())
    problem.write_text(json.dumps([SMALL]))
    assert run(problem, "-o", out, "--t", "1,10") == 0
    (several,) = json.loads(out.read_text())
    assert several["s"][0] == pytest.approx(one["s"][0], abs=1e-12)


def test_json_summary(tmp_path, problem, capsys):
    assert run(problem, "-o", tmp_path / "out.json", "--json") == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["failed"] == []
    assert summary["problems"][0]["status"] == "ok"


def test_a_flow_that_fails_gives_exit_code_1(tmp_path, capsys):
    stuck = SMALL | {"name": "stuck", "scores": "l1", "a0": [0.0, 0.5, 1.0, 1.5, 2, 2, 2, 2], "t": [1e4]}
    stuck["V0"] = [[0.0] * 8 for _ in range(8)]
    stuck["target"] = [1.0] + [0.0] * 7
    stuck["V0"][0] = [3.0, 0, 0.5, 1, 1, 1, 1, 1]
    path, out = tmp_path / "stuck.json", tmp_path / "out.json"
    path.write_text(json.dumps([stuck]))
    assert run(path, "-o", out) == 1
    (bad,) = json.loads(out.read_text())
    assert bad["status"] == "kink"
    assert bad["s"][-1] == [None] * 8
    assert "stuck" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--preset", "logistik"], "logistic"),
        (["--preset", "logistic", "--t", "1,x"], "1,10,100"),
        (["--preset", "logistic", "--t", "1", "--log-t", "1"], "exactly one"),
        (["--preset", "logistic", "--rtol", "7"], "rtol"),
        ([], "--preset"),
        (["nothing.json"], "nothing.json"),
        (["nothing.json", "--n", "5", "--seed", "1"], "nothing.json and --n, --seed"),
    ],
)
def test_bad_input_gives_exit_code_2_and_one_message(tmp_path, monkeypatch, capsys, words, said):
    monkeypatch.chdir(tmp_path)
    assert run(*words, "-o", "out.json") == 2
    told = capsys.readouterr().err
    assert said in told
    assert "Traceback" not in told
    assert not (tmp_path / "out.json").exists()


def test_a_folder_is_no_output(tmp_path, problem, capsys):
    assert run(problem, "-o", tmp_path) == 2
    assert "folder" in capsys.readouterr().err
