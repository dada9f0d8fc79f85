"""Saved runs: they come back as they were, and damaged ones are refused with words."""

import json
import shutil

import pandas as pd
import pytest
import torch

from polariscope import tasks, train
from polariscope.errors import InputError


def test_a_run_comes_back_as_it_was(make, tmp_path):
    result = train.run(
        make(steps=3, layers=2, heads=2, dim=16, mlp=True, layernorm=True, positions="add"), tmp_path / "run"
    )
    back = train.load(tmp_path / "run")
    ids = tasks.Classification().draw(20, tasks.stream(9, "test")).ids
    assert torch.equal(back.model(ids).logits, result.model(ids).logits)
    assert back.settings == result.settings
    assert back.metrics == result.metrics
    pd.testing.assert_frame_equal(back.trace, result.trace, check_exact=True)


def test_the_settings_file_says_what_was_run(softmax_folder):
    saved = json.loads((softmax_folder / "settings.json").read_text())
    assert saved["kind"] == "train"
    assert saved["options"]["attention"] == "softmax"
    assert saved["seeds"] == [0]
    assert saved["versions"]["torch"]


DAMAGES = {
    "no metrics": ("metrics.json", None),
    "metrics of something else": ("metrics.json", b"[]"),
    "metrics without heads": ("metrics.json", b'{"status": "ok", "accuracy": 1}'),
    "config is no JSON": ("config.json", b"{"),
    "config of something else": ("config.json", b'{"hidden_size": 3}'),
    "config of another width": ("config.json", b'{"vocabulary": 41, "length": 11, "outputs": 4, "dim": 64}'),
    "config with odd heads": ("config.json", b'{"vocabulary": 41, "length": 11, "outputs": 4, "heads": 3}'),
    "no model": ("model.safetensors", None),
    "empty model": ("model.safetensors", b""),
    "model is no safetensors": ("model.safetensors", b"\xff" * 200),
    "no trace": ("trace.parquet", None),
    "trace is no parquet": ("trace.parquet", b"PAR1 and more"),
    "settings of something else": ("settings.json", b'{"kind": "probe"}'),
    "no options": ("settings.json", b'{"kind": "train"}'),
    "unknown options": (
        "settings.json",
        b'{"kind": "train", "options": {"task": "classification", "x": 1}}',
    ),
    "settings is a list": ("settings.json", b"[]"),
    "no settings": ("settings.json", None),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_folders_are_refused(softmax_folder, tmp_path, damage):
    name, content = DAMAGES[damage]
    folder = tmp_path / "run"
    shutil.copytree(softmax_folder, folder)
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_bytes(content)
    with pytest.raises(InputError):
        train.load(folder)


@pytest.mark.parametrize("share", [0.5, 0.99])
@pytest.mark.parametrize("name", ["model.safetensors", "trace.parquet", "config.json", "metrics.json"])
def test_truncated_files_are_refused(softmax_folder, tmp_path, name, share):
    folder = tmp_path / "run"
    shutil.copytree(softmax_folder, folder)
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[: int(share * len(content))])
    with pytest.raises(InputError) as caught:
        train.load(folder)
    assert name in str(caught.value)


def test_a_run_that_failed_cannot_be_saved(make, tmp_path):
    result = train.RunResult(make(), {"status": "error"}, pd.DataFrame(), None)
    with pytest.raises(InputError, match="status error"):
        result.save(tmp_path / "run")
