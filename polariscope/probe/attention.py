"""One call of an attention function, and what is kept of its map: what every engine takes and gives."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from polariscope.errors import InputError
from polariscope.scores import ScoreMap

# Weights are counted above these thresholds (Varre, Rofin, Flammarion 2026, arXiv:2603.06248, report both).
THRESHOLDS = (0.001, 0.1)


@dataclass(frozen=True)
class Call:
    """What a model hands to its attention: A = σ(a), a = scaling · q kᵀ, output A v.

    Args:
        query: q, (B, H, T, d).
        key: k, (B, K, S, d) with K dividing H; query head h uses key head h // (H/K).
        value: v, (B, K, S, dᵥ).
        scaling: factor of the logits, usually 1/√d.
        visible: boolean, (B or 1, H or 1, T, S), True where query i sees key j; None: as ``causal`` says.
        causal: without ``visible``: j ≤ i + S − T, or every key for every query.
        softcap: c; logits become c·tanh(a/c) before bias and mask.
        bias: added to the logits, (B or 1, H or 1, T or 1, S).
        sink: logit of a slot without a key, (H,); it takes its share of the softmax and gives nothing.
        scores: σ, where it is not softmax.
        first: index of the first key of each query's document, (B, T); None: 0.

    Raises:
        InputError: if the mask is not boolean, or a learned sink goes with another map than softmax.
    """

    query: Tensor
    key: Tensor
    value: Tensor
    scaling: float
    visible: Tensor | None = None
    causal: bool = True
    softcap: float | None = None
    bias: Tensor | None = None
    sink: Tensor | None = None
    scores: ScoreMap | None = None
    first: Tensor | None = None

    def __post_init__(self) -> None:
        if self.visible is not None and self.visible.dtype != torch.bool:
            raise InputError(
                "attention mask",
                got=f"dtype {self.visible.dtype}",
                expected="a boolean mask",
                fix="pass mask > its minimum / 2",
            )
        if self.sink is not None and self.scores is not None:
            raise InputError(
                "learned sink", got=f"one beside {self.scores.name}", expected="softmax", fix="leave one of them out"
            )

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """B, H, T, S."""
        batch, heads, length, _ = self.query.shape
        return batch, heads, length, self.key.shape[2]

    @property
    def wide(self) -> torch.dtype:
        """What is computed in: float32, or float64 for float64 inputs."""
        return torch.promote_types(torch.float32, self.query.dtype)

    def counts(self) -> tuple[Tensor, Tensor]:
        """How many keys each query sees, (B or 1, H or 1, T), and how many queries see each key, (…, S)."""
        _, _, length, keys = self.shape
        if self.visible is not None:
            return self.visible.sum(-1), self.visible.sum(-2)
        device = self.query.device
        if not self.causal:
            return torch.full((1, 1, length), keys, device=device), torch.full((1, 1, keys), length, device=device)
        sees = torch.arange(keys - length + 1, keys + 1, device=device)
        seen = (keys - torch.arange(keys, device=device)).clamp(max=length)
        return sees[None, None], seen[None, None]


@dataclass
class MapStatistics:
    """What is kept of an attention map A, (B, H, T, S). For signed maps |A| stands for A.

    Args:
        total: Σⱼ A[i, j], (B, H, T); 1 for softmax, less where a learned sink takes a share.
        largest: maxⱼ A[i, j], (B, H, T).
        first: A[i, first key], (B, H, T).
        entropy: entropy in nats of the row divided by its sum, (B, H, T); NaN for a map whose rows do not sum to one.
        squares: Σⱼ A[i, j]², (B, H, T).
        lse: log Σⱼ exp aᵢⱼ over the visible keys, without a learned sink, (B, H, T); −∞ where none is visible.
        max_logit: maxⱼ aᵢⱼ over the visible keys, after soft-cap and bias, (B, H, T).
        above: number of keys with A[i, j] above each threshold, (thresholds, B, H, T).
        output_norms: ‖(A v)ᵢ‖₂, (B, H, T).
        columns: Σᵢ A[i, j], (B, H, S), float64.
        key_norms: ‖kⱼ‖₂, (B, K, S).
        value_norms: ‖vⱼ‖₂, (B, K, S).
        row_counts: number of keys that query i sees, (B or 1, H or 1, T).
        column_counts: number of queries that see key j, (B or 1, H or 1, S).
        engine: what made them: "blocks", "fused" or "map".
    """

    total: Tensor
    largest: Tensor
    first: Tensor
    entropy: Tensor
    squares: Tensor
    lse: Tensor
    max_logit: Tensor
    above: Tensor
    output_norms: Tensor
    columns: Tensor
    key_norms: Tensor
    value_norms: Tensor
    row_counts: Tensor
    column_counts: Tensor
    engine: str


Engine = Callable[[Call], tuple[Tensor, MapStatistics]]
"""From a call to its output, (B, T, H, dᵥ) in the dtype of the values, and the statistics of its map."""

ROW_STATISTICS = ("total", "largest", "first", "entropy", "squares", "lse", "max_logit", "output_norms")


def norms(x: Tensor, wide: torch.dtype) -> Tensor:
    """Euclidean norms over the last axis, computed in ``wide``."""
    return torch.linalg.vector_norm(x, dim=-1, dtype=wide)
