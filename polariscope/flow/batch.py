"""Flows of one kind and shape in ordinary time, side by side: from one look at them to the next, over kinks."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
from scipy.optimize import elementwise

from polariscope.flow.chart import GONE, chart_of
from polariscope.flow.chunks import Chunk
from polariscope.flow.ordinary_time import Data, Flow, Observed, edges, integrate, observe
from polariscope.flow.problem import Problem
from polariscope.flow.ties import alike

PLAN = (("explicit", 4096), ("implicit", 8192))
"""What is tried on a stretch, the second from where the first used up its steps, for smooth σ and V of few entries.

Measured: to t = 10⁶ with KL, and with condition numbers to 100, explicit steps are 1 to 150 times faster. From starts
with entries of 10³ the other way round: 4,096 of them cost about as much as the implicit ones that would do."""
LARGEST_IMPLICIT = 600
"""Entries of V from which implicit steps, which factor a matrix of that size, cost more than they save."""
MOST_STEPS = 130_000
"""Steps of a whole flow."""
BOUND = 1e50
"""Parameters beyond it count as diverged."""


NUDGE = 1e-6
"""Relative size of the difference by which the decay of the velocity is measured."""


def _dot(one: dict[str, Any], other: dict[str, Any]) -> np.ndarray:
    """⟨one, other⟩ of every flow, (b,)."""
    return sum((one[key] * other[key]).reshape(len(one[key]), -1).sum(1) for key in one)  # type: ignore[return-value]


def _sound(values: dict[str, Any], bound: float) -> np.ndarray:
    """Whether all values of a flow are numbers of a size below ``bound``, (b,)."""
    return np.all([(np.abs(v) < bound).reshape(len(v), -1).all(1) for v in values.values()], axis=0)


def _rows(factor: np.ndarray, values: np.ndarray) -> np.ndarray:
    """A factor for each flow, in a shape that multiplies its values."""
    return factor.reshape(-1, *[1] * (values.ndim - 1))


@dataclass(eq=False)
class Batch:
    """Flows while they are being solved; every array has a leading axis of flows.

    Attributes:
        problems: what is solved. flow: their velocity field. rtol: of the steps. together: side by side, or in turn.
        y: trained parameters. data: what else the velocity depends on. t: times reached.
        shift: from where logits are measured, (b,).
        stage: place in `PLAN`. steps, rejected: so far.
        ended: None on the way, else "copy", "converged", "kink", "diverged" or "step limit".
        kinks: (t, key) of every key that lost its weight, or, at the end of a flow with status "kink", may move.
    """

    problems: Sequence[Problem]
    flow: Flow
    rtol: float
    together: bool
    y: dict[str, Any]
    data: Data
    shift: np.ndarray
    t: np.ndarray
    stage: np.ndarray
    steps: np.ndarray
    rejected: np.ndarray
    ended: list[str | None]
    kinks: list[list[tuple[float, int]]] = field(default_factory=list)

    def alive(self) -> np.ndarray:
        """Flows that go on, (b,)."""
        return np.array([ended is None for ended in self.ended])

    def look(self) -> Observed:
        """What is kept of the states; flows that have come to rest, or whose velocity is no number, end here."""
        observed, v = jax.tree.map(np.asarray, observe(self.y, self.data, flow=self.flow))
        for i in np.flatnonzero(self.alive() & ~_sound(v, np.inf)):
            self.ended[i] = "diverged"
        for i in np.flatnonzero(self.alive() & (self._way_left(v) <= self.rtol)):
            self.ended[i] = "converged"
        return observed._replace(a=observed.a + self.shift[:, None])

    def _way_left(self, v: dict[str, Any]) -> np.ndarray:
        """How far the parameters will still move, if they are close to a minimum; infinite if they are not.

        Near a minimum the velocity v decays at the rate λ of the slowest direction left in it, λ = -⟨v, v̇⟩/⟨v, v⟩, and
        the way left is |v|/λ. Where decay is slower than exponential, as for the logistic loss, λ falls like 1/t and
        the way left does not shrink. v̇ is a difference along v, to which rounding adds nothing that matters.
        """
        largest = np.max([np.abs(v[key]).reshape(len(v[key]), -1).max(1) for key in v], axis=0)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            unit = {key: v[key] / _rows(np.where(largest > 0, largest, 1.0), v[key]) for key in v}
            length = np.sqrt(_dot(unit, unit))  # |v|² itself underflows where |v| is 10⁻²⁰⁰
            way = NUDGE * (1.0 + np.sqrt(_dot(self.y, self.y)))
            ahead = {key: self.y[key] + _rows(way / np.where(length > 0, length, 1.0), v[key]) * unit[key] for key in v}
            _, after = observe(ahead, self.data, flow=self.flow)
            change = {key: (np.asarray(after[key]) - v[key]) / _rows(largest, v[key]) for key in v}
            decay = -_dot(unit, change) / length**2
            return np.where(largest == 0, 0.0, np.where(decay > 0, way / decay, np.inf))

    def advance(self, end: np.ndarray) -> None:
        """Every flow that goes on to its time in ``end`` (b,)."""
        while (todo := self.alive() & (self.t < end)).any():
            stage = self.stage[todo].min()
            self._stretch(todo & (self.stage == stage), end, *PLAN[stage])

    def _stretch(self, todo: np.ndarray, end: np.ndarray, solver: str, max_steps: int) -> None:
        watch = self.flow.pieces and self.flow.charts.kinked
        t, self.y, stats = self._integrate(np.where(todo, end, self.t), watch, solver, max_steps)
        taken = stats["num_steps"]
        self.steps += stats["num_accepted_steps"]
        self.rejected += stats["num_rejected_steps"]
        begun, self.t = self.t, np.where(todo, t, self.t)
        sound = _sound(self.y, BOUND)
        for i in np.flatnonzero(todo & ~sound):
            self.ended[i] = "diverged"
        if watch:
            self._cross(todo & sound & (taken < max_steps), begun)
        for i in np.flatnonzero(self.alive() & todo & (self.t < end) & (taken == 0) & (not watch)):
            self.ended[i] = "step limit"  # no step is long enough to change t
        for i in np.flatnonzero(todo & sound & (self.t < end) & (taken >= max_steps)):
            self._used_up(int(i))

    def _integrate(self, end: np.ndarray, watch: bool, solver: str, max_steps: int) -> tuple[Any, Any, Any]:
        how = {"flow": self.flow, "solver": solver, "max_steps": max_steps, "watch": watch}
        return integrate(self.y, self.t, end, self.data, self.rtol, together=self.together, **how)

    def _used_up(self, i: int) -> None:
        """The next solver for a flow that used up its steps; where none could help, the same again."""
        helps = self.smooth(i) and self.y["V"][i].size <= LARGEST_IMPLICIT
        if self.steps[i] + self.rejected[i] >= MOST_STEPS or (helps and self.stage[i] + 1 == len(PLAN)):
            self.ended[i] = "step limit"
        elif helps:
            self.stage[i] += 1

    def smooth(self, i: int) -> bool:
        """Whether σ has no kinks on the way of a flow, as far as is known."""
        properties = getattr(self.problems[i].scores, "properties", None)
        return properties is None or properties.smooth or self.flow.pieces

    def _cross(self, stopped: np.ndarray, begun: np.ndarray) -> None:
        """Takes flows whose piece ended in their last step back to the kink, and on to the next piece."""
        gone, pushed = (np.asarray(v) for v in edges(self.y, self.data, flow=self.flow))
        for i in np.flatnonzero(stopped & pushed.any(1)):
            self.ended[i] = "kink"
            self.kinks[i] += [(float(self.t[i]), int(key)) for key in np.flatnonzero(pushed[i])]
        over = np.flatnonzero(stopped & ~pushed.any(1) & (gone < 0).any(1))
        if len(over):
            self._back(over, begun)
            gone, _ = (np.asarray(v) for v in edges(self.y, self.data, flow=self.flow))
        for i in over:
            keys = np.flatnonzero(gone[i] <= GONE)
            self.data.where[i, keys] = False
            self.data.edge[i, keys] = True
            self.kinks[i] += [(float(self.t[i]), int(key)) for key in keys]

    def _back(self, over: np.ndarray, begun: np.ndarray) -> None:
        """Back along the smooth continuation of the piece to where the least weight is 0."""
        after = self.t.copy()

        def at(t: np.ndarray, rows: np.ndarray) -> tuple[Any, np.ndarray]:
            end = after.copy()
            end[rows] = t
            _, y, _ = self._integrate(end, watch=False, solver="explicit", max_steps=4096)
            gone, _ = edges(y, self.data, flow=self.flow)
            return y, np.asarray(gone).min(1)

        back = 1e-3 * (after[over] - begun[over])
        for _ in range(11):  # a step is short beside the stretch; go no further back than needed
            back = np.where(at(after[over] - back, over)[1][over] < 0, 2 * back, back)
        low = np.maximum(after[over] - back, begun[over])
        root = elementwise.find_root(
            lambda t, rows: at(t, rows.astype(int))[1][rows.astype(int)],
            (low, after[over]), args=(over.astype(float),), tolerances={"xatol": 0.0, "xrtol": 1e-14},
        )  # fmt: skip
        y, _ = at(root.x, over)
        self.y = jax.tree.map(np.array, y)
        self.t[over] = root.x


def batch_of(problems: Sequence[Problem], rtol: float, chunk: Chunk) -> Batch:
    """Flows at their start, and copies of the last one, which end there, up to the size of the chunk."""
    copies, charts = chunk.size - len(problems), chunk.charts
    problems = [*problems, *[problems[-1]] * copies]
    first = problems[0]
    same = np.stack([alike(p) for p in problems])
    tied = bool((same != np.arange(same.shape[1])).any())
    flow = Flow(first.model, charts, first.loss, first.model.own, tied)
    names = ["V", *first.model.trained]

    def stacked(parts: Sequence[Any]) -> Any:
        return jax.tree.map(lambda *leaves: np.stack(leaves), *parts)

    own = [chart_of(p.scores) for p in problems]
    data = Data(
        stacked([dict(p.data) for p in problems]),
        stacked([{k: v for k, v in p.parameters.items() if k not in names} for p in problems]),
        np.array([charts.members.index(p.scores) for p in problems]),
        np.stack([c.active(p.a0, p.where) if flow.pieces else p.where for p, c in zip(problems, own, strict=True)]),
        np.stack([np.sign(p.a0) for p in problems]),
        np.stack([c.edge(p.a0, p.where) & flow.pieces for p, c in zip(problems, own, strict=True)]),
        same,
    )
    y = stacked([{k: p.parameters[k] for k in names} for p in problems])
    movable = flow.pieces and "a" in y
    shift = np.array([c.shift(p.a0, p.where) if movable else 0.0 for p, c in zip(problems, own, strict=True)])
    if movable:
        y["a"] = y["a"] - shift[:, None]
    count = len(problems)
    ended: list[str | None] = [None] * (count - copies) + ["copy"] * copies
    stage, steps, rejected = (np.zeros(count, int) for _ in range(3))
    start, kinks = np.zeros(count), [[] for _ in problems]
    return Batch(problems, flow, rtol, chunk.together, y, data, shift, start, stage, steps, rejected, ended, kinks)
