"""What a solved flow is: a path at the times asked for, a status with a sentence, checks and statistics."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np

STATUSES = ("ok", "converged", "kink", "step limit", "diverged")


@dataclass(frozen=True, eq=False)
class Path:
    """A computed path at increasing times, more of them than were asked for.

    Attributes:
        log_t: (m,).
        s, a: (m, n); ``a`` holds the parameters (for the tied model not the logits).
        u: Vᵀβ*, (m, n), where the loss has a target.
        log_objective: (m,); -inf where the objective is 0.
        column_norms: of V, (m, n).
        tau: path time, (m,), where there is one.
    """

    log_t: np.ndarray
    s: np.ndarray
    a: np.ndarray
    u: np.ndarray | None
    objective: np.ndarray
    log_objective: np.ndarray
    column_norms: np.ndarray
    tau: np.ndarray | None = None

    def at(self, index: np.ndarray) -> "Path":
        """The path at some of its times, chosen by index or mask."""
        cut: dict[str, Any] = {key: None if value is None else value[index] for key, value in vars(self).items()}
        return Path(**cut)


@dataclass(frozen=True, eq=False)
class Result:
    """A gradient flow at the k times asked for.

    Attributes:
        name: of the problem.
        log_t: times as log t, (k,); t: the same as t, (k,), inf where a float cannot hold it.
        tau: path time τ, (k,), for the logistic loss with the value model; else None.
        s: attention weights, (k, n). a: logits, (k, n); for the tied model the parameter a. NaN where not reached.
        u: projections Vᵀβ*, (k, n), where the loss has a target; else None. column_norms: of V, (k, n).
        objective: ℓ, (k,). log_objective: log ℓ, (k,), which does not underflow for the logistic loss.
        entropy: -Σ sᵢ log sᵢ in nats, (k,), for score maps that declare distributions; else None. NaN where no
            key has weight.
        normalized_entropy: entropy / log n, (k,), for n > 1; else None.
        status: ok | converged | kink | step limit | diverged. message: what that means here, a sentence.
        make_checks: what `checks` calls (see `polariscope.flow.checks`).
        stats: engine, steps, rejected, evaluations, and the internal tolerance.
    """

    name: str
    log_t: np.ndarray
    s: np.ndarray
    a: np.ndarray
    u: np.ndarray | None
    objective: np.ndarray
    log_objective: np.ndarray
    column_norms: np.ndarray
    tau: np.ndarray | None
    entropy: np.ndarray | None
    normalized_entropy: np.ndarray | None
    status: str
    message: str
    stats: Mapping[str, Any] = field(default_factory=dict)
    make_checks: Callable[[], tuple[Any, ...]] = tuple

    @cached_property
    def checks(self) -> tuple[Any, ...]:
        """What theory says about this path; computed when it is asked for."""
        return self.make_checks()

    @property
    def t(self) -> np.ndarray:
        with np.errstate(over="ignore"):
            return np.exp(self.log_t)

    @property
    def complete(self) -> bool:
        """Whether every time asked for was reached."""
        return self.status in ("ok", "converged")

    def to_dict(self) -> dict[str, Any]:
        """Everything by name, for `polariscope.files.write_json`; log 0 and t beyond floats are infinite there."""
        values = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "make_checks"}
        return {"name": self.name, "t": self.t, **values, "checks": [check.to_dict() for check in self.checks]}


def entropy(s: np.ndarray) -> np.ndarray:
    """-Σ sᵢ log sᵢ over the last axis, in nats; 0 log 0 = 0. NaN for rows with NaN and for rows without any weight."""
    from scipy.special import entr

    return np.where(np.any(s != 0, axis=-1), entr(s).sum(axis=-1), np.nan)


def result_from(name: str, path: Path, *, distribution: bool, status: str, message: str, **more: Any) -> Result:
    """A Result from the path at the times asked for; ``distribution`` says whether its weights have an entropy."""
    h = entropy(path.s) if distribution else None
    n = path.s.shape[1]
    normalized = h / np.log(n) if h is not None and n > 1 else None
    return Result(
        name=name, **vars(path), entropy=h, normalized_entropy=normalized, status=status, message=message, **more
    )


def blanked(path: Path, reached: np.ndarray) -> Path:
    """The path with NaN at times that were not reached; the times themselves stay."""
    hidden = {
        key: np.where(reached.reshape(-1, *[1] * (value.ndim - 1)), value, np.nan)
        for key, value in vars(path).items()
        if value is not None and key != "log_t"
    }
    return Path(**{**vars(path), **hidden})


def concatenated(paths: Sequence[Path]) -> Path:
    """Pieces of paths one after the other; what one of them lacks is None."""
    if len(paths) == 1:
        return paths[0]
    pairs = {key: [getattr(path, key) for path in paths] for key in vars(paths[0])}
    joint: dict[str, Any] = {
        key: None if any(v is None for v in values) else np.concatenate(values) for key, values in pairs.items()
    }
    return Path(**joint)


def joined(one: Path, other: Path) -> Path:
    """Two pieces of one path as one, in order of time, each time once."""
    both = concatenated([one, other])
    return both.at(np.unique(both.log_t, return_index=True)[1])
