"""``polariscope train``: its files, its summary and its exit codes."""

import json

import pytest

from polariscope.cli import main


def call(*words):
    with pytest.raises(SystemExit) as caught:
        main(["train", *map(str, words)])
    return caught.value.code


def test_a_run_writes_its_folder_and_a_summary(tmp_path, capsys):
    words = ["classification", "--attention", "sigmoid", "--steps", 3, "--no-mlp", "--no-layernorm", "--batch_size=32"]
    assert call(*words, "-o", tmp_path / "run") == 0
    text = capsys.readouterr().out
    names = {"config.json", "metrics.json", "model.safetensors", "settings.json", "trace.parquet"}
    assert {path.name for path in (tmp_path / "run").iterdir()} == names
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert {"accuracy", "loss", "heads"} <= set(metrics)
    assert {"layer", "head", "max_share", "flip_rate"} <= set(metrics["heads"][0])
    assert f"{metrics['accuracy']:.4f}" in text
    assert "flip_rate" in text
    assert json.loads((tmp_path / "run" / "settings.json").read_text())["options"]["batch_size"] == 32


def test_the_summary_is_json_on_request(tmp_path, capsys):
    options = ["--layers", 2, "--heads", 2, "--dim", 8, "--mlp", "--layernorm", "--positions", "concat"]
    assert call("classification", "--steps", 1, *options, "--json", "-o", tmp_path / "run") == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["status"] == "ok"
    assert len(summary["heads"]) == 4
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert (config["mlp"], config["layernorm"], config["positions"]) == (True, True, "concat")


def test_a_run_that_diverges_is_written_and_exits_1(tmp_path, capsys):
    assert call("classification", "--lr", "1e30", "--steps", 30, "-o", tmp_path / "run") == 1
    assert "not finite at step" in capsys.readouterr().out
    assert json.loads((tmp_path / "run" / "metrics.json").read_text())["status"] == "diverged"


@pytest.mark.parametrize(
    "words",
    [
        ["--positions", "rotary"],
        ["--optimizer", "adam"],
        ["--batch-size", 0],
        ["--seed", -1],
        ["--lr", "fast"],
        ["--shift-query"],
    ],
)
def test_bad_values_exit_2_and_write_nothing(words, tmp_path, capsys):
    assert call("classification", *words, "-o", tmp_path / "run") == 2
    assert "Traceback" not in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
