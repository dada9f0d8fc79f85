"""What a MODEL may be, and what happens to names that are nothing."""

import subprocess
import sys

import pytest

from polariscope import models
from polariscope.errors import InputError
from polariscope.models import REGISTRY, resolve


@pytest.mark.parametrize(
    ("name", "source", "target"),
    [
        ("planted", "planted", "planted"),
        ("smollm2-135m", "smollm2-135m", "smollm2-135m"),
        ("hub:planted", "hub:NAME", "planted"),
        ("hub:gpt2", "hub:NAME", "gpt2"),
        ("gpt2", "hub:NAME", "gpt2"),
        ("EleutherAI/pythia-70m", "hub:NAME", "EleutherAI/pythia-70m"),
        ("someone/smollm2-135m", "hub:NAME", "someone/smollm2-135m"),
        ("missing.gguf", "FILE.gguf", "missing.gguf"),
        ("Q4.GGUF", "FILE.gguf", "Q4.GGUF"),
        ("here", "FOLDER", "here"),
        ("./planted", "FOLDER", "planted"),
    ],
)
def test_resolution_order(name, source, target, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in ("here", "planted"):
        (tmp_path / folder).mkdir()
    assert resolve(name, REGISTRY) == (source, target)


@pytest.mark.parametrize("name", ["smollm2-135x", "SmolLM2-135M", "smollm-135m", "smollm2_135m"])
def test_misspelt_registered_names_are_no_downloads(name, monkeypatch):
    monkeypatch.setitem(REGISTRY._entries, "hub:NAME", (lambda _: pytest.fail("asked the hub"), ""))
    with pytest.raises(InputError, match="did you mean 'smollm2-135m'"):
        models.load(name)


@pytest.mark.parametrize(
    "name", ["", "  ", "./missing", "/missing/folder", "a/b/c", "-o", "two words", "hub:", "a.txt/", "naïve", None, 3]
)
def test_what_is_no_model_is_refused(name):
    with pytest.raises(InputError, match="model"):
        models.load(name)


def test_a_file_that_is_no_model_is_said_to_be_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.bin").touch()
    with pytest.raises(InputError, match="a file"):
        models.load("model.bin")


@pytest.mark.parametrize("name", ["nobody/no-such-model", "hub:no-such-model"])
def test_a_hub_out_of_reach_is_put_into_words(name):
    with pytest.raises(InputError, match="looked for in the local hub cache and on the hub") as caught:
        models.load(name, revision="main")
    assert "no-such-model" in caught.value.got
    assert "at revision 'main'" in caught.value.got


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtyp": "float32"}, "did you mean 'dtype'"),
        ({"revision": "main"}, "one of seed, dtype, device"),
        ({"dtype": "int8"}, "unknown dtype"),
        ({"device": "nowhere"}, "device"),
    ],
)
def test_options_are_checked(options, message):
    with pytest.raises(InputError, match=message):
        models.load("planted", **options)


def test_none_counts_as_not_given():
    assert models.load("planted", revision=None, dtype=None).dtype == "float32"


def test_every_source_has_a_summary_and_an_opener():
    assert all(callable(REGISTRY.get(name)) for name in REGISTRY)
    assert all(REGISTRY.summaries().values())


def test_importing_the_package_is_cheap():
    code = "import sys, polariscope.models; sys.exit(any(m in sys.modules for m in ('torch', 'transformers', 'jax')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
