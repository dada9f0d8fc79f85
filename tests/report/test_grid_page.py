"""A phase diagram becomes a page and a picture; nothing that was measured is left out or made up."""

import itertools
import json
import shutil

import numpy as np
import pandas as pd
import pytest
from pages import opened

from polariscope import flow, report
from polariscope.errors import InputError
from polariscope.flow.grid_folder import GridFolder
from polariscope.flow.grid_spec import read_spec
from polariscope.report.figures import grids

MAP = {
    "name": "Scale & map <b>",
    "axes": {"scale": [3.0, 0.1, 1.0], "scores": ["softmax", "identity", "sigmoid-normalized", "relu"]},
    "seeds": 4,
    "t": [1, 1000],
}
LINE = {"axes": {"n": [8, 2, 4]}, "fixed": {"loss": "square"}, "seeds": 4, "log_t": [1, 2, 3]}


def made_up(spec):
    """A table such as `flow.grid` gives. identity has no entropy; for relu one seed does not get there, and at the
    largest scale none."""
    read, random = read_spec(spec), np.random.default_rng(0)
    rows = []
    for values in itertools.product(*read.axes.values()):
        key = dict(zip(read.axes, values, strict=True))
        for seed, log_t in itertools.product(read.seeds, read.times):
            relu = key.get("scores") == "relu"
            reached = not relu or (seed > 0 and key["scale"] < 3)
            number = random.random() if reached else np.nan
            rows.append(
                key | {
                    "seed": seed, "log_t": log_t, "status": "ok" if reached else "kink", "reached": reached,
                    "normalized_entropy": np.nan if key.get("scores") == "identity" else number, "max_s": number,
                    "winner": seed % 2 if reached else None, "won_by_s_leader": None,
                    "won_by_u_leader": seed == 0 if reached else None,
                }
            )  # fmt: skip
    return pd.DataFrame(rows).astype({"winner": "Int64", "won_by_u_leader": "boolean", "won_by_s_leader": "boolean"})


@pytest.fixture(scope="module", params=["map", "line"])
def folder(request, tmp_path_factory):
    spec = MAP if request.param == "map" else LINE
    kept = GridFolder.open(tmp_path_factory.mktemp("grid") / request.param, read_spec(spec))
    table = made_up(spec)
    kept.finish(table, flow.grid_summary(table))
    return kept.path


@pytest.mark.parametrize("width", [1200, 390])
def test_the_page_draws_every_cell_without_errors(folder, browser, tmp_path, width):
    page, heard, asked = opened(browser, report.write([folder], tmp_path / "grid.html"), width)
    assert heard == []
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    names = list(json.loads(page.locator("#specs").text_content()))
    assert len(names) == 2
    for name in names:
        kind, count = ("rect", 12) if folder.name == "map" else ("symbol", 9)
        assert page.locator(f"#{name} svg.marks .mark-{kind} path").count() >= count
        said = page.locator(f"#{name} svg.marks").text_content()
        for word in ("identity", "sigmoid-normalized", "relu") if folder.name == "map" else "248":
            assert word in said
    said = page.locator("main, body").first.text_content()
    if folder.name == "map":
        assert "Scale & map <b>" in said
        assert "The last of 2 times is drawn" in said
        cells = page.locator("section table td").all_text_contents()
        assert cells == ["ok", "42", "87.5 %", "kink", "6", "12.5 %"]
    else:
        assert page.locator("section h2").first.text_content() == "Phase diagram"
    page.close()


def test_folders_of_one_name_have_sections_and_charts_of_their_own(folder, browser, tmp_path):
    (tmp_path / "copies").mkdir()
    other = shutil.copytree(folder, tmp_path / "copies" / folder.name)
    page, heard, _ = opened(browser, report.write([folder, other, other], tmp_path / "grid.html"), 1200)
    assert heard == []
    ids = [section.get_attribute("id") for section in page.locator("section[id]").all()]
    assert len([name for name in ids if name.startswith(f"grid-{folder.name}")]) == len(set(ids)) == 3
    names = list(json.loads(page.locator("#specs").text_content()))
    assert len(names) == 6
    assert all(page.locator(f"#{name} svg.marks").count() == 1 for name in names)
    page.close()


