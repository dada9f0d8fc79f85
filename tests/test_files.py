"""Result files appear whole or not at all, and hold strict JSON."""

import json
import math
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polariscope.errors import InputError
from polariscope.files import (
    check_output_file,
    check_output_folder,
    output_folder,
    plain,
    read_json,
    settings_for,
    write_json,
    write_text,
)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(json_values)
def test_plain_is_always_strict_json(value):
    text = json.dumps(plain(value), allow_nan=False)
    assert plain(json.loads(text)) == plain(value)


def test_plain_keeps_what_is_not_finite_visible():
    assert plain({"a": np.array([1.0, math.nan, math.inf]), "b": np.float64(-math.inf), "c": np.int32(3)}) == {
        "a": [1.0, None, "inf"],
        "b": "-inf",
        "c": 3,
    }


def test_json_round_trip_and_no_leftovers(tmp_path):
    write_json(tmp_path / "new" / "x.json", {"s": [0.5, 0.5]})
    assert read_json(tmp_path / "new" / "x.json") == {"s": [0.5, 0.5]}
    assert [p.name for p in (tmp_path / "new").iterdir()] == ["x.json"]


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"{", "line 1"), (b'{"a": NaN}', "NaN"), (b"\xff\xfe\x00", "UTF-8"), (b"", "line 1")],
)
def test_read_json_refuses_what_is_not_json(tmp_path, content, said):
    (tmp_path / "x.json").write_bytes(content)
    with pytest.raises(InputError, match=said):
        read_json(tmp_path / "x.json")


def test_read_json_names_a_missing_file(tmp_path):
    with pytest.raises(InputError, match=r"nothing\.json"):
        read_json(tmp_path / "nothing.json")


def test_output_folder_replaces_earlier_results_whole(tmp_path):
    for content in ("first", "second"):
        with output_folder(tmp_path / "out", settings_for("test", {})) as folder:
            (folder / content).write_text(content)
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["second", "settings.json"]
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_a_failure_leaves_the_earlier_results(tmp_path):
    with output_folder(tmp_path / "out", settings_for("test", {})) as folder:
        (folder / "kept").write_text("kept")
    with pytest.raises(FileNotFoundError), output_folder(tmp_path / "out", settings_for("test", {})) as folder:
        (folder / "not there" / "lost").write_text("lost")
    assert (tmp_path / "out" / "kept").read_text() == "kept"
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_output_folder_refuses_a_file_and_foreign_folders(tmp_path):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "thesis.tex").write_text("mine")
    for name in ("file", "foreign"):
        with pytest.raises(InputError, match="output path"), output_folder(tmp_path / name, settings_for("test", {})):
            pass
    assert (tmp_path / "foreign" / "thesis.tex").exists()


def test_output_file_refuses_a_folder(tmp_path):
    with pytest.raises(InputError, match="a folder"):
        check_output_file(tmp_path)


def test_write_text_reports_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="output path"):
        write_text(tmp_path / "file" / "below" / "x.html", "x")


def test_settings_name_what_made_the_result():
    settings = settings_for("probe", {"model": "planted"}, seeds=[0])
    assert settings["kind"] == "probe"
    assert settings["options"] == {"model": "planted"}
    assert settings["seeds"] == [0]
    assert settings["versions"]["numpy"] == np.__version__


@pytest.mark.parametrize("settings", ['{"editor.tabSize": 4}', "[1]", "{", '{"kind": "test"}'])
def test_a_folder_with_settings_of_others_is_left_alone(tmp_path, settings):
    (tmp_path / "settings.json").write_text(settings)
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(InputError, match="other things"), output_folder(tmp_path, settings_for("test", {})):
        pass
    assert (tmp_path / "thesis.tex").read_text() == "mine"


def test_results_of_another_kind_are_left_alone(tmp_path):
    with output_folder(tmp_path / "out", settings_for("study", {})) as folder:
        (folder / "kept").write_text("kept")
    with (
        pytest.raises(InputError, match="results of study"),
        output_folder(tmp_path / "out", settings_for("train", {})),
    ):
        pass
    assert (tmp_path / "out" / "kept").exists()


def test_symbolic_links_are_followed(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with output_folder(tmp_path / "link", settings_for("test", {})) as folder:
        (folder / "x").write_text("x")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "x").exists()
    (tmp_path / "file").write_text("old")
    (tmp_path / "to-file").symlink_to(tmp_path / "file")
    write_text(tmp_path / "to-file", "new")
    assert (tmp_path / "file").read_text() == "new"


def test_devices_pipes_and_impossible_names_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path / ("x" * 300), tmp_path / "a\0b"):
        with pytest.raises(InputError, match="output path"):
            check_output_file(path)
    with pytest.raises(InputError, match="output path"):
        check_output_folder(tmp_path / ("x" * 300))


def fill(place, content):
    for _ in range(20):
        with output_folder(place, settings_for("test", {})) as folder:
            (folder / content).write_text(content)


def test_runs_that_end_at_once_leave_one_whole_result(tmp_path):
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda content: fill(tmp_path / "out", content), "abcd"))
    assert len(list((tmp_path / "out").iterdir())) == 2
    assert [p.name for p in tmp_path.iterdir()] == ["out"]
