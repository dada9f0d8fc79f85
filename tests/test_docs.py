"""Every Python block of the documentation runs, top to bottom, page by page."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    for number, block in enumerate(BLOCK.findall(page.read_text(encoding="utf-8")), 1):
        exec(compile(block, f"{page.name}, block {number}", "exec"), namespace)
    assert page.read_text(encoding="utf-8").startswith("# ")