def values(table, key, column):
    return {tuple(row[name] for name in key): row[column] for row in table.to_dict("records")}


def test_what_is_drawn_is_the_summary_at_the_last_time():
    cells = flow.grid_summary(made_up(MAP))
    key = list(MAP["axes"])
    last = cells[np.isclose(cells.log_t, np.log(1000))]
    figures = grids.figures(cells, key)
    assert [figure.title for figure in figures] == ["Mean normalized entropy", "Share won by the initial leader of u"]
    for figure, column in zip(figures, ("normalized_entropy", "won_by_u_leader"), strict=True):
        spec = figure.spec()
        (rows,) = spec["datasets"].values()
        found = values(pd.DataFrame(rows).astype({column: float}), key, column)
        assert found == pytest.approx(values(last, key, column), nan_ok=True)
        marked = {tuple(row[name] for name in key) for row in rows if row["mark"]}
        assert marked == {(scale, "relu") for scale in MAP["axes"]["scale"]}
        assert {row["statuses"] for row in rows if row["scores"] == "relu"} == {"3 ok, 1 kink", "4 kink"}
        assert "did not get there" in figure.caption


def test_over_one_axis_every_time_has_a_line_and_many_times_are_thinned():
    cells = flow.grid_summary(made_up(LINE))
    (rows,) = grids.figures(cells, ["n"])[0].spec()["datasets"].values()
    assert {(row["n"], row["time"]) for row in rows} == set(
        itertools.product((2, 4, 8), ("log t = 1", "log t = 2", "log t = 3"))
    )
    (rows,) = grids.figures(cells, ["n"], "t")[0].spec()["datasets"].values()
    assert {row["time"] for row in rows} == {"t = 2.718", "t = 7.389", "t = 20.09"}
    many = flow.grid_summary(made_up(LINE | {"log_t": list(range(1, 31))}))
    figure = grids.figures(many, ["n"])[0]
    (rows,) = figure.spec()["datasets"].values()
    times = {float(row["time"].removeprefix("log t = ")) for row in rows}
    assert len(times) == grids.MOST_TIMES
    assert {1, 30} <= times
    assert f"{grids.MOST_TIMES} of 30 times are drawn" in figure.caption


def test_without_any_entropy_the_largest_weight_is_drawn():
    spec = {"axes": {"scale": [0.1, 1.0], "scores": ["identity"]}, "t": 1}
    cells = flow.grid_summary(made_up(spec))
    assert grids.figures(cells, list(spec["axes"]))[0].title == "Mean largest weight"


def test_the_picture_is_a_png_that_says_what_was_fixed(folder):
    path = report.draw_grid(folder)
    assert path == folder / "grid.png"
    assert path.read_bytes().startswith(b"\x89PNG")
    options = json.loads((folder / "settings.json").read_text())["options"]
    cells = pd.read_parquet(folder / "cells.parquet")
    spec = json.dumps(grids.picture(cells, list(options["axes"]), "title", "subtitle"), ensure_ascii=False)
    assert "currentColor" not in spec
    assert ("×: mean over fewer seeds" in spec) == (folder.name == "map")


def test_an_unfinished_folder_is_no_result(tmp_path):
    folder = GridFolder.open(tmp_path / "g", read_spec(LINE)).path
    with pytest.raises(InputError, match="result folder"):
        report.write([folder], tmp_path / "r.html")
    (tmp_path / "h").mkdir()
    whole = GridFolder.open(tmp_path / "h", read_spec(LINE))
    whole.finish(made_up(LINE), flow.grid_summary(made_up(LINE)))
    (whole.path / "cells.parquet").unlink()
    with pytest.raises(InputError):
        report.write([whole.path], tmp_path / "r.html")
    for unfinished in (folder, whole.path, str(tmp_path / "none")):
        with pytest.raises(InputError):
            report.draw_grid(unfinished)
    assert not (tmp_path / "r.html").exists()
