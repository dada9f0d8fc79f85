"""What a task is: how its sequences are drawn, where the model must answer, and what is measured."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional


@dataclass(frozen=True)
class Batch:
    """Sequences and the answers expected of the model.

    Args:
        ids: token ids, (N, T), int64.
        targets: the right output at each of the R positions where the task asks for one, (N, R), int64.
    """

    ids: Tensor
    targets: Tensor

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, index: Tensor | slice) -> "Batch":
        return Batch(self.ids[index], self.targets[index])

    def to(self, device: torch.device | str) -> "Batch":
        """The same batch on a device."""
        return Batch(self.ids.to(device), self.targets.to(device))


class Task(ABC):
    """A task draws sequences and says where the model answers and what is measured on the trained model.

    A new task is one file with a frozen dataclass that derives from this one, and a line in the registry.

    Attributes:
        defaults: the published experiment's value of every training setting that the user leaves open.
        train_size, evaluation_size: how many sequences are drawn, once, for training and for evaluation.
        rows: the positions at which the model answers; there the loss, the accuracy and the attention are taken.
        causal: whether a position sees only itself and those before it.
        measures: names in `polariscope.train.measures.MEASURES`, in the order in which they are taken.
        vocabulary, length, outputs: number of token ids, of positions T, and of classes to choose from.
    """

    defaults: ClassVar[Mapping[str, Any]]
    train_size: ClassVar[int]
    evaluation_size: ClassVar[int]
    rows: ClassVar[slice]
    causal: ClassVar[bool]
    measures: ClassVar[tuple[str, ...]]
    vocabulary: int
    length: int

    @property
    @abstractmethod
    def outputs(self) -> int:
        """Number of classes to choose from at each answered position."""

    @abstractmethod
    def draw(self, count: int, generator: torch.Generator) -> Batch:
        """``count`` independent sequences with their answers, without a loop over sequences."""

    def loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Mean cross-entropy in nats of logits (N, R, outputs) against targets (N, R)."""
        return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())

    def accuracy(self, logits: Tensor, targets: Tensor) -> float:
        """Share of answers whose largest logit is the target's."""
        return (logits.argmax(-1) == targets).double().mean().item()
