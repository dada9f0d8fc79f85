"""Phase diagrams: cells are flows solved one by one, whatever the order, the folder's history and the portions."""

import itertools

import numpy as np
import pandas as pd
import pytest

from polariscope import flow
from polariscope.errors import InputError
from polariscope.flow import grids, problem
from polariscope.flow.grid_spec import read_spec

SQUARE = {
    "axes": {"scale": [0.1, 1.0], "scores": ["softmax", "relu"]},
    "fixed": {"loss": "square", "n": 3, "target_norm": 2.0},
    "seeds": 5,
    "t": [0.5, 50.0],
}
SPECS = {
    "square": SQUARE,
    "logistic": {"axes": {"temperature": [0.5, 1.0], "scale": [0.5, 1.0, 2.0]}, "fixed": {"n": 4}, "log_t": 60},
    "regression": {
        "axes": {"condition_number": [1, 30], "target_norm": [0.5, 5.0]},
        "fixed": {"loss": "regression", "model": "tied", "n": 3, "scale": 0.5},
        "seeds": 2,
        "t": 20,
    },
    "kl": {"axes": {"scale": [0.1, 1.0]}, "fixed": {"loss": "kl", "scores": "sparsemax", "n": 3, "d": 4}, "t": 30},
}
LEADERS = ("u", "s")


@pytest.fixture(scope="module")
def tables():
    return {name: flow.grid(spec) for name, spec in SPECS.items()}


def problem_of(spec, row):
    """The problem of a row, written out without the package's own reading of specs."""
    given = {"loss": "logistic", "scale": 0.1, **spec["fixed"], **{name: row[name] for name in spec["axes"]}}
    more = {key: given.pop(key) for key in ("temperature", "model") if key in given}
    made = flow.random_problem(given.pop("loss"), seed=int(row.seed), **given)
    del made["t"]
    return made | more


def only(values):
    """The place of the largest, or -1 for a tie."""
    best = np.flatnonzero(np.abs(values - values.max()) <= 1e-8)
    return int(best[0]) if len(best) == 1 else -1


@pytest.mark.parametrize("name", SPECS)
def test_a_row_is_a_flow_solved_by_itself(tables, name):
    spec, table = SPECS[name], tables[name]
    times = np.atleast_1d(spec.get("log_t", np.log(spec.get("t", 1.0))))
    cells = list(itertools.product(*spec["axes"].values(), range(spec.get("seeds") or 5), times))
    np.testing.assert_array_equal(table[[*spec["axes"], "seed", "log_t"]].to_numpy(object), np.array(cells, object))
    for place in np.random.default_rng(0).choice(len(table), 4, replace=False):
        row = table.iloc[place]
        problem = problem_of(spec, row)
        result = flow.solve(problem, log_t=times)
        k = int(np.flatnonzero(result.log_t == row.log_t)[0])
        s = result.s[k]
        assert row.status == result.status
        assert bool(row.reached) is True
        assert row.max_s == pytest.approx(s.max(), abs=1e-8)
        assert row.log_objective == pytest.approx(result.log_objective[k], abs=1e-6)
        entropy = -sum(x * np.log(x) for x in s if x > 0) if s.any() else np.nan
        assert row.entropy == pytest.approx(entropy, abs=1e-7, nan_ok=True)
        assert row.normalized_entropy == pytest.approx(entropy / np.log(len(s)), abs=1e-7, nan_ok=True)
        assert row.winner == only(s)


