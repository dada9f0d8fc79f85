"""Folders and GGUF files: the same model comes back, and what is damaged or missing is said."""

import json

import pytest
import torch

from polariscope import models
from polariscope.errors import InputError
from polariscope.models.hub import open_hub

IDS = torch.arange(40).reshape(2, 20) * 6


def _logits(model):
    with torch.no_grad():
        return model(IDS).logits


def test_a_folder_gives_the_model_that_was_saved(folder, llama):
    loaded = models.load(str(folder))
    assert torch.equal(_logits(loaded.model), _logits(llama))
    assert not loaded.model.training
    assert loaded.tokenizer("héllo").input_ids == list("héllo".encode())
    assert (loaded.source, loaded.dtype, loaded.checkpoint_dtype) == ("FOLDER", "float32", "float32")


def test_a_gguf_file_gives_the_model_that_was_written(gguf_file, llama, capfd):
    loaded = models.load(str(gguf_file))
    torch.testing.assert_close(_logits(loaded.model), _logits(llama))
    assert loaded.tokenizer("he").input_ids == [259]
    assert loaded.tokenizer.decode(loaded.tokenizer("hé hello").input_ids) == "hé hello"
    assert loaded.revision.startswith("sha256:")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("stored", ["bfloat16", "float16"])
@pytest.mark.parametrize("wanted", [None, "float64", "auto"])
def test_dtype_in_memory_and_dtype_of_the_checkpoint_are_both_recorded(stored, wanted, folder, llama):
    models.load(str(folder), dtype=stored).model.save_pretrained(folder)
    loaded = models.load(str(folder), dtype=wanted)
    assert loaded.checkpoint_dtype == stored
    assert loaded.dtype == {None: "float32", "auto": stored}.get(wanted, wanted)
    assert {str(p.dtype) for p in loaded.model.parameters()} == {f"torch.{loaded.dtype}"}


def test_the_opener_of_the_hub_loads_the_same_way(folder, llama):
    loaded = open_hub(str(folder))
    assert torch.equal(_logits(loaded.model), _logits(llama))
    assert (loaded.source, loaded.checkpoint_dtype) == ("hub:NAME", "float32")


def test_revision_follows_the_weights(folder):
    before = models.load(str(folder)).revision
    assert models.load(str(folder)).revision == before
    models.load(str(folder), dtype="bfloat16").model.save_pretrained(folder)
    assert models.load(str(folder)).revision != before


def test_the_tokenizer_can_come_from_elsewhere(folder, tmp_path, llama):
    llama.save_pretrained(tmp_path / "bare")
    with pytest.raises(InputError, match="option tokenizer"):
        models.load(str(tmp_path / "bare"))
    assert models.load(str(tmp_path / "bare"), tokenizer=str(folder)).tokenizer("a").input_ids == [97]


def test_transformers_keeps_its_settings(folder):
    from transformers.utils import logging

    before = logging.get_verbosity(), logging.is_progress_bar_enabled()
    models.load(str(folder))
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == before


def _remove(name):
    return lambda folder: (folder / name).unlink()


def _cut(name):
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:-100])


def _write(name, text):
    return lambda folder: (folder / name).write_text(text)


def _drop_a_weight(folder):
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    del weights["model.layers.1.mlp.up_proj.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def _resize(folder):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "intermediate_size": 60}))


DAMAGE = {
    "no config": (_remove("config.json"), "without config.json"),
    "no weights": (_remove("model.safetensors"), "without weights"),
    "cut weights": (_cut("model.safetensors"), "model folder"),
    "empty weights": (_write("model.safetensors", ""), "model folder"),
    "text as weights": (_write("model.safetensors", "weights " * 50), "model folder"),
    "a weight is missing": (_drop_a_weight, "1 weights of LlamaForCausalLM are not in .*up_proj"),
    "other sizes": (_resize, "model folder"),
    "config is not JSON": (_write("config.json", "{"), "model folder"),
    "config of nothing": (_write("config.json", "{}"), "model folder"),
    "config is a list": (_write("config.json", "[]"), "model folder"),
    "unknown architecture": (_write("config.json", '{"model_type": "perceptron"}'), "model folder"),
    "no language model": (_write("config.json", '{"model_type": "vit"}'), "model folder"),
    "tokenizer is not JSON": (_write("tokenizer.json", "{"), "tokenizer"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_folder_is_refused(damage, folder):
    change, message = DAMAGE[damage]
    change(folder)
    with pytest.raises(InputError, match=message):
        models.load(str(folder))


def test_remote_code_runs_only_when_asked_for(folder, tmp_path):
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "own", "auto_map": {"AutoConfig": "own.Own", "AutoModelForCausalLM": "own.Model"}}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\n")
    with pytest.raises(InputError, match="trust_remote_code"):
        models.load(str(folder))
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("kept", [0, 3, 10, 300, 9_000, -200])
def test_a_truncated_gguf_file_is_refused(kept, gguf_file):
    gguf_file.write_bytes(gguf_file.read_bytes()[:kept])
    with pytest.raises(InputError, match="GGUF file"):
        models.load(str(gguf_file))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("zip.gguf", b"PK\3\4 and so on", "begins with b'PK"),
        ("missing.gguf", None, "No such file"),
        ("old.gguf", b"GGUF" + bytes(20), "24 bytes"),
        ("noise.gguf", b"GGUF\3\0\0\0" + b"\xff" * 200, "GGUF file"),
    ],
)
def test_foreign_gguf_files_are_refused(name, content, message, tmp_path):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message):
        models.load(str(tmp_path / name))
