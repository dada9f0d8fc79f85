"""Token-group classification: every token of a sequence names the answer, none is needed more than another."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from polariscope.errors import InputError
from polariscope.tasks._base import Batch, Task

CLS = 0


@dataclass(frozen=True)
class Classification(Task):
    """Say at the last position, CLS, from which of g groups the T − 1 distinct tokens before it come.

    Group γ owns the ids γ·m + 1 … γ·m + m with m = (vocabulary − 1)/g. A sequence draws its group uniformly, then
    T − 1 distinct tokens of it in random order. The group is the target.

    Args:
        vocabulary: number of token ids, CLS included; the source uses 41, 81 and 161.
        length: T, with CLS.
        labels: g.

    Raises:
        InputError: if the groups cannot be equally large, or are too small for T − 1 distinct tokens.

    Source: Varre, Rofin, Flammarion (2026), arXiv:2603.06248, Section 4.2.
    """

    vocabulary: int = 41
    length: int = 11
    labels: int = 4

    # The source's configuration. It leaves out what the task does not need: order, depth, MLP, normalization.
    defaults: ClassVar[Mapping[str, Any]] = {
        "lr": 1e-3,
        "epochs": 10,
        "batch_size": 256,
        "layers": 1,
        "heads": 1,
        "dim": 128,
        "mlp": False,
        "layernorm": False,
        "positions": "none",
        "vocabulary": 41,
        "length": 11,
    }
    train_size: ClassVar[int] = 10_000
    evaluation_size: ClassVar[int] = 1_000
    rows: ClassVar[slice] = slice(-1, None)
    causal: ClassVar[bool] = False
    measures: ClassVar[tuple[str, ...]] = ("attention_rows", "label_mixing")

    def __post_init__(self) -> None:
        if self.labels < 2:
            raise InputError("classification labels", got=self.labels, expected="at least 2", fix="try labels=4")
        if self.vocabulary <= self.labels or (self.vocabulary - 1) % self.labels:
            raise InputError(
                "classification vocabulary",
                got=self.vocabulary,
                expected=f"1 (CLS) plus a multiple of {self.labels} (the number of groups)",
                fix="try 41, 81 or 161",
            )
        if not 2 <= self.length <= self.group + 1:
            raise InputError(
                "classification length",
                got=self.length,
                expected=f"2 to {self.group + 1}: distinct tokens of a group of {self.group}, then CLS",
                fix="take a shorter length or a larger vocabulary",
            )

    @property
    def group(self) -> int:
        """Number of tokens in a group, m."""
        return (self.vocabulary - 1) // self.labels

    @property
    def outputs(self) -> int:
        """One output per group."""
        return self.labels

    def draw(self, count: int, generator: torch.Generator) -> Batch:
        """``count`` sequences (count, T), CLS last, and their groups (count, 1)."""
        groups = torch.randint(self.labels, (count, 1), generator=generator)
        # The first T − 1 places of a random permutation of the group: distinct and in random order.
        keys = torch.rand(count, self.group, generator=generator, dtype=torch.float64)
        members = keys.argsort(dim=-1, stable=True)[:, : self.length - 1]
        tokens = groups * self.group + members + 1
        return Batch(torch.cat([tokens, torch.full((count, 1), CLS)], -1), groups)
