"""`make families`: its verdicts are right on types of each kind, it can say no, and its page lists every type."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from polariscope.probe import blocks

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def tool(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import check_family

    return check_family


@pytest.mark.parametrize(
    ("model_type", "verdict", "way", "engine"),
    [
        ("llama", "exact", "interface", "blocks"),
        ("bloom", "fallback", "maps", "map"),
        ("mamba", "not applicable", "", ""),
        ("reformer", "failing", "", ""),  # hashed attention in chunks: there is attention, but no map of it
    ],
)
def test_a_type_of_each_kind(tool, model_type, verdict, way, engine):
    found = tool.check_family(model_type)
    assert (found.verdict, found.way, found.engine) == (verdict, way, engine)
    assert bool(found.note) == (verdict in ("failing", "not applicable"))
    if verdict == "exact":
        assert 0 < found.deviation < 1e-5


@pytest.mark.parametrize("name", ["total", "largest", "first", "entropy", "squares"])
@pytest.mark.parametrize("model_type", ["llama", "granite_swa"])
def test_wrong_statistics_fail(tool, monkeypatch, model_type, name):
    """An engine with the right output and a wrong statistic passes the self-checks, but not the comparison."""
    right = blocks.attend

    def wrong(call):
        out, found = right(call)
        return out, replace(found, **{name: getattr(found, name) + 0.001})

    monkeypatch.setattr(blocks, "attend", wrong)
    found = tool.check_family(model_type)
    assert found.verdict == "failing"
    assert found.deviation == pytest.approx(0.001, rel=0.01)
    assert "differ from those of eager maps" in found.note


def test_wrong_columns_deviate(tool):
    A = torch.softmax(torch.randn(1, 2, 6, 6, generator=torch.Generator().manual_seed(0)), dim=-1)
    same, other = tool.statistics_of(A), tool.statistics_of(A.flip(-1))
    assert tool.deviation(same, A) == 0
    assert tool.deviation(other, A) > 0.01


def test_a_type_that_cannot_be_built_is_failing_with_the_reason(tool):
    found = tool.check_family("no such type")
    assert found.verdict == "failing"
    assert "no such type" in found.note


def test_the_page_lists_every_type_once():
    page = (ROOT / "docs" / "families.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([^|]+) \| ([^|]*) \| (exact|fallback|not applicable|failing) \|", page, re.MULTILINE)
    assert [name for name, *_ in rows] == sorted(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)


def test_the_page_counts_what_it_lists():
    page = (ROOT / "docs" / "families.md").read_text(encoding="utf-8")
    said = re.search(r"(\d+) types: (\d+) exact, (\d+) by fallback, (\d+) not applicable, (\d+) failing", page)
    listed = [page.count(f"| {name} |") for name in ("exact", "fallback", "not applicable", "failing")]
    assert [int(x) for x in said.groups()] == [sum(listed), *listed]
