"""A small real study becomes one page that a browser opens offline without a complaint."""

import dataclasses
import json
import os
import shutil

import pytest
from pages import opened

from polariscope import claims, report
from polariscope.claims import study
from polariscope.errors import InputError
from polariscope.files import output_folder, read_json, settings_for, write_json

SMALL = {
    "C1": {"losses": ["logistic", "kl"], "sizes": [2, 5], "states": 3, "scales": [1.0]},
    "C2": {"sizes": [2, 8], "flows": 20, "seed": 5, "log_t_max": 1e6, "times": 25},
    "C3": {"sizes": [2, 8], "flows": 4, "seed": 5, "log_t_max": 1e6, "times": 25},
    "C11": {"model": "planted", "data": "pydoc", "documents": 4, "max_length": 48, "bos": "off"},
    "C12": {"kinds": [["softmax", 41], ["uniform", 41]], "seeds": 2, "epochs": 5, "processes": 1},
}


def small(claim_id):
    return dataclasses.replace(claims.get(claim_id), settings={"quick": SMALL[claim_id], "paper": {}})


@pytest.fixture(scope="module")
def study_folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("study") / "out"
    with pytest.MonkeyPatch.context() as patch, output_folder(place, settings_for("study", {})) as folder:
        patch.setattr(study, "get", small)
        study.run(folder)
        report.write([folder], folder / "report.html")
    return place


def test_every_claim_was_judged(study_folder):
    records = {record["id"]: record for record in read_json(study_folder / "claims.json")}
    assert set(records) == set(SMALL)
    wanted = {"C1": "supported", "C2": "supported", "C3": "supported", "C11": "inconclusive", "C12": "supported"}
    assert {name: record["verdict"] for name, record in records.items()} == wanted
    assert records["C2"]["statistic"] == 1.0


def test_verdicts_follow_from_the_saved_files(study_folder):
    for record in read_json(study_folder / "claims.json"):
        outcome = claims.get(record["id"]).judge(study_folder / record["id"])
        assert outcome.verdict == record["verdict"]
        assert outcome.statistic == pytest.approx(record["statistic"])


@pytest.mark.parametrize("width", [1200, 390])
def test_page_draws_without_errors_or_outside_requests(study_folder, browser, width):
    page, heard, asked = opened(browser, study_folder / "report.html", width)
    assert heard == []
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    specs = json.loads(page.locator("#specs").text_content())
    assert len(specs) >= 8
    for name in specs:
        box = page.locator(f"#{name} svg.marks").bounding_box()
        assert box["width"] > 200, name
        assert box["height"] > 80, name
        marks = ", ".join(f"#{name} svg.marks .mark-{mark} path" for mark in ("symbol", "rect", "line"))
        assert page.locator(marks).count() > 0, name
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()


def test_claims_table_comes_first_and_links_to_sections(study_folder, browser):
    page, _, _ = opened(browser, study_folder / "report.html", 1200)
    rows = page.locator("table.claims tbody tr")
    assert rows.count() == len(SMALL)
    for name in SMALL:
        assert page.locator(f"table.claims a[href='#{name}']").count() == 1
        assert page.locator(f"section#{name} .badge").count() == 1
    page.close()


def test_token_strings_and_texts_are_escaped(study_folder, browser, tmp_path):
    shutil.copytree(study_folder, tmp_path / "s")
    records = read_json(tmp_path / "s" / "claims.json")
    records[0]["notes"] = "</script><script>window.hit = 1</script><img src=x onerror='window.hit = 1'>"
    write_json(tmp_path / "s" / "claims.json", records)
    import pandas as pd

    layers = pd.read_parquet(tmp_path / "s" / "C11" / "layers.parquet")
    layers["massive_token"] = "</script><script>window.hit = 1</script>"
    layers.to_parquet(tmp_path / "s" / "C11" / "layers.parquet")
    report.write([tmp_path / "s"], tmp_path / "r.html")
    page, heard, _ = opened(browser, tmp_path / "r.html", 1200)
    assert heard == []
    assert page.evaluate("window.hit") is None
    assert "onerror" in page.locator("section#C1").text_content()
    page.close()


def test_a_failed_claim_is_shown_as_such(study_folder, tmp_path):
    shutil.copytree(study_folder, tmp_path / "s")
    records = read_json(tmp_path / "s" / "claims.json")
    records[0] |= {"verdict": "error", "statistic": None, "interval": None, "notes": "The experiment stopped: no luck"}
    shutil.rmtree(tmp_path / "s" / records[0]["id"])
    write_json(tmp_path / "s" / "claims.json", records)
    html = report.write([tmp_path / "s"], tmp_path / "r.html").read_text(encoding="utf-8")
    assert "no luck" in html


def test_what_is_no_result_is_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "odd").mkdir()
    write_json(tmp_path / "odd" / "settings.json", {"kind": ["odd"]})
    for source in (tmp_path / "empty", tmp_path / "odd", tmp_path / "missing"):
        with pytest.raises(InputError, match="result folder"):
            report.write([source], tmp_path / "r.html")
    assert not (tmp_path / "r.html").exists()


def test_damaged_results_are_refused(study_folder, tmp_path):
    def broken(name, damage):
        shutil.copytree(study_folder, tmp_path / name)
        damage(tmp_path / name)
        with pytest.raises(InputError, match="incomplete or damaged"):
            report.write([tmp_path / name], tmp_path / "r.html")

    broken("missing table", lambda folder: (folder / "C11" / "heads.parquet").unlink())
    broken("foreign table", lambda folder: (folder / "C11" / "layers.parquet").write_bytes(b"no table"))
    broken("cut table", lambda folder: os.truncate(folder / "C3" / "rates.parquet", 100))
    broken("thin claims", lambda folder: write_json(folder / "claims.json", [{"id": "C1"}]))
    broken("odd claims", lambda folder: write_json(folder / "claims.json", 3))


@pytest.mark.parametrize("content", [{"model": "value"}, [1, 2], 3])
def test_other_json_files_are_no_flows(tmp_path, content):
    write_json(tmp_path / "x.json", content)
    with pytest.raises(InputError, match="incomplete or damaged"):
        report.write([tmp_path / "x.json"], tmp_path / "r.html")
