"""Saved charts have the size asked for, their own ink on white, and need nothing from elsewhere."""

import re
import struct

import altair as alt
import numpy as np
import pandas as pd
import pytest

from polariscope import plots
from polariscope.errors import InputError
from polariscope.report.figures._theme import themed
from polariscope.report.figures.flows import one_path

CHART = alt.Chart(pd.DataFrame({"x": [0.0, 1.0], "y": [1.0, 3.0]})).mark_line().encode(x="x:Q", y="y:Q")


def size_of_png(path):
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    return struct.unpack(">II", data[16:24])


@pytest.mark.parametrize("scale", [1.0, 2.0, 3.0])
def test_a_png_has_the_size_of_the_svg_times_the_scale(tmp_path, scale):
    chart = CHART.properties(width=200, height=90)
    svg = plots.save(chart, tmp_path / "c.svg").read_text(encoding="utf-8")
    width, height = (float(re.search(rf'<svg[^>]* {side}="([\d.]+)"', svg)[1]) for side in ("width", "height"))
    assert width >= 200
    assert height >= 90
    found = size_of_png(plots.save(chart, tmp_path / "c.png", scale=scale))
    assert found == pytest.approx((width * scale, height * scale), abs=1)


def test_charts_of_the_report_get_ink_paper_and_width(tmp_path):
    path = pd.DataFrame(
        {"log_t": [1.0, 10.0] * 2, "coordinate": [0, 0, 1, 1], "s": np.arange(4) / 4, "u": np.arange(4.0)}
    )
    chart = one_path(path)[0].chart
    assert "currentColor" in str(chart.to_dict())
    svg = plots.save(chart, tmp_path / "c.svg").read_text(encoding="utf-8")
    assert "currentColor" not in svg
    assert "#222222" in svg
    assert 'fill="white"' in svg
    assert float(re.search(r'<svg[^>]* width="([\d.]+)"', svg)[1]) >= 640
    assert size_of_png(plots.save(chart, str(tmp_path / "c.png")))[0] >= 1280
    data = pd.DataFrame({"x": ["currentColor"], "y": [1.0]})  # a word in the data stays
    assert (
        "currentColor"
        in plots.save(themed(CHART.encode(x="x:N").properties(data=data)), tmp_path / "w.svg").read_text()
    )


def test_an_html_file_needs_nothing_from_elsewhere(tmp_path):
    html = plots.save(CHART, tmp_path / "c.html").read_text(encoding="utf-8")
    assert re.findall(r"<script[^>]*src=|<link[^>]*href=", html) == []
    assert len(html) > 100_000


@pytest.mark.parametrize(
    ("chart", "name"), [(CHART, "c.bmp"), (CHART, "c"), (CHART, "folder.png"), ({"mark": "bar"}, "c.png")]
)
def test_what_cannot_be_saved_is_refused(tmp_path, chart, name):
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(InputError, match=r"output path|chart to save"):
        plots.save(chart, tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["folder.png"]
