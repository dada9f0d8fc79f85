"""The settings of a training run, complete and checked before anything is computed."""

from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from polariscope import nets, tasks
from polariscope.errors import InputError
from polariscope.nets.config import TransformerConfig
from polariscope.tasks import Task
from polariscope.validation import as_input_error

Positive = Field(gt=0)


class RunSettings(BaseModel):
    """Everything that decides a run. What is left out, or None, takes the task's published value.

    Args:
        task: a name in `polariscope.tasks.REGISTRY`.
        attention: a name in `polariscope.nets.REGISTRY`; default "softmax".
        seed: one seed for all random streams (data, initialization, order, measures); default 0.
        lr: learning rate η.
        epochs: passes over the training sequences; or
        steps: number of optimizer steps, instead of epochs.
        batch_size: sequences per step; the last batch of an epoch may be smaller.
        layers, heads, dim, mlp, layernorm, positions: the network, see `polariscope.nets.TransformerConfig`.
        vocabulary, length: the task's sizes.
        optimizer: "adamw" (PyTorch's defaults, weight decay 0.01; as in the source) or "sgd" (plain, no momentum).
        device: "auto" takes CUDA where there is one.

    Raises:
        InputError: for anything unknown, misspelt, of the wrong type, or out of range.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")
    task: str
    attention: str = "softmax"
    seed: int = Field(0, ge=0)
    lr: float = Field(gt=0, allow_inf_nan=False)
    epochs: int | None = Field(None, gt=0)
    steps: int | None = Field(None, gt=0)
    batch_size: int = Positive
    layers: int = Positive
    heads: int = Positive
    dim: int = Positive
    mlp: bool
    layernorm: bool
    positions: Literal["none", "add", "concat"]
    vocabulary: int = Positive
    length: int = Positive
    optimizer: Literal["adamw", "sgd"] = "adamw"
    device: Literal["auto", "cpu", "cuda"] = "auto"

    def __init__(self, **given: Any) -> None:
        given = {name: value for name, value in given.items() if value is not None}
        defaults = dict(tasks.REGISTRY.get(given.get("task", "classification")).defaults)
        if "steps" in given:
            del defaults["epochs"]
        try:
            super().__init__(**{**defaults, **given})
        except ValidationError as problem:
            raise as_input_error(problem, "run setting", RunSettings.model_fields) from None

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        nets.REGISTRY.get(self.attention)
        if (self.epochs is None) == (self.steps is None):
            raise InputError(
                "length of training",
                got=f"epochs={self.epochs} and steps={self.steps}",
                expected="one of the two",
                fix="leave the other out",
            )
        self.network()
        return self

    def build_task(self) -> Task:
        """The task, with this vocabulary and length."""
        return tasks.REGISTRY.get(self.task)(vocabulary=self.vocabulary, length=self.length)

    def network(self) -> TransformerConfig:
        """The architecture that the settings and the task ask for."""
        task = self.build_task()
        return TransformerConfig(
            vocabulary=task.vocabulary,
            length=task.length,
            outputs=task.outputs,
            causal=task.causal,
            **self.model_dump(include={"attention", "layers", "heads", "dim", "mlp", "layernorm", "positions"}),
        )

    def total_steps(self) -> int:
        """Number of optimizer steps."""
        per_epoch = -(-tasks.REGISTRY.get(self.task).train_size // self.batch_size)
        return self.steps if self.steps is not None else (self.epochs or 0) * per_epoch
