"""Arguments of a probe: what they may be, and when it may end by itself."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from polariscope.errors import InputError, unknown_name
from polariscope.probe.documents import BOS_MODES
from polariscope.probe.gathered import Gathered
from polariscope.probe.intervals import Intervals
from polariscope.probe.statistics import metric_names

# Fewer documents than this give intervals that are too narrow; looking after each would stop at lucky ones.
FEWEST_DOCUMENTS, EVERY = 20, 5


@dataclass(frozen=True)
class Until:
    """End as soon as the interval of a metric, the mean over heads and documents, is narrow enough.

    It is looked at after 20 documents and then after every fifth. Stopping there makes the interval's true coverage a
    little lower than its name.

    Args:
        width: the half-width to reach, (high − low) / 2, in the unit of the metric.
        metric: its name.
    """

    width: float
    metric: str = "sink_rate"

    def check(self, eps: Sequence[float]) -> None:
        """Raises InputError for a width that is not positive and for an unknown metric."""
        if not self.width > 0:
            raise InputError("--until-ci", got=self.width, expected="a positive half-width", fix="for example 0.01")
        if self.metric not in metric_names(eps):
            raise unknown_name("metric", self.metric, metric_names(eps))

    def reached(self, found: Gathered, intervals: Intervals) -> bool:
        """Whether it may end now."""
        count = len(found.records)
        if count < FEWEST_DOCUMENTS or count % EVERY:
            return False
        return self._narrow(found, intervals)

    def _narrow(self, found: Gathered, intervals: Intervals) -> bool:
        _, low, high = intervals.mean(found.means()[:, found.names.index(self.metric)])
        return bool((high - low) / 2 <= self.width)

    def record(self, found: Gathered, intervals: Intervals) -> dict[str, Any]:
        """For the result file: what was asked for, and whether it was reached."""
        return {"metric": self.metric, "half_width": self.width, "reached": self._narrow(found, intervals)}


def check_arguments(
    max_length: int,
    limit: int | None,
    bos: str,
    eps: Sequence[float],
    confidence: float = 0.95,
    seed: int = 0,
    until: Until | None = None,
    rows: int | None = None,
) -> None:
    """Refuse arguments of `scan` that are out of range, which needs no model."""
    if bos not in BOS_MODES:
        raise unknown_name("BOS mode", bos, BOS_MODES)
    for name, value in (("max_length", max_length), ("limit", limit or 1), ("seed", seed)):
        if not isinstance(value, int):
            raise InputError(name, got=repr(value), expected="a whole number", fix=f"give {name} as an integer")
    if not isinstance(eps, Sequence) or not all(isinstance(e, float | int) for e in eps):
        raise InputError("eps", got=repr(eps), expected="a sequence of numbers", fix="for example eps=(0.3,)")
    if seed < 0:
        raise InputError("--seed", got=seed, expected="0 or more", fix="0 is the default")
    if max_length < 2:
        raise InputError("--max-length", got=max_length, expected="2 tokens or more", fix="256 is the default")
    if limit is not None and limit < 1:
        raise InputError("--limit", got=limit, expected="1 document or more", fix="give a positive number")
    if not eps or not all(0 < e < 1 for e in eps) or len({f"{e:g}" for e in eps}) < len(eps):
        raise InputError(
            "--eps", got=list(eps), expected="different numbers between 0 and 1", fix="0.3 is the usual one"
        )
    if not 0 < confidence < 1:
        raise InputError("confidence", got=confidence, expected="a number between 0 and 1", fix="0.95 is usual")
    if rows is not None and rows < 1:
        raise InputError("rows of a block", got=rows, expected="1 or more", fix="leave it out")
    if until is not None:
        until.check(eps)


def check_window(model: Any, max_length: int) -> None:
    """Refuse more tokens than a model has positions for."""
    config = getattr(model, "config", None)
    text = None if config is None else config.get_text_config(decoder=True)
    window = getattr(text, "max_position_embeddings", None)
    if isinstance(window, int) and max_length > window:
        raise InputError(
            "--max-length",
            got=max_length,
            expected=f"at most {window}, the positions that this model was trained for",
            fix=f"--max-length {window} or less",
        )
