"""Phase diagrams, cell by cell: means and shares over seeds, with intervals."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from polariscope.flow.cell import NAMES
from polariscope.flow.result import STATUSES
from polariscope.flow.winners import share
from polariscope.metrics import bootstrap_interval

NO_START = "no start"
OUTCOMES = (*STATUSES, NO_START)
MEASURES = ("normalized_entropy", "max_s")
LEADERS = ("u", "s")
MOST_CELLS = 4096
"""Cells whose intervals are computed at a time."""


def grid_summary(table: pd.DataFrame) -> pd.DataFrame:
    """One row per cell and time, from the rows of `grid`.

    Returns:
        a table with the axes, log_t, seeds, and

        - reached: how many seeds got to this time. What follows is about those;
        - normalized_entropy, max_s: means over the seeds that have one, how many those are in ``_of``, and 95 %
          bootstrap intervals in ``_low`` and ``_high``; NaN where undefined, the intervals also for fewer than two
          seeds;
        - ties: share of seeds without a single winner;
        - won_by_u_leader, won_by_s_leader: share of seeds won by the initial leader, ``_of``: among how many with a
          single winner and a single leader, and 95 % Wilson intervals in ``_low`` and ``_high``;
        - share of seeds with each status: share_ok, share_converged, share_kink, …
    """
    axes = [name for name in table.columns if name in NAMES]
    groups = list(table.groupby([*axes, "log_t"], sort=False, dropna=False))
    keys = [dict(zip([*axes, "log_t"], key, strict=True)) for key, _ in groups]
    members = [rows for _, rows in groups]
    counts = [{"seeds": len(rows), "reached": int(rows.reached.sum())} for rows in members]
    parts = [pd.DataFrame(keys), pd.DataFrame(counts), *(_means(name, members) for name in MEASURES)]
    return pd.concat([*parts, pd.DataFrame([_shares(rows) for rows in members])], axis=1)


def _means(name: str, members: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """The mean of a column with its interval, for every cell; cells with equally many values at once."""
    samples = [rows[name].dropna().to_numpy() for rows in members]
    sizes = np.array([len(values) for values in samples])
    found = np.full((len(samples), 3), np.nan)
    for size in np.unique(sizes[sizes > 0]):
        places = np.flatnonzero(sizes == size)
        for part in np.array_split(places, -(-len(places) // MOST_CELLS)):
            values = np.stack([samples[place] for place in part])
            found[part] = np.column_stack([values.mean(axis=1), *bootstrap_interval(values, axis=1)])
    columns = dict(zip((name, f"{name}_low", f"{name}_high"), found.T, strict=True))
    return pd.DataFrame(columns | {f"{name}_of": sizes})


def _shares(rows: pd.DataFrame) -> dict[str, Any]:
    """Ties, who won and the statuses of one cell."""
    winners = rows.winner[rows.reached]
    found: dict[str, Any] = {"ties": int((winners == -1).sum()) / len(winners) if len(winners) else np.nan}
    for name in LEADERS:
        won = rows[f"won_by_{name}_leader"].dropna()
        names = (f"won_by_{name}_leader{end}" for end in ("", "_low", "_high"))
        found |= dict(zip(names, share(int(won.sum()), len(won)), strict=True)) | {f"won_by_{name}_leader_of": len(won)}
    shares = rows.status.value_counts(normalize=True)
    return found | {f"share_{status.replace(' ', '_')}": float(shares.get(status, 0.0)) for status in OUTCOMES}
