"""``polariscope probe``: files, exit codes, messages."""

import json

import pandas as pd
import pytest

from polariscope.cli import main

FILES = ["results.json", "settings.json"] + [
    f"{name}.parquet"
    for name in ("heads", "layers", "positions", "documents", "activations", "document_heads", "document_layers")
]
BASE = ["planted", "--max-length", "32", "--limit", "3"]


def run(*words):
    with pytest.raises(SystemExit) as caught:
        main(["probe", *map(str, words)])
    return caught.value.code


def test_files_and_summary(tmp_path, capsys):
    out = tmp_path / "out"
    assert run(*BASE, "--eps", "0.3,0.5", "-o", out) == 0
    assert sorted(path.name for path in out.iterdir()) == sorted(FILES)
    text, errors = capsys.readouterr()
    assert "Traceback" not in errors
    for words in (
        "4 layers × 4 heads",
        "3 documents of 32 tokens",
        "sink rate, threshold 0.5",
        "massive activations: 1, 2",
    ):
        assert words in text
    settings = json.loads((out / "settings.json").read_text())
    assert settings["kind"] == "probe"
    assert (
        settings["options"] | {"model": "planted", "data": "pydoc", "max_length": 32, "limit": 3} == settings["options"]
    )
    assert settings["model"]["dtype"] == "float32"
    heads = pd.read_parquet(out / "heads.parquet")
    assert len(heads) == 16
    assert {"layer", "head", "sink_rate", "sink_rate_0.5_high", "null_mass_low"} <= set(heads)


def test_json_is_one_object_and_equals_the_file(tmp_path, capsys):
    out = tmp_path / "out"
    assert run(*BASE, "--json", "-o", out) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed.pop("output") == str(out)
    assert printed == json.loads((out / "results.json").read_text())
    assert printed["self_checks"]["causality"]["passed"]


def test_underscores_and_a_second_run_into_the_same_folder(tmp_path):
    out = tmp_path / "out"
    assert run("planted", "--max_length=32", "--limit", "2", "--bos", "off", "-o", out) == 0
    assert run("planted", "--max_length", "40", "--limit", "2", "-o", out) == 0
    assert json.loads((out / "results.json").read_text())["max_length"] == 40


def test_bos_is_put_first(tmp_path):
    assert run(*BASE, "--bos", "on", "-o", tmp_path / "out") == 0
    first = json.loads((tmp_path / "out" / "results.json").read_text())["first_tokens"]
    assert first["at_position_1"] == [{"id": 256, "token": "<bos>", "documents": 3}]


@pytest.mark.parametrize("data", ["random-tokens", "repeated-token"])
def test_drawn_tokens_depend_on_the_seed_only(tmp_path, data):
    ids = []
    for index, seed in enumerate((0, 0, 1)):
        out = tmp_path / str(index)
        assert run(*BASE, "--data", data, "--seed", seed, "-o", out) == 0
        ids.append(json.loads((out / "results.json").read_text())["first_tokens"]["ids"])
    assert ids[0] == ids[1] != ids[2]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--max-length", "5000"], "4096"),
        (["--max-length", "1"], "--max-length"),
        (["--limit", "0"], "--limit"),
        (["--bos", "both"], "auto"),
        (["--eps", "0.3;0.5"], "--eps"),
        (["--eps", "2"], "--eps"),
        (["--device", "abacus"], "device"),
        (["--dtype", "float33"], "float32"),
        (["--seed", "-1", "--data", "random-tokens"], "seed"),
        (["--revision", "main"], "revision"),
    ],
)
def test_bad_options_leave_nothing_behind(tmp_path, capsys, words, said):
    assert run("planted", *words, "-o", tmp_path / "out") == 2
    message = capsys.readouterr().err
    assert said in message
    assert "Traceback" not in message
    assert list(tmp_path.iterdir()) == []