@pytest.mark.parametrize("name", ["square", "logistic", "regression"])
def test_leaders_are_those_of_the_start(tables, name):
    for _, row in tables[name].iterrows():
        problem = problem_of(SPECS[name], row)
        V0, a0 = np.array(problem["V0"]), np.array(problem["a0"])
        target = problem.get("target")
        if target is None:
            target = np.linalg.solve(np.array(problem["X"]).T @ problem["X"], np.array(problem["X"]).T @ problem["y"])
        logits = V0 @ a0 if problem["model"] == "tied" else a0
        weights = np.maximum(logits, 0) if problem["scores"] == "relu" else logits
        assert (row.u_leader, row.s_leader) == (only(V0.T @ target), only(weights))
        for leader in LEADERS:
            who, won = row[f"{leader}_leader"], row[f"won_by_{leader}_leader"]
            assert pd.isna(won) if -1 in (who, row.winner) else won == (who == row.winner)


def test_losses_without_a_vector_to_fit_have_no_leader_of_u(tables):
    assert tables["kl"].u_leader.isna().all()
    assert tables["kl"].won_by_u_leader.isna().all()
    assert tables["kl"].won_by_s_leader.notna().any()


def test_temperature_and_scale_decide_together_who_wins(tables):
    """With a = Tb and u = Tw the logistic path is that of b and w at temperature 1, in path time τ/T."""
    winner = tables["logistic"].set_index(["temperature", "scale", "seed"]).winner
    for scale in (0.5, 1.0):
        assert winner[0.5, scale].tolist() == winner[1.0, 2 * scale].tolist()
    assert winner.nunique() > 1


def test_a_row_without_weights_has_no_entropy(tables):
    """relu of logits that are all negative is 0 and stays so; it is not one-hot."""
    table = tables["square"]
    dead = table[table.max_s == 0]
    assert set(dead.scores) == {"relu"}
    assert dead.normalized_entropy.isna().all()
    assert (dead.winner == -1).all()
    assert table.drop(dead.index).normalized_entropy.notna().all()
    of = flow.grid_summary(table).set_index(["scale", "scores", "log_t"]).normalized_entropy_of
    assert of.xs("softmax", level="scores").eq(5).all()
    assert of.xs("relu", level="scores").lt(5).all()


def test_the_order_of_the_axes_decides_the_order_of_rows_only(tables):
    turned = flow.grid(SQUARE | {"axes": dict(reversed(SQUARE["axes"].items()))})
    assert list(turned.columns[:2]) == ["scores", "scale"]
    key = ["scale", "scores", "seed", "log_t"]
    wanted = tables["square"].sort_values(key, ignore_index=True)
    pd.testing.assert_frame_equal(turned.sort_values(key, ignore_index=True)[wanted.columns], wanted, check_exact=True)


def test_portions_of_other_sizes_give_the_same_numbers(tables, monkeypatch):
    monkeypatch.setattr(grids, "MOST_NUMBERS", 9 * 5)
    chunks = grids._chunks(read_spec(SQUARE))
    assert len(chunks) > 3
    assert sorted(job.place for chunk in chunks for job in chunk) == list(range(20))
    assert all({job.cell.scores for job in chunk} == {"softmax", "relu"} for chunk in chunks)
    other = flow.grid(SQUARE)
    for name in ("max_s", "normalized_entropy", "log_objective"):
        np.testing.assert_allclose(other[name], tables["square"][name], rtol=0, atol=1e-9)
    pd.testing.assert_series_equal(other.winner, tables["square"].winner)
    monkeypatch.setattr(grids, "MOST_MAPS", 1)
    split = grids._chunks(read_spec(SQUARE))
    assert sorted(job.place for chunk in split for job in chunk) == list(range(20))
    assert {frozenset(job.cell.scores for job in chunk) for chunk in split} == {
        frozenset([m]) for m in ("softmax", "relu")
    }


def contents(folder):
    return {name: (folder / name).read_bytes() for name in ("grid.parquet", "cells.parquet")}


