"""Charts hold the numbers of the objects they draw, are valid, and refuse what they cannot draw."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polariscope import flow, plots
from polariscope.errors import InputError
from polariscope.flow.problem import read_problem
from polariscope.plots.basin_charts import _edges

PROBLEM = flow.random_problem("logistic", n=3, d=3, seed=1)


def tables(chart):
    """The data in a chart's specification, which is valid; None stands for what is not drawn."""
    return [pd.DataFrame(rows) for rows in chart.to_dict()["datasets"].values()]


def drawn(chart, *fields, without=()):
    """The one table that has these fields and not those."""
    (found,) = [table for table in tables(chart) if set(fields) <= set(table) and not set(without) & set(table)]
    return found


def scales(chart, channel):
    """The kinds of scale of a channel, wherever it occurs in the specification."""

    def walk(part):
        if isinstance(part, dict):
            if isinstance(part.get(channel), dict) and "scale" in part[channel]:
                yield part[channel]["scale"].get("type", "linear")
            for key, value in part.items():
                if key != "datasets":
                    yield from walk(value)
        elif isinstance(part, list):
            for value in part:
                yield from walk(value)

    return set(walk(chart.to_dict()))


@pytest.fixture(scope="module")
def result():
    return flow.solve(PROBLEM | {"name": "three"}, log_t=np.geomspace(0.5, 1e4, 25))


def test_a_path_is_drawn_as_it_is(result):
    chart = plots.path(result)
    table = drawn(chart, "s", "u")
    for field in ("s", "u"):
        np.testing.assert_array_equal(
            table.pivot(index="log_t", columns="coordinate", values=field), getattr(result, field)
        )
    np.testing.assert_array_equal(table.pivot(index="log_t", columns="coordinate", values="s").index, result.log_t)
    np.testing.assert_array_equal(drawn(chart, "entropy").entropy, result.normalized_entropy)
    assert set(table.token) == {"0", "1", "2"}
    assert scales(chart, "x") == {"log"}
    assert "three" in str(chart.to_dict()["title"])


def test_a_path_without_u_and_with_times_that_cannot_be_drawn(result):
    """t = 0, a time that was not reached, negative log t, and weights of 0."""
    log_t = np.concatenate([[-np.inf, -3.0], result.log_t[2:]])
    s = np.vstack([result.s[:-2], [[1.0, 0.0, 0.0]], np.full((1, 3), np.nan)])
    entropy = np.append(result.normalized_entropy[:-2], [0.0, np.nan])
    chart = plots.path(replace(result, log_t=log_t, s=s, u=None, normalized_entropy=entropy))
    table = drawn(chart, "s", "token")
    assert sorted(set(table.log_t)) == log_t[1:-1].tolist()
    assert scales(chart, "x") == {"symlog"}
    hs = drawn(chart, "entropy").entropy
    assert hs.isna().tolist() == [False] * (len(hs) - 1) + [True]  # no logarithm of 0
    assert "u" not in table


@pytest.mark.parametrize(("n", "named"), [(7, 7), (8, 8), (9, 7), (60, 7)])
def test_many_tokens_share_one_grey(result, n, named):
    s = np.random.default_rng(n).dirichlet(np.ones(n), size=len(result.log_t))
    found = drawn(plots.path(replace(result, s=s, u=None, normalized_entropy=None)), "s", "token")
    assert len(found) == s.size
    own = found[found.token != "others"].coordinate.unique()
    assert len(own) == named
    if n > named:
        assert s[:, own].max(axis=0).min() >= np.delete(s, own, axis=1).max()


