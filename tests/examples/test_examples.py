"""Every example runs, prints what it says it prints, and draws."""

import re
import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name, monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    return capsys.readouterr().out


def test_escape_from_a_tie(tmp_path, monkeypatch, capsys):
    said = run("escape_from_a_tie.py", monkeypatch, capsys, tmp_path / "escape.svg")
    assert "s is off 1/n by 0.0e+00" in said
    rows = re.findall(r"^ *([au]) +([\d.e-]+) +(\d+) +([\d.]+) +([\d.]+)$", said, re.MULTILINE)
    assert len(rows) == 20
    assert {row[2] for row in rows} == {"0"}
    slopes = re.findall(r"grows by ([\d.]+) ± [\d.]+ for each log\(1/δ\); the law says ([\d.]+)", said)
    assert len(slopes) == 4
    for slope, law in slopes:
        assert float(slope) == pytest.approx(float(law), rel=1e-3)
    assert "escape" in (tmp_path / "escape.svg").read_text(encoding="utf-8")


def test_flow_vs_adam(tmp_path, monkeypatch, capsys):
    said = run("flow_vs_adam.py", monkeypatch, capsys, tmp_path / "chart.png")
    assert re.findall(r"^(.+?): \S+ made all 2000 steps", said, re.MULTILINE) == [
        "gradient descent",
        "heavy ball, μ = 0.9",
        "Adam",
        "sign descent",
    ]
    assert (tmp_path / "chart.png").stat().st_size > 10_000


def test_phase_diagram(tmp_path, monkeypatch, capsys):
    from polariscope import flow

    grid, solved = flow.grid, []

    def smaller(spec, folder):
        solved.append(spec)
        axes = {"condition_number": [1, 100], "target_norm": [1, 10]}
        return grid(spec | {"axes": axes, "fixed": spec["fixed"] | {"n": 3}, "seeds": 2, "t": 10}, folder)

    monkeypatch.setattr(flow, "grid", smaller)
    said = run("phase_diagram.py", monkeypatch, capsys, tmp_path / "regression")
    assert len(flow.GridSpec(**solved[0]).cells) == 20
    rows = re.findall(r"^ +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+)", said, re.MULTILINE)
    assert [tuple(map(float, row[:2])) for row in rows] == [(1, 1), (1, 10), (100, 1), (100, 10)]
    assert all(0 <= float(low) <= float(mean) <= float(high) <= 1 for _, _, mean, low, high in rows)
    assert (tmp_path / "regression" / "grid.png").stat().st_size > 10_000


def test_the_example_spec_can_be_read():
    from polariscope.flow.grid_spec import read_spec

    assert len(read_spec(EXAMPLES / "phase_diagram.yaml").cells) == 24


def test_readme_figure(tmp_path, monkeypatch, capsys):
    from polariscope import models, probe

    loaded = models.load("planted")
    found = probe.scan(loaded.model, loaded.tokenizer, ["any text that is long enough"] * 3, max_length=16, bos="off")
    (tmp_path / "study" / "C11").mkdir(parents=True)
    found.heads.to_parquet(tmp_path / "study" / "C11" / "heads.parquet")
    run("readme_figure.py", monkeypatch, capsys, tmp_path / "study", tmp_path / "images")
    assert (tmp_path / "images" / "sinks.png").stat().st_size > 5_000


def test_every_example_is_listed_and_tested():
    programs = sorted(path.name for path in EXAMPLES.glob("*.py"))
    listed = re.findall(r"python examples/(\w+\.py)", (EXAMPLES / "README.md").read_text(encoding="utf-8"))
    tested = re.findall(r'run\("(\w+\.py)"', Path(__file__).read_text(encoding="utf-8"))
    assert programs == sorted(listed) == sorted(tested)
