"""What a claim is: a statement, an experiment that writes files, and a judge that reads only those files."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

Verdict = Literal["supported", "not supported", "inconclusive", "error"]
SCALES = ("quick", "paper")


@dataclass(frozen=True)
class Outcome:
    """What the judge found.

    Args:
        verdict: by the claim's rule and nothing else.
        statistic: the one number the rule is about.
        measure: what that number is, in words.
        interval: its 95 % interval, or None where there is no sampling error (an identity).
        notes: what a reader must know beyond the verdict, in whole sentences.
        details: further numbers by name.
    """

    verdict: Verdict
    statistic: float | None
    measure: str
    interval: tuple[float, float] | None
    notes: str
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Context:
    """Where an experiment writes, at which settings, and whom it tells how far it is.

    Args:
        folder: an existing folder of its own.
        settings: the claim's settings at the chosen scale.
        progress: called with (done, total, what) from time to time.
    """

    folder: Path
    settings: Mapping[str, Any]
    progress: Callable[[float, float, str], None] = lambda done, total, what: None


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, with the experiment and the rule that decide about it.

    ``experiment`` writes its results into ``context.folder``; ``judge`` reads that folder and nothing else, so that a
    verdict can be recomputed from saved files.

    Args:
        id: stable identifier ("C3").
        claim: the statement under test.
        plain: what it means, for a reader who has not read the paper.
        method: how it is tested here, for the same reader.
        source: where the paper makes it.
        rule: what the statistic must satisfy, fixed before the experiment is run.
        settings: one mapping of options per scale, "quick" and "paper".
    """

    id: str
    claim: str
    plain: str
    method: str
    source: str
    rule: str
    settings: Mapping[str, Mapping[str, Any]]
    experiment: Callable[[Context], None]
    judge: Callable[[Path], Outcome]

    @property
    def command(self) -> str:
        """What a reader types to run this claim alone."""
        return f"polariscope study --only {self.id} -o DIR"