def test_two_clocks_on_one_path():
    start = flow.random_problem("square", n=3, d=3, seed=5) | {"V0": [[0.0] * 3] * 3, "name": "square loss"}
    start["target"] = (3 * np.array(start["target"])).tolist()
    stopped = flow.shared_path(start, log_t=np.linspace(-3, 5, 12))
    endless = flow.solve(start | {"loss": "logistic", "name": "logistic loss"}, log_t=np.linspace(-3, 12, 300))
    chart = plots.shared_path(stopped, endless)
    points, lines = sorted(tables(chart), key=len)
    np.testing.assert_array_equal(points.s, stopped.s.ravel())
    np.testing.assert_array_equal(lines.s, endless.s.ravel())
    for i in range(3):  # the curves lie on each other over z, and not over log t
        one, other = (table[table.coordinate == i] for table in (points, lines))
        assert np.abs(np.interp(one.z, other.z, other.s) - one.s).max() < 1e-3
        assert np.abs(np.interp(one.log_t, other.log_t, other.s) - one.s).max() > 0.02
    with pytest.raises(InputError, match="coordinates"):
        plots.shared_path(stopped, replace(endless, s=endless.s[:, :2], u=endless.u[:, :2]))
    with pytest.raises(InputError, match="no u"):
        plots.shared_path(replace(stopped, u=None), endless)


def test_comparisons_are_drawn_where_they_are_known():
    runs = flow.compare_many(flow.random_problem("square", n=3, d=3, seed=1), "gd", [0.05, 30.0], 60)
    assert [run.status for run in runs] == ["ok", "diverged"]
    assert {run for table in tables(plots.comparison(runs[0])) for run in table.run} == {"gd"}
    panels = tables(plots.comparison(runs))
    assert len(panels) == 2
    for number, (run, label) in enumerate(zip(runs, ("gd, η = 0.05", "gd, η = 30"), strict=True)):
        for table in panels:
            mine = table[table.number == number]
            assert set(mine.run) == {label}
            same_time = table.which[0] == "at the same time"
            full = run.distance if same_time else run.path_distance
            known = (run.k > 0) & (full > (0 if same_time else run.path_error + run.path_spacing / 2))
            np.testing.assert_array_equal(mine.k, run.k[known])
            np.testing.assert_array_equal(mine.distance, full[known])
            last = run.k[np.isfinite(run.s[:, 0])][-1]
            assert mine[mine.end].k.tolist() == ([last] if run.status == "diverged" else [])
    named = plots.comparison({"slow": runs[0], "fast": runs[1]})
    assert {run for table in tables(named) for run in table.run} == {"slow", "fast"}


def test_basins_are_drawn_cell_by_cell():
    found = flow.basins(PROBLEM, (0, 2), grid=([-2.0, 0.0, 3.0], [-1.0, 2.0]))
    found.winner[0, 0], found.status[0, 1], found.winner[0, 1] = -1, "step limit", -1
    found.certain[2, 1] = False
    table = drawn(plots.basins(found), "winner", "log_t").set_index(["x", "y"])
    for i, x in enumerate(found.grid[0]):
        for j, y in enumerate(found.grid[1]):
            cell = table.loc[(x, y)]
            assert cell.winner == {(0, 0): "tie", (0, 1): "not solved"}.get((i, j), str(found.winner[i, j]))
            assert cell.unsure == ((i, j) == (2, 1))
            assert (cell.left, cell.right) == ((-3.0, -1.0), (-1.0, 1.5), (1.5, 4.5))[i]
            assert (cell.low, cell.high) == ((-2.5, 0.5), (0.5, 3.5))[j]
            finite = np.isfinite(found.log_t[i, j])
            assert cell.log_t == found.log_t[i, j] if finite else pd.isna(cell.log_t)
    text = str(plots.basins(found).to_dict())
    assert "a0 − a2 at the start" in text
    assert found.message in text


@settings(deadline=None)
@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=12, unique_by=lambda x: round(x, 3)))
def test_cells_of_any_grid_touch_and_hold_their_value(values):
    low, high = _edges(np.array(values))
    assert (low < high).all()
    assert ((low <= values) & (values <= high)).all()
    np.testing.assert_array_equal(np.sort(low)[1:], np.sort(high)[:-1])