def test_a_run_is_taken_up_where_it_was(tmp_path, monkeypatch):
    """Interrupted after some flows, and after that with a part or the tables lost, damaged or of another plan."""
    monkeypatch.setattr(grids, "CHUNK", 6)
    whole = flow.grid(SQUARE, tmp_path / "whole")
    wanted = contents(tmp_path / "whole")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "whole" / "grid.parquet"), whole)
    folder, parts = tmp_path / "cut", tmp_path / "cut" / "parts"
    seen = []

    def stop(done, total, name):
        seen.append((done, total))
        if done > 9:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        flow.grid(SQUARE, folder, stop)
    assert seen[-1][1] == 20
    assert len(list(parts.iterdir())) == 1
    assert not (folder / "settings.json").exists()
    solved = []
    solve_many = grids.solve_many
    monkeypatch.setattr(
        grids, "solve_many", lambda problems, **how: (solved.append(len(problems)), solve_many(problems, **how))[1]
    )
    again = flow.grid(SQUARE, folder)
    pd.testing.assert_frame_equal(again, whole, check_exact=True)
    assert contents(folder) == wanted
    first = sum(solved)
    assert 0 < first < 20
    number = len(list(parts.iterdir()))
    assert number > 2
    damages = {
        "lost": lambda path: path.unlink(),
        "cut": lambda path: path.write_bytes(path.read_bytes()[:99]),
        "of another part": lambda path: path.write_bytes((parts / f"{number - 1:05d}.parquet").read_bytes()),
    }
    for index, damage in enumerate(damages.values()):
        solved.clear()
        damage(parts / f"{index % (number - 1):05d}.parquet")
        (folder / "grid.parquet").unlink()
        flow.grid(SQUARE, folder)
        assert len(solved) == 1
        assert contents(folder) == wanted
    solved.clear()
    flow.grid(SQUARE | {"name": "another title"}, folder)
    assert (solved, contents(folder)) == ([], wanted)


def test_progress_rises_to_the_number_of_flows(tables):
    heard = []
    flow.grid(SQUARE, progress=lambda done, total, _: heard.append((done, total)))
    done = [one for one, _ in heard]
    assert done == sorted(done)
    assert heard[-1] == (20, 20)


def test_a_start_where_the_map_is_not_defined_is_said_and_counted(monkeypatch):
    monkeypatch.setattr(problem, "LARGEST_WEIGHT", 0.0)  # every start of a map with a pole counts as at the pole
    table = flow.grid({"axes": {"scores": ["softmax", "sum"]}, "fixed": {"n": 2}, "seeds": 3, "t": [0.1, 0.2]})
    lost = table[table.scores == "sum"]
    assert set(lost.status) == {"no start"}
    assert not lost.reached.any()
    assert lost[["max_s", "log_objective", "winner", "won_by_s_leader"]].isna().all(axis=None)
    assert lost.log_t.tolist() == [np.log(0.1), np.log(0.2)] * 3
    cells = flow.grid_summary(table).set_index("scores")
    assert cells.share_no_start.tolist() == [0, 0, 1, 1]
    assert cells.reached.tolist() == [3, 3, 0, 0]
    assert cells.loc["sum", ["max_s", "ties", "won_by_u_leader"]].isna().all(axis=None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"t": [1.0]}, "another t;|another t$|another t,"),
        ({"seeds": [0, 1]}, "another seeds"),
        ({"axes": {"scale": [0.1]}}, "another axes"),
    ],
)
def test_a_folder_keeps_to_one_spec(tmp_path, change, message):
    folder = grids.GridFolder.open(tmp_path / "g", read_spec(SQUARE))
    before = (folder.path / "spec.json").read_bytes()
    with pytest.raises(InputError, match=message):
        flow.grid(SQUARE | change, folder.path)
    assert (folder.path / "spec.json").read_bytes() == before


def test_other_folders_are_left_alone(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("all of it")
    (tmp_path / "file").write_text("x")
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "spec.json").write_text("[1]")
    for name, message in (("mine", "other things"), ("file", "a file"), ("odd", "another spec.json")):
        with pytest.raises(InputError, match=message):
            flow.grid(SQUARE, tmp_path / name)
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.tex"]
