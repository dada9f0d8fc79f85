"""What theory says about a path, as checks: each returns a record with the worst margin and where it occurred.

Source: Varre, Rofin, Flammarion (2026), arXiv:2603.06248, Theorems 3.2 and 3.3. The rate law is this package's.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from polariscope.flow.identities import predictor_residual, replicator_residual
from polariscope.flow.result import Path

__all__ = ["Check", "check_path", "predictor_residual", "rate_law", "remainder", "replicator_residual"]


@dataclass(frozen=True)
class Check:
    """The outcome of one check.

    Attributes:
        name: of the statement. statement: what is claimed.
        holds: True or False, or None where the statement presupposes something that this problem lacks.
        margin: the worst value of what must be at least -tolerance; negative is against the statement.
        where: log t at the worst place, or None.
        tolerance: how much numerical error is forgiven.
        note: why it does not apply, or what was found beside it.
    """

    name: str
    statement: str
    holds: bool | None
    margin: float | None
    where: float | None
    tolerance: float
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Everything by name."""
        return asdict(self)


def judged(name: str, statement: str, values: np.ndarray, log_t: np.ndarray, tolerance: float, note: str = "") -> Check:
    """A check that holds where all ``values`` (m,) are at least -tolerance; NaN does not hold."""
    worst = int(np.argmin(np.where(np.isnan(values), -np.inf, values)))
    margin = float(values[worst])
    return Check(name, statement, bool(margin >= -tolerance), margin, float(log_t[worst]), tolerance, note)


def not_applicable(name: str, statement: str, why: str) -> Check:
    """A check whose hypothesis this problem does not meet."""
    return Check(name, statement, None, None, None, 0.0, why)


