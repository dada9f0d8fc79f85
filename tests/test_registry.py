"""Names are looked up with suggestions, and never silently replaced."""

import importlib

import pytest

from polariscope.cli.ls import KINDS
from polariscope.errors import InputError
from polariscope.registry import Registry

REGISTRIES = [importlib.import_module(module).REGISTRY for module in KINDS.values()]


@pytest.mark.parametrize("registry", REGISTRIES, ids=lambda r: r.kind)
def test_every_line_of_every_registry_loads(registry):
    assert registry.summaries()
    for name, summary in registry.summaries().items():
        assert summary == summary.strip() != ""
        assert registry.get(name) is not None


def test_unknown_name_suggests_the_nearest():
    with pytest.raises(InputError, match="did you mean 'softmax'") as caught:
        Registry("score map", {"softmax": ("math:e", "x"), "relu": ("math:pi", "y")}).get("softmacks")
    assert "relu, softmax" in str(caught.value)


@pytest.mark.parametrize("name", ["", None, 3, ["softmax"], "x" * 1000])
def test_any_other_thing_is_refused_the_same_way(name):
    with pytest.raises(InputError, match="unknown score map"):
        Registry("score map", {"softmax": ("math:e", "x")}).get(name)


def test_own_entries_are_added_once():
    registry = Registry("score map", {})
    registry.add("mine", len, "my own")
    assert registry.get("mine") is len
    with pytest.raises(ValueError, match="already registered"):
        registry.add("mine", len, "again")
