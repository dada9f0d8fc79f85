"""``polariscope probe``: files, exit codes, messages."""

import inspect
import json

import numpy as np
import pandas as pd
import pytest
import zstandard

from polariscope import models
from polariscope.cli import main
from polariscope.cli.probe import command as probe_command
from polariscope.probe import presets
from polariscope.probe.statistics import metric_names

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
        (["--bos", "never"], "auto"),
        (["--layers", "2-x"], "--layers"),
        (["--layers", "4"], "0 to 3"),
        (["--heads", "0,7"], "0 to 3"),
        (["--until-ci", "0"], "--until-ci"),
        (["--until-ci", "0.1", "--until-metric", "sink"], "sink_rate"),
        (["--preset", "gu"], "gu2024"),
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


def results(folder):
    return json.loads((folder / "results.json").read_text())


def test_a_preset_sets_what_is_not_given(tmp_path):
    out = tmp_path / "out"
    words = ["planted", "--data", "random-tokens", "--preset", "sun2024", "--max-length", "40", "-o", out]
    assert run(*words) == 0
    options = json.loads((out / "settings.json").read_text())["options"]
    assert (options["max_length"], options["limit"], options["bos"], options["preset"]) == (40, 10, "off", "sun2024")
    assert results(out)["documents"]["measured"] == 10


@pytest.mark.parametrize("name", presets.PRESETS)
def test_every_option_of_a_preset_is_one_of_the_command(name):
    assert set(presets.get(name).options) <= set(inspect.signature(probe_command).parameters)
    assert presets.get(name).read in [*metric_names((0.3,)), "massive_max"]


def test_layers_and_heads(tmp_path):
    assert run(*BASE, "-o", tmp_path / "all") == 0
    assert run(*BASE, "--layers", "1-2", "--heads", "0,3", "-o", tmp_path / "some") == 0
    every, some = (pd.read_parquet(tmp_path / name / "heads.parquet") for name in ("all", "some"))
    wanted = every[every["layer"].isin([1, 2]) & every["head"].isin([0, 3])].reset_index(drop=True)
    pd.testing.assert_frame_equal(some, wanted, rtol=1e-4, atol=1e-5)  # layer 0 ran in kernels of torch


def test_stops_by_itself(tmp_path, capsys):
    words = ["planted", "--data", "random-tokens", "--max-length", "32", "--until-metric", "max_logit"]
    assert run(*words, "--until-ci", "1e-3", "-o", tmp_path / "narrow") == 0
    assert run(*words, "--until-ci", "1e-3", "--limit", "25", "-o", tmp_path / "limited") == 0
    assert run(*words, "--until-ci", "1", "-o", tmp_path / "wide") == 0
    wide, limited, narrow = (results(tmp_path / name) for name in ("wide", "limited", "narrow"))
    assert wide["documents"]["measured"] == 20
    assert wide["until"]["reached"]
    assert limited["documents"]["measured"] <= 25
    assert narrow["documents"]["measured"] % 5 == 0 or not narrow["until"]["reached"]
    for found in (wide, narrow):
        metric = found["metrics"]["max_logit"]
        width = (metric["high"] - metric["low"]) / 2
        assert (width <= found["until"]["half_width"]) == found["until"]["reached"]
    assert "stopped by itself: max_logit" in capsys.readouterr().out


def test_a_dry_run_writes_nothing_and_counts(tmp_path, capsys):
    assert run(*BASE, "--data", "random-tokens", "--dry-run", "--json", "-o", tmp_path / "out") == 0
    found = json.loads(capsys.readouterr().out)
    assert list(tmp_path.iterdir()) == []
    assert (found["documents"], found["tokens"], found["scans"]) == (3, 96, 1)
    assert found["seconds"] == pytest.approx(3 * found["seconds_a_document"])
    planted = models.load("planted").model
    assert found["model_bytes"] == sum(x.nbytes for x in [*planted.parameters(), *planted.buffers()])
    assert found["peak_bytes"] > found["model_bytes"] + found["record_bytes"] > 0
    assert found["engines"] == {"blocks": [0, 1, 2, 3]}


def test_a_finished_run_is_not_done_again(tmp_path, capsys):
    out = tmp_path / "out"
    assert run(*BASE, "--resume", "-o", out) == 0
    before = (out / "heads.parquet").stat().st_mtime_ns
    capsys.readouterr()
    assert run(*BASE, "--resume", "-o", out) == 0
    assert "nothing to resume" in capsys.readouterr().out
    assert (out / "heads.parquet").stat().st_mtime_ns == before
    assert run(*BASE, "--resume", "--seed", "1", "-o", out) == 0
    assert results(out)["resampling_seed"] == 1


def test_a_broken_shard_is_said_and_the_rest_measured(tmp_path, capsys):
    words = np.random.default_rng(0).integers(0, 1 << 30, size=(40, 2000)).tolist()
    lines = "".join(json.dumps({"text": " ".join(map(str, row))}) + "\n" for row in words).encode()
    shards = tmp_path / "shards"
    shards.mkdir()
    (shards / "0.jsonl.zst").write_bytes(zstandard.compress(lines)[:200_000])
    (shards / "1.jsonl").write_bytes(lines)
    assert run("planted", "--max-length", "32", "--limit", "30", "--data", shards, "-o", tmp_path / "out") == 1
    found = results(tmp_path / "out")
    assert found["documents"]["measured"] == 30
    (said,) = found["documents"]["broken"]
    before = int(said.split("breaks off after ")[1].split()[0])
    ids = pd.read_parquet(tmp_path / "out" / "documents.parquet")["id"].str.partition(":")[0].tolist()
    assert ids == ["0.jsonl.zst"] * before + ["1.jsonl"] * (30 - before)
    assert "warning: not read to its end" in capsys.readouterr().out
    assert run("planted", "--max-length", "32", "--limit", before, "--data", shards, "-o", tmp_path / "few") == 0


def test_a_part_of_the_pile(tmp_path):
    path = tmp_path / "pile.jsonl"
    rows = [{"text": "ab" * 50, "meta": {"pile_set_name": ("Github", "ArXiv")[i % 2]}} for i in range(6)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    base = ["planted", "--max-length", "32", "--data", path, "--subset"]
    assert run(*base, "ArXiv", "-o", tmp_path / "out") == 0
    table = pd.read_parquet(tmp_path / "out" / "documents.parquet")
    assert table["id"].tolist() == ["pile.jsonl:2", "pile.jsonl:4", "pile.jsonl:6"]
    assert run(*base, "Books", "-o", tmp_path / "none") == 2