def _gaps(values: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Gaps between neighbours in the given order, (m, n - 1); all gaps are sums of these."""
    return np.diff(values[:, order], axis=1)


def common_order(path: Path) -> np.ndarray:
    """The order in which u and s start: by u, and by s where u is equal."""
    assert path.u is not None
    return np.lexsort((path.s[0], path.u[0]))


def order_of(path: Path, symbol: str, tolerance: float) -> Check:
    """The order that u and s start with is kept by u (or s): no gap between neighbours turns negative."""
    name, values = f"order of {symbol}", getattr(path, symbol)
    scale = np.maximum(1.0, np.abs(values).max(axis=1))
    gaps = (_gaps(values, common_order(path)) / scale[:, None]).min(axis=1)
    return judged(name, f"{symbol} keeps the initial order", gaps, path.log_t, tolerance)


def gaps_of_u_grow(path: Path, tolerance: float) -> Check:
    """u_i - u_j grows for every pair with u_i > u_j, relative to the size of u."""
    assert path.u is not None
    growth = np.diff(_gaps(path.u, common_order(path)), axis=0)
    scale = np.maximum(1.0, np.abs(path.u).max(axis=1))[1:]
    values = (growth / scale[:, None]).min(axis=1)
    return judged("gaps of u grow", "u_i - u_j does not shrink for u_i ≥ u_j", values, path.log_t[1:], tolerance)


def gap_of_winner_grows(path: Path, tolerance: float) -> Check:
    """s_w - s_j grows for the winner w and every j; gaps between losers need not, and the note says which do not."""
    order = common_order(path)
    s = path.s[:, order]
    growth = np.diff(s[:, -1:] - s[:, :-1], axis=0).min(axis=1)
    losers = np.diff(s[:, :-1], axis=1)
    shrink = (np.diff(losers, axis=0) < -tolerance).any(axis=0)
    pairs = [f"s_{order[i + 1]} - s_{order[i]}" for i in np.flatnonzero(shrink)]
    note = f"gaps between losers that shrink at some time: {len(pairs)} of {losers.shape[1]} neighbours"
    note += f" ({', '.join(pairs[:4])}{', …' if len(pairs) > 4 else ''})" if pairs else ""
    statement = "s_w - s_j does not shrink for the winner w"
    return judged("gap of the winner in s grows", statement, growth, path.log_t[1:], tolerance, note)


def sum_of_a_conserved(path: Path, tolerance: float) -> Check:
    """Σa stays what it was (softmax: J1 = 0)."""
    drift = np.abs(path.a.sum(axis=1) - path.a[0].sum()) / np.maximum(1.0, np.abs(path.a).sum(axis=1))
    return judged("sum of a conserved", "Σa is constant", -drift, path.log_t, tolerance)


def loss_decreases(path: Path, tolerance: float) -> Check:
    """ℓ does not increase; judged by log ℓ where ℓ is beyond what a float can hold, as for exponential losses."""
    if np.isinf(path.objective).any():
        drop = -np.diff(path.log_objective) / np.maximum(1.0, np.abs(path.log_objective[:-1]))
    else:
        # Rounding is in units of what the objective started from, even where it has become small.
        scale = np.maximum(np.maximum(1.0, np.abs(path.objective[:-1])), 1e-6 * np.abs(path.objective[0]))
        drop = -np.diff(path.objective) / scale
    return judged("loss decreases", "the objective does not increase", drop, path.log_t[1:], tolerance)


def remainder(s: np.ndarray) -> np.ndarray:
    """1 - max s over the last axis, as the sum of the others, which does not cancel."""
    return np.sort(s, axis=-1)[..., :-1].sum(axis=-1)


def one_hot_limit(path: Path, tolerance: float, norm: float = 1.0) -> Check:
    """The largest weight is on its way to 1: 1 - max s falls below its start and keeps falling at the end.

    Judged from log t = 10·max(1, ‖β*‖) on: before, the weights may still be deciding which one leads.

    Coordinates that start exactly tied stay tied; if they lead, the limit is not one-hot.
    """
    rest = remainder(path.s)
    top = np.sort(path.s[-1])[-2:]
    if top[0] == top[1]:
        return not_applicable("one-hot limit", "1 - max s falls", "presupposes that one coordinate leads alone")
    if path.log_t[-1] < 10 * max(1.0, norm):
        return not_applicable("one-hot limit", "1 - max s falls", "a limit: needs log t of at least 10·max(1, ‖β*‖)")
    value = min(rest[0] - rest[-1], float(rest[-2] - rest[-1]))
    note = f"1 - max s = {rest[-1]:.3g} at the last time"
    return judged("one-hot limit", "1 - max s falls", np.array([value]), path.log_t[-1:], tolerance, note)


def rate_constant(n: float, kappa: float) -> float:
    """c of 1 - max s → c/(‖β*‖τ)²: 2/(κ² + 1/(n - 1)), κ the limit of f'(a_w)/Σf; softmax: κ = 1, c = 2(1 - 1/n)."""
    return 2 / (kappa**2 + 1 / (n - 1))


def rate_law(path: Path, tolerance: float, norm: float = 1.0) -> Check:
    """(1 - max s)(log t)²(1 + 1/N)/(2‖β*‖²) tends to 1; judged from log t = 1000·max(1, ‖β*‖, |u| at the start) on.

    N = (Σs_j)²/Σs_j² over the losers j, their effective number, tends to n - 1, but only like (log t)^(-4/n): with many
    keys or a wide start it is far from it at any time. The other corrections are of the order 1/log t.

    With û = u/‖β*‖ and τ̂ = ‖β*‖τ the path does not know ‖β*‖, and log t ≈ z ≈ ‖β*‖τ̂.
    """
    name, statement = "rate law", "1 - max s = 2‖β*‖²/((1 + 1/N)(log t)²) as t → ∞, N → n - 1"
    n = path.s.shape[1]
    top = np.sort(path.s[-1])[-2:]
    scale = max(1.0, norm, 0.0 if path.u is None else float(np.abs(path.u[0]).max()))
    if path.log_t[-1] < 1000 * scale or n < 2 or top[0] in (0, top[1]):
        why = "asymptotic: needs log t of at least 1000·max(1, ‖β*‖, |u| at the start), a single leader, others not 0"
        return not_applicable(name, statement, why)
    losers = np.sort(path.s[-1])[:-1]
    relative = losers / losers[-1]  # squares of the weights underflow from log t = 10⁸⁰ on
    number = relative.sum() ** 2 / (relative**2).sum()
    ratio = remainder(path.s[-1]) * (path.log_t[-1] / norm) ** 2 / rate_constant(number + 1, 1.0)
    note = f"ratio {ratio:.6f} at log t = {path.log_t[-1]:.6g}, N = {number:.4g} of {n - 1}"
    return judged(name, statement, np.array([-abs(ratio - 1)]), path.log_t[-1:], tolerance, note)


ORDERED: tuple[tuple[str, str, Callable[[Path, float], Check]], ...] = (
    ("order of u", "u keeps its initial order", lambda p, tol: order_of(p, "u", tol)),
    ("order of s", "s keeps its initial order", lambda p, tol: order_of(p, "s", tol)),
    ("gaps of u grow", "u_i - u_j does not shrink for u_i ≥ u_j", gaps_of_u_grow),
    ("gap of the winner in s grows", "s_w - s_j does not shrink for the winner w", gap_of_winner_grows),
)
"""What Theorem 3.2 says, for starts where a and u are in the same order."""


def same_order(first: np.ndarray, second: np.ndarray) -> bool:
    """Whether no pair is in one order in ``first`` and in the opposite order in ``second``."""
    signs = np.sign(first[:, None] - first) * np.sign(second[:, None] - second)
    return bool((signs >= 0).all())


def check_path(
    path: Path, *, softmax: bool, logistic: bool, tied: bool, tolerance: float, norm: float = 1.0
) -> tuple[Check, ...]:
    """Every check that is defined for this kind of problem, in a fixed order.

    Args:
        path: at least two times, the first at the start.
        softmax: whether the score map is softmax. logistic: whether the loss is. tied: whether the model is tied.
        tolerance: of the checks that compare numbers along the path.
        norm: ‖β*‖, where the loss has a target.
    """
    if len(path.log_t) < 2:
        return ()
    found = []
    theorem = softmax and logistic and not tied
    if theorem and path.u is not None:
        why = "" if same_order(path.s[0], path.u[0]) else "presupposes that a and u start in the same order"
        why = why or ("" if path.s.shape[1] > 1 else "presupposes n > 1")
        found += [not_applicable(n, text, why) if why else check(path, tolerance) for n, text, check in ORDERED]
    if softmax and not tied:
        found.append(sum_of_a_conserved(path, tolerance))
    found.append(loss_decreases(path, tolerance))
    if theorem and path.s.shape[1] > 1:
        found += [one_hot_limit(path, tolerance, norm), rate_law(path, 0.02, norm)]
    return tuple(found)
