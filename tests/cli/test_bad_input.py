"""Bad input to any verb: exit code 2, one message with got, expected and what to do, no traceback, nothing written."""

import json
from pathlib import Path

import pytest

from polariscope.cli import main

GOOD_FLOW = {
    "model": "value",
    "scores": "softmax",
    "loss": "logistic",
    "V0": [[0.1, 0.2], [0.3, -0.1]],
    "a0": [0.0, 0.1],
    "target": [1.0, 0.0],
    "t": [1.0, 10.0],
}


def run(*words):
    with pytest.raises(SystemExit) as caught:
        main([str(word) for word in words])
    return caught.value.code


def refused(capsys, words, said):
    assert run(*words) == 2
    message = capsys.readouterr().err
    assert "Traceback" not in message
    for text in ("got:", "expected:", "do this:", *said):
        assert text in message, message


def flow_file(folder, **changes):
    path = folder / "problem.json"
    path.write_text(json.dumps(GOOD_FLOW | changes))
    return path


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.txt").write_text("short")
    (tmp_path / "binary.txt").write_bytes(bytes(range(128, 256)) * 20)
    (tmp_path / "cut.gguf").write_bytes(b"GGUF\x03\x00\x00\x00")
    (tmp_path / "foreign.gguf").write_bytes(b"not a model")
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "mine").write_text("mine")
    return tmp_path


FLOWS = {
    "unknown model": ({"model": "valu"}, ["value"]),
    "unknown scores": ({"scores": "softmacks"}, ["softmax"]),
    "unknown loss": ({"loss": "logistik"}, ["logistic"]),
    "shapes disagree": ({"a0": [0.0, 0.1, 0.2]}, ["V0"]),
    "target too long": ({"target": [1.0, 0.0, 0.0]}, ["target"]),
    "ragged V0": ({"V0": [[0.1, 0.2], [0.3]]}, ["V0"]),
    "words for numbers": ({"a0": ["x", "y"]}, ["a0"]),
    "zero target": ({"target": [0.0, 0.0]}, ["target"]),
    "times fall": ({"t": [10.0, 1.0]}, ["t"]),
    "negative time": ({"t": [-1.0, 1.0]}, ["t"]),
    "both clocks": ({"log_t": [1.0]}, ["log_t"]),
    "empty a0": ({"a0": [], "V0": []}, []),
}


@pytest.mark.parametrize("case", FLOWS)
def test_flow_problems(place, capsys, case):
    changes, said = FLOWS[case]
    refused(capsys, ["flow", flow_file(place, **changes), "-o", "out.json"], said)
    assert not (place / "out.json").exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [("{", "line 1"), ('{"a0": [NaN]}', "NaN"), ("[]", ""), ("3", ""), ("[3]", ""), ('{"model": 3}', ""), ("{}", "")],
)
def test_flow_files(place, capsys, text, said):
    (place / "bad.json").write_text(text)
    refused(capsys, ["flow", "bad.json", "-o", "out.json"], [said])


def test_flow_missing_key_is_named(place, capsys):
    problem = {key: value for key, value in GOOD_FLOW.items() if key != "target"}
    (place / "bad.json").write_text(json.dumps(problem))
    refused(capsys, ["flow", "bad.json", "-o", "out.json"], ["target"])


def test_flow_in_a_list_says_which_one(place, capsys):
    (place / "bad.json").write_text(json.dumps([GOOD_FLOW, GOOD_FLOW | {"name": "second", "scores": "x"}]))
    refused(capsys, ["flow", "bad.json", "-o", "out.json"], ["second"])


