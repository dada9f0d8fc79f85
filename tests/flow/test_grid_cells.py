"""The summary of a phase diagram, recomputed by hand from made-up tables."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from polariscope import flow
from polariscope.metrics import bootstrap_interval

STATUSES = ("ok", "converged", "kink", "step limit", "diverged", "no start")


def made_up(seed, seeds=7):
    """A table such as `flow.grid` gives, with every kind of gap in it."""
    random = np.random.default_rng(seed)
    rows = []
    for scale in (0.1, 1.0, 3.0):
        for n in (4, 2):
            for k in range(seeds):
                status = str(random.choice(STATUSES))
                for log_t in (-np.inf, 3.0):
                    reached = status in ("ok", "converged") or (log_t < 0 and status != "no start")
                    weights = reached and random.random() < 0.8
                    winner = int(random.integers(-1, n)) if reached else None
                    leaders = [int(random.integers(-1, n)), None if scale == 3.0 else int(random.integers(-1, n))]
                    won = [None if None in (winner, who) or min(winner, who) < 0 else winner == who for who in leaders]
                    rows.append(
                        {"scale": scale, "n": n, "seed": k, "status": status, "log_t": log_t, "reached": reached,
                         "normalized_entropy": random.random() if weights else np.nan,
                         "max_s": random.random() if reached else np.nan, "winner": winner,
                         "won_by_s_leader": won[0], "won_by_u_leader": won[1]}
                    )  # fmt: skip
    types = {"winner": "Int64", "won_by_s_leader": "boolean", "won_by_u_leader": "boolean"}
    return pd.DataFrame(rows).astype(types)


@pytest.mark.parametrize("seed", range(8))
def test_every_number_by_hand(seed):
    table = made_up(seed)
    cells = flow.grid_summary(table)
    assert len(cells) == 12
    assert cells[["scale", "n"]].drop_duplicates().to_numpy().tolist() == [
        [scale, n] for scale in (0.1, 1.0, 3.0) for n in (4, 2)
    ]
    for _, cell in cells.iterrows():
        rows = [
            row for row in table.to_dict("records")
            if (row["scale"], row["n"], row["log_t"]) == (cell.scale, cell.n, cell.log_t)
        ]  # fmt: skip
        reached = [row for row in rows if row["reached"]]
        assert (cell.seeds, cell.reached) == (7, len(reached))
        for name in ("normalized_entropy", "max_s"):
            values = [row[name] for row in rows if row[name] == row[name]]
            assert cell[f"{name}_of"] == len(values)
            mean, low, high = cell[[name, f"{name}_low", f"{name}_high"]]
            assert mean == pytest.approx(sum(values) / len(values) if values else np.nan, nan_ok=True)
            wanted = bootstrap_interval(values) if len(values) > 1 else (np.nan, np.nan)
            assert (low, high) == pytest.approx(wanted, nan_ok=True)
            assert len(values) < 2 or low <= mean <= high
        ties = [row["winner"] == -1 for row in reached]
        assert cell.ties == pytest.approx(np.mean(ties) if ties else np.nan, nan_ok=True)
        for name in ("u", "s"):
            won = [row[f"won_by_{name}_leader"] for row in rows if pd.notna(row[f"won_by_{name}_leader"])]
            found = cell[[f"won_by_{name}_leader{end}" for end in ("_of", "", "_low", "_high")]].tolist()
            assert found == pytest.approx([len(won), *wilson(sum(won), len(won))], nan_ok=True)
        for status in STATUSES:
            share = sum(row["status"] == status for row in rows) / 7
            assert cell[f"share_{status.replace(' ', '_')}"] == pytest.approx(share)


def wilson(count, n):
    """The share, and the ends of the values p at which |share - p| is 1.96 standard deviations of p."""
    if n == 0:
        return [np.nan] * 3
    p, z = count / n, norm.ppf(0.975)
    roots = np.roots([1 + z**2 / n, -(2 * p + z**2 / n), p**2])
    return [p, *(max(0.0, float(root)) for root in sorted(roots.real))]


def test_the_summary_does_not_depend_on_the_order_of_rows():
    table = made_up(3)
    shuffled = table.sample(frac=1, random_state=1)
    key = ["scale", "n", "log_t"]
    one, other = (flow.grid_summary(x).sort_values(key, ignore_index=True) for x in (table, shuffled))
    exact = [name for name in one if not name.endswith(("_low", "_high"))]
    pd.testing.assert_frame_equal(one[exact], other[exact], rtol=1e-12)
