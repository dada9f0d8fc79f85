"""``polariscope flow --grid``: the folder, the table, exit codes."""

import json
import subprocess
import sys

import pandas as pd
import pytest
import yaml
from flow_command import run

SPEC = {"axes": {"scale": [0.1, 1.0], "temperature": [1.0, 2.0]}, "fixed": {"n": 2}, "seeds": 3, "t": [1, 100]}


@pytest.fixture
def spec(tmp_path):
    path = tmp_path / "spec.yaml"
    path.write_text(yaml.safe_dump(SPEC, sort_keys=False))
    return path


def test_a_folder_with_tables_picture_and_page(tmp_path, spec, capsys):
    out = tmp_path / "out"
    assert run("--grid", spec, "-o", out) == 0
    names = {"spec.json", "parts", "grid.parquet", "cells.parquet", "settings.json", "grid.png", "grid.html"}
    assert {path.name for path in out.iterdir()} == names
    settings = json.loads((out / "settings.json").read_text())
    assert settings["kind"] == "grid"
    assert settings["options"]["axes"] == SPEC["axes"]
    assert {"created", "versions"} <= set(settings["started"])
    said = capsys.readouterr().out
    cells = pd.read_parquet(out / "cells.parquet")
    assert len(cells) == 8
    last = cells[cells.log_t > 1].set_index(["temperature", "scale"]).normalized_entropy
    lines = {line.split()[0]: line.split()[1:] for line in said.splitlines() if line[:1].isdigit()}
    for temperature in (1.0, 2.0):
        assert lines[f"{temperature:g}"] == [f"{last[temperature, scale]:.3f}" for scale in (0.1, 1.0)]
    assert "mean normalized entropy at t = 100" in said
    assert "12 flows: 12 ok" in said
    before = {name: (out / name).read_bytes() for name in ("grid.parquet", "cells.parquet")}
    assert run("--grid", spec, "-o", out, "--json") == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["statuses"] == {"ok": 12}
    assert len(summary["cells"]) == 8
    assert {name: (out / name).read_bytes() for name in before} == before


def test_flows_that_do_not_get_there_give_exit_code_1(tmp_path, spec, capsys):
    cold = {"n": 2, "scores": "identity", "temperature": 1e-100}
    lost = {"axes": {"scale": [1e100]}, "fixed": cold, "seeds": 2, "t": 1}
    spec.write_text(yaml.safe_dump(lost))
    assert run("--grid", spec, "-o", tmp_path / "out") == 1
    assert "2 diverged" in capsys.readouterr().out
    assert (tmp_path / "out" / "settings.json").exists()


CHILD = """
import sys
import jax
import jax.numpy as jnp
from polariscope import flow
from polariscope.cli import main

def busy(*_):
    step = lambda v: (v[0] + 1, jnp.sin(v[1] @ v[1]))
    flow.found = jax.jit(lambda x: jax.lax.while_loop(lambda v: v[0] < 10**8, step, (0, x)))(jnp.eye(200))
    raise KeyboardInterrupt

flow.grid = busy
main(["flow", "--grid", *sys.argv[1:]])
"""


def test_an_interrupt_ends_the_command_at_once(tmp_path, spec):
    """Also while JAX still computes in the background, for an hour here."""
    ended = subprocess.run(
        [sys.executable, "-c", CHILD, spec, "-o", tmp_path / "out"], capture_output=True, text=True, timeout=200
    )
    assert ended.returncode == 130
    assert "interrupted" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("axes: {n: [2, 4]}", "exactly one of t and log_t"),
        ("axes: {m: [2, 4]}\nt: 1", "unknown axis"),
        ("axes: {n: [2, 4]}\nn: 3\nt: 1", "unknown grid setting"),
        ("axis: {n: [2, 4]}\nt: 1", "did you mean 'axes'"),
        ("axes: {n: [2, 4]}\nt: 1\nt: 2", "error: key t"),
        ("- 1\n- 2", "a mapping with name, axes"),
        ("words", "a mapping with name, axes"),
        ("", "a mapping with name, axes"),
        ("axes: {n: [2, 4]", "line 1"),
        ("axes: {n: {from: 1, to: 9000, count: 9000}}\nseeds: 200\nt: 1", "at most 1000000 flows"),
    ],
)
def test_bad_specs_give_exit_code_2_and_one_message(tmp_path, spec, capsys, text, said):
    spec.write_text(text)
    assert run("--grid", spec, "-o", tmp_path / "out") == 2
    told = capsys.readouterr().err
    assert said in told
    assert "Traceback" not in told
    assert not (tmp_path / "out").exists()


def test_bad_places_and_options(tmp_path, spec, capsys):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("x")
    tries = {
        ("--grid", spec, "-o", tmp_path / "mine"): "other things",
        ("--grid", spec, "-o", spec): "a file",
        ("--grid", spec, "-o", "/dev/null/out"): "output path",
        ("--grid", tmp_path / "none.yaml", "-o", tmp_path / "out"): "none.yaml",
        ("--grid", tmp_path, "-o", tmp_path / "out"): "input file",
        ("--grid", spec, "--n", 3, "--rtol", "1e-6", "-o", tmp_path / "out"): "--grid and --n, --rtol",
        ("problem.json", "--grid", spec, "-o", tmp_path / "out"): "problem",
    }
    for words, said in tries.items():
        assert run(*words) == 2
        told = capsys.readouterr().err
        assert said in told
        assert "Traceback" not in told
    assert not (tmp_path / "out").exists()
