"""What is measured on a trained network, one record per layer and head."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from polariscope import metrics, scores
from polariscope.influence.label_mixing import mix_labels
from polariscope.nets import REGISTRY
from polariscope.nets.transformer import Transformer
from polariscope.tasks import Batch, Task, stream

Record = dict[str, Any]
Measure = Callable[[Transformer, Task, Batch, int], list[Record]]
ROW_NAMES = ("max_share", "max_weight", "row_sum", "entropy")
MIXING_NAMES = ("flip_rate", "flip_rate_low", "flip_rate_high", "flip_rate_random", "flip_rate_least")
PAIRS = 500


def row_statistics(kind: str, maps: tuple[torch.Tensor, ...]) -> list[Record]:
    """Means over sequences and answered positions of statistics of the attention rows, per layer and head.

    ``max_weight`` is max_j A_ij, ``row_sum`` Σ_j A_ij, ``max_share`` the mean of their ratio, and ``entropy`` the mean
    of −Σ_j A_ij log A_ij in nats, None for kinds whose rows are not distributions.

    Args:
        kind: the attention kind.
        maps: the weights (B, H, R, T) of each layer.
    """
    return [
        {"layer": layer, "head": head, **_one_head(kind, weights[:, head].flatten(0, 1))}
        for layer, weights in enumerate(maps)
        for head in range(weights.shape[1])
    ]


def _one_head(kind: str, rows: torch.Tensor) -> Record:
    rows = rows.double()  # (N, T)
    score_map = scores.get(REGISTRY.get(kind).scores)
    distribution = score_map.properties.sums_to_one and score_map.properties.non_negative
    return {
        "max_share": metrics.relative_max_weight(rows).mean().item(),
        "max_weight": metrics.max_weight(rows).mean().item(),
        "row_sum": rows.sum(-1).mean().item(),
        "entropy": metrics.entropy(rows, scores=score_map).mean().item() if distribution else None,
    }


@torch.no_grad()
def attention_rows(model: Transformer, task: Task, evaluation: Batch, seed: int) -> list[Record]:
    """`row_statistics` of the evaluation sequences."""
    return row_statistics(model.config.attention, model(evaluation.ids, task.rows, weights=True).weights)


def label_mixing(model: Transformer, task: Task, evaluation: Batch, seed: int) -> list[Record]:
    """Flip rates of `polariscope.influence.mix_labels`, with a 95 % interval over pairs, per layer and head."""
    records = []
    for layer in range(model.config.layers):
        for head in range(model.config.heads):
            mixed = mix_labels(
                model, evaluation.ids, evaluation.targets[:, 0], stream(seed, "mixing"), layer, head, PAIRS
            )
            low, high = mixed.interval("most")
            values = (mixed.rate("most"), low, high, mixed.rate("random"), mixed.rate("least"))
            records.append({"layer": layer, "head": head, **dict(zip(MIXING_NAMES, values, strict=True))})
    return records


MEASURES: dict[str, tuple[Measure, tuple[str, ...]]] = {
    "attention_rows": (attention_rows, ROW_NAMES),
    "label_mixing": (label_mixing, MIXING_NAMES),
}


def blank_heads(layers: int, heads: int, names: Sequence[str]) -> list[Record]:
    """One record per layer and head in which nothing was measured."""
    return [{"layer": layer, "head": head, **dict.fromkeys(names)} for layer in range(layers) for head in range(heads)]


def measured_names(task: type[Task]) -> list[str]:
    """The names of everything that is measured per head on a task."""
    return [name for measure in task.measures for name in MEASURES[measure][1]]


def measure(model: Transformer, task: Task, evaluation: Batch, seed: int) -> list[Record]:
    """All of the task's measures, joined per layer and head."""
    heads: list[Record] = []
    for name in task.measures:
        records = MEASURES[name][0](model, task, evaluation, seed)
        heads = [old | new for old, new in zip(heads, records, strict=True)] if heads else records
    return heads
