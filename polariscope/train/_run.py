"""The training loop: one for every task and every attention kind."""

import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from polariscope.errors import InputError
from polariscope.files import check_output_folder
from polariscope.nets.transformer import Transformer
from polariscope.tasks import Batch, Task, stream
from polariscope.train._result import RunResult
from polariscope.train._settings import RunSettings
from polariscope.train.measures import ROW_NAMES, blank_heads, measure, measured_names, row_statistics

Progress = Callable[[int, int], None]
TRACE_POINTS = 30


def run(settings: RunSettings, folder: Path | str | None = None, progress: Progress | None = None) -> RunResult:
    """Train a network on a task and measure it.

    The training sequences are drawn once and shuffled anew in each epoch. Data, initialization, order and measures have
    random streams of their own, all from ``settings.seed``; on one machine a run repeats bit for bit. If the
    loss is not finite the run stops there, with status "diverged" and no measured number.

    Args:
        settings: see `RunSettings`.
        folder: where to write the run's folder; None writes nothing.
        progress: called with (steps done, all steps) after every step.

    Returns:
        The `RunResult`.

    Raises:
        InputError: for a device that is not there, or a folder that cannot be written.
    """
    if folder is not None:
        check_output_folder(Path(folder), "train")
    start = time.perf_counter()
    device, task = _device(settings.device), settings.build_task()
    training = task.draw(task.train_size, stream(settings.seed, "training data")).to(device)
    evaluation = task.draw(task.evaluation_size, stream(settings.seed, "evaluation data")).to(device)
    model = Transformer(settings.network(), stream(settings.seed, "initialization")).to(device)
    trace, diverged_at = _train(model, task, training, evaluation, settings, progress)
    measured = _finish(model, task, evaluation, settings, diverged_at)
    metrics = {
        "task": settings.task,
        "attention": settings.attention,
        "seed": settings.seed,
        **measured,
        "device": device.type,
        "seconds": round(time.perf_counter() - start, 3),
    }
    result = RunResult(
        settings, metrics, pd.DataFrame(trace).astype(dict.fromkeys(ROW_NAMES, float)), model.to("cpu").eval()
    )
    if folder is not None:
        result.save(folder)
    return result


def _device(name: str) -> torch.device:
    there = torch.cuda.is_available()
    if name == "cuda" and not there:
        raise InputError("device", got="cuda", expected="a CUDA device that PyTorch finds", fix="try device=cpu")
    return torch.device("cuda" if there and name != "cpu" else "cpu")


def _train(
    model: Transformer,
    task: Task,
    training: Batch,
    evaluation: Batch,
    settings: RunSettings,
    progress: Progress | None,
) -> tuple[list[dict[str, Any]], int | None]:
    """Train in place; the trace, and the step at which the loss was not finite, if there was one."""
    total = settings.total_steps()
    recorded = _recorded_steps(total)
    optimizer = _optimizer(model, settings)
    order = _batches(len(training), settings.batch_size, stream(settings.seed, "order"))
    trace = _record(model, task, evaluation, 0)
    for step in range(1, total + 1):
        batch = training[next(order).to(training.ids.device)]
        loss = task.loss(model(batch.ids, task.rows).logits, batch.targets)
        if not math.isfinite(loss.item()):
            return trace, step
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step in recorded:
            trace += _record(model, task, evaluation, step)
        if progress is not None:
            progress(step, total)
    return trace, None


def _optimizer(model: Transformer, settings: RunSettings) -> torch.optim.Optimizer:
    if settings.optimizer == "sgd":
        return torch.optim.SGD(model.parameters(), lr=settings.lr)
    return torch.optim.AdamW(model.parameters(), lr=settings.lr, fused=True)


def _batches(count: int, size: int, generator: torch.Generator) -> Iterator[torch.Tensor]:
    """Indices of one batch after the other, each epoch in a new order, without end."""
    while True:
        yield from torch.randperm(count, generator=generator).split(size)


def _recorded_steps(total: int) -> set[int]:
    return {int(step) for step in np.geomspace(1, total, TRACE_POINTS).round()}


@torch.no_grad()
def _record(model: Transformer, task: Task, evaluation: Batch, step: int) -> list[dict[str, Any]]:
    logits, maps = model(evaluation.ids, task.rows, weights=True)
    loss = task.loss(logits, evaluation.targets).item()
    if not math.isfinite(loss):  # an accuracy of NaN logits would be a number that means nothing
        nothing = {"step": step, "loss": loss, "accuracy": math.nan}
        return [nothing | head for head in blank_heads(model.config.layers, model.config.heads, ROW_NAMES)]
    common = {"step": step, "loss": loss, "accuracy": task.accuracy(logits, evaluation.targets)}
    return [common | head for head in row_statistics(model.config.attention, maps)]


@torch.no_grad()
def _finish(
    model: Transformer, task: Task, evaluation: Batch, settings: RunSettings, diverged_at: int | None
) -> dict[str, Any]:
    """Status, accuracy, loss and heads. A loss that is not finite after the last step counts as diverged, too."""
    steps = settings.total_steps() if diverged_at is None else diverged_at
    logits = model(evaluation.ids, task.rows).logits
    loss = task.loss(logits, evaluation.targets).item()
    if diverged_at is not None or not math.isfinite(loss):
        return {
            "status": "diverged",
            "message": f"the loss was not finite at step {steps}; nothing was measured",
            "steps": steps,
            "accuracy": None,
            "loss": None,
            "heads": blank_heads(settings.layers, settings.heads, measured_names(type(task))),
        }
    return {
        "status": "ok",
        "message": "",
        "steps": steps,
        "accuracy": task.accuracy(logits, evaluation.targets),
        "loss": loss,
        "heads": measure(model, task, evaluation, settings.seed),
    }