def test_sensitivities_are_drawn_entry_by_entry():
    found = flow.sensitivity(PROBLEM, log_t=5.0)
    chart = plots.sensitivity(found)
    matrix = drawn(chart, "row").pivot(index="row", columns="column", values="derivative")
    np.testing.assert_array_equal(matrix, found.V0)
    bars = [table.derivative.to_numpy() for table in tables(chart) if "entry" in table]
    for values in (found.a0, found.data["target"]):
        assert any(np.array_equal(values, bar) for bar in bars)
    assert f"token {found.winner}" in str(chart.to_dict()["title"])


def test_winners_are_counted_as_they_are():
    groups = {
        name: flow.winner_statistics(
            [flow.random_problem("logistic", n=3, d=3, scale=scale, seed=k) for k in range(20)]
        )
        for name, scale in (("small", 0.1), ("large", 3.0))
    }
    chart = plots.winners(groups)
    counts, fractions = drawn(chart, "starts", without=["fraction"]), drawn(chart, "fraction")
    for name, one in groups.items():
        mine = counts[counts.group == name].set_index("by").starts
        assert {by: n for by, n in mine.items() if n} == dict(one.counts)
        shares = fractions[fractions.group == name].set_index("by")
        for by in ("u", "s", "neither"):
            assert tuple(shares.loc[by, ["fraction", "low", "high", "starts"]]) == one.fraction(by)
    assert set(drawn(plots.winners(groups["small"]), "fraction").group) == {"20 starts"}


@pytest.fixture(scope="module")
def records(result):
    return flow.rates(PROBLEM, result)


def test_rates_are_drawn_as_they_are(records):
    chart = plots.rates(records)
    table = drawn(chart, "ratio", "order")
    wanted = [(r.law, "to leading order", r.ratio) for r in records]
    wanted += [(r.law, "with the correction", r.refined_ratio) for r in records if r.refined_ratio is not None]
    assert sorted(zip(table.law, table.order, table.ratio, strict=True)) == sorted(wanted)
    bands = drawn(chart, "low", "high").set_index("law")
    assert bands.low["softmax"] == 1 - records[0].tolerance
    unjudged = replace(records[0], holds=None, ratio=None, refined_ratio=None, note="no winner yet")
    assert "1 could not be judged" in str(plots.rates([*records, unjudged]).to_dict()["title"])
    with pytest.raises(InputError, match="no winner yet"):
        plots.rates(unjudged)


def test_a_law_along_a_flow(result):
    law = flow.laws.REGISTRY.get("softmax")
    series = law.series(read_problem(PROBLEM, log_t=[0.0]), result)
    chart = plots.series(series, law.statement)
    named = [table for table in tables(chart) if "what" in table]
    (measured,) = [table for table in named if set(table.what) == {"measured"}]
    np.testing.assert_array_equal(measured.value, series.quantity)
    laws, ratios = [table for table in named if "measured" not in set(table.what)]
    for name, values in (("to leading order", series.predicted), ("with the correction", series.refined)):
        np.testing.assert_array_equal(laws[laws.what == name].value, values)
        np.testing.assert_array_equal(ratios[ratios.what == name].value, series.quantity / values)
    with pytest.raises(InputError, match="tied"):
        plots.series("coordinates that start tied share the lead")


@pytest.mark.parametrize("draw", ["path", "comparison", "basins", "sensitivity", "winners", "rates", "series"])
@pytest.mark.parametrize("wrong", [3.0, None, {"s": 1}, [1.0], []])
def test_what_is_no_result_is_refused(draw, wrong):
    with pytest.raises(InputError, match="what to draw"):
        getattr(plots, draw)(wrong)


def test_flows_of_one_time_are_refused(result):
    one = replace(result, log_t=result.log_t[:1], s=result.s[:1], u=None, normalized_entropy=None)
    with pytest.raises(InputError, match="at least 2"):
        plots.path(one)


def test_charts_load_neither_altair_nor_jax_until_one_is_drawn():
    code = "import sys, polariscope.plots, polariscope.flow; print({'altair', 'jax', 'pandas'} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"
    with pytest.raises(AttributeError, match="no attribute"):
        _ = plots.pie