OTHERS = {
    "flow: missing file": (["flow", "nothing.json", "-o", "x.json"], ["nothing.json"]),
    "flow: nothing to solve": (["flow", "-o", "x.json"], ["--preset"]),
    "flow: unknown preset": (["flow", "--preset", "logistik", "-o", "x.json"], ["logistic"]),
    "flow: odd times": (["flow", "--preset", "logistic", "--t", "1,x", "-o", "x.json"], ["x"]),
    "flow: NaN time": (["flow", "--preset", "logistic", "--t", "nan", "-o", "x.json"], ["nan"]),
    "flow: output is a folder": (["flow", "--preset", "logistic", "--t", "1", "-o", "folder"], ["folder"]),
    "flow: rtol": (["flow", "--preset", "logistic", "--t", "1", "--rtol", "-1", "-o", "x.json"], ["rtol"]),
    "probe: unknown model": (["probe", "smollm2-135x", "-o", "x"], ["smollm2-135m"]),
    "probe: missing gguf": (["probe", "nothing.gguf", "-o", "x"], ["nothing.gguf"]),
    "probe: cut gguf": (["probe", "cut.gguf", "-o", "x"], ["cut.gguf"]),
    "probe: foreign gguf": (["probe", "foreign.gguf", "-o", "x"], ["foreign.gguf"]),
    "probe: folder without model": (["probe", "./folder", "-o", "x"], ["folder"]),
    "probe: missing data": (["probe", "planted", "--data", "nothing.jsonl", "-o", "x"], ["nothing.jsonl"]),
    "probe: unknown data": (["probe", "planted", "--data", "pydox", "-o", "x"], ["pydoc"]),
    "probe: not text": (["probe", "planted", "--data", "binary.txt", "-o", "x"], ["binary.txt"]),
    "probe: text too short": (["probe", "planted", "--data", "text.txt", "--max-length", "64", "-o", "x"], ["64"]),
    "probe: output is a file": (["probe", "planted", "-o", "file"], ["file"]),
    "probe: foreign output": (["probe", "planted", "-o", "folder"], ["folder"]),
    "probe: unknown bos": (["probe", "planted", "--bos", "maybe", "-o", "x"], ["auto"]),
    "probe: odd eps": (["probe", "planted", "--eps", "0.3,x", "-o", "x"], ["x"]),
    "probe: eps out of range": (["probe", "planted", "--eps", "1.5", "-o", "x"], ["1.5"]),
    "probe: seed": (["probe", "planted", "--seed", "-1", "-o", "x"], ["-1"]),
    "probe: limit": (["probe", "planted", "--limit", "0", "-o", "x"], ["0"]),
    "probe: length": (["probe", "planted", "--max-length", "1", "-o", "x"], ["1"]),
    "train: unknown task": (["train", "clasification", "-o", "x"], ["classification"]),
    "train: unknown attention": (["train", "classification", "--attention", "softmacks", "-o", "x"], ["softmax"]),
    "train: vocabulary": (["train", "classification", "--vocabulary", "40", "-o", "x"], ["40"]),
    "train: length": (["train", "classification", "--length", "50", "-o", "x"], ["50"]),
    "train: heads": (["train", "classification", "--heads", "3", "--dim", "128", "-o", "x"], ["3"]),
    "train: learning rate": (["train", "classification", "--lr", "nan", "-o", "x"], ["lr"]),
    "train: two budgets": (["train", "classification", "--epochs", "1", "--steps", "1", "-o", "x"], ["steps"]),
    "train: output is a file": (["train", "classification", "-o", "file"], ["file"]),
    "study: unknown claim": (["study", "--only", "C1,C99", "-o", "x"], ["C99"]),
    "study: unknown scale": (["study", "--scale", "huge", "-o", "x"], ["quick"]),
    "study: output is a file": (["study", "--only", "C1", "-o", "file"], ["file"]),
    "study: foreign output": (["study", "--only", "C1", "-o", "folder"], ["folder"]),
    "study: nothing": (["study", "--only", ",", "-o", "x"], ["claim"]),
    "report: no result": (["report", "folder", "-o", "x.html"], ["folder"]),
    "report: missing": (["report", "nothing", "-o", "x.html"], ["nothing"]),
    "report: output is a folder": (["report", "folder", "-o", "folder"], ["folder"]),
    "ls: unknown kind": (["ls", "score"], ["scores"]),
}


@pytest.mark.parametrize("case", OTHERS)
def test_other_bad_input(place, capsys, case):
    words, said = OTHERS[case]
    before = sorted(path.name for path in place.iterdir())
    refused(capsys, words, said)
    assert sorted(path.name for path in place.iterdir()) == before


@pytest.mark.parametrize(
    "words",
    [
        ["nonsense"],
        ["flow", "--nonsense", "-o", "x"],
        ["train", "classification"],
        ["flow", "--preset", "logistic", "--n", "0", "--t", "1", "-o", "x.json"],
    ],
)
def test_wrong_usage_is_exit_code_2(place, capsys, words):
    assert run(*words) == 2
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["scores", "losses", "attention", "tasks", "models", "claims"])
def test_ls(capsys, kind):
    assert run("ls", kind) == 0
    text = capsys.readouterr().out
    assert run("ls", kind, "--json") == 0
    summaries = json.loads(capsys.readouterr().out)
    assert summaries
    assert all(name in text for name in summaries)


def test_underscores_are_hyphens(place, capsys):
    refused(capsys, ["probe", "planted", "--data", "text.txt", "--max_length=64", "-o", "x"], ["64"])
    assert not Path("x").exists()


@pytest.mark.parametrize(
    "changes",
    [
        {"scores": "sum", "loss": "square", "V0": [[0.1, 0.2, 0.3]] * 2, "a0": [0.1, 0.0, -0.1]},
        {"scores": "sum", "V0": [[0.1, 0.2, 0.3]] * 2, "a0": [1, -1, 0]},
        {"target": [1e-300, 5e-301]},
        {"target": [1e300, 5e301]},
        {"a0": [10**400, 1]},
        {"a0": ["0.1", "0.2"]},
        {"a0": [True, False]},
    ],
)
def test_starts_without_a_flow(place, capsys, changes):
    refused(capsys, ["flow", flow_file(place, **changes), "-o", "out.json"], [])


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a0": [' + "1" * 5000 + "]}"])
def test_json_beyond_reason(place, capsys, text):
    (place / "bad.json").write_text(text)
    refused(capsys, ["flow", "bad.json", "-o", "out.json"], ["bad.json"])
