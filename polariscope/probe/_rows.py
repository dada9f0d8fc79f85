"""The rows of a block of logits: their weights, up to one factor a row, and what is read off them."""

from dataclasses import dataclass

import torch
from torch import Tensor

from polariscope.scores import ScoreMap

# Hidden logits: exp gives exactly 0, and 0 times it is 0, which 0 times minus infinity is not.
HIDDEN = -1e30


@dataclass
class Rows:
    """A = factor · weights, (g, G, r, s), and what is read off it, (g, G, r).

    Args:
        weights: what the values are multiplied with.
        sizes: |weights|; the same tensor where no weight is negative.
        factor: of each row.
        total, largest, first, entropy, squares, lse: as in `polariscope.probe.attention.MapStatistics`.
    """

    weights: Tensor
    sizes: Tensor
    factor: Tensor
    total: Tensor
    largest: Tensor
    first: Tensor
    entropy: Tensor
    squares: Tensor
    lse: Tensor

    @classmethod
    def of_softmax(
        cls, logits: Tensor, top: Tensor, sink: Tensor | None, first: Tensor | int | None, room: Tensor
    ) -> "Rows":
        """Softmax p of logits whose row maximum is ``top``; ``logits`` becomes x = a − top; ``room`` holds p.

        With Z = Σ exp x = 1 / max p: H = log Z − Σ p x. Nothing large is subtracted, whatever the size of the logits.
        A learned sink enters through Z / (Z + exp(sink − top)) alone, which cannot overflow.
        """
        x = logits.sub_(top[..., None])
        weights = torch.softmax(x, dim=-1, out=room)
        largest = weights.amax(-1)
        log_mass = -largest.log()
        share = torch.ones_like(largest) if sink is None else torch.sigmoid(top + log_mass - sink.to(x.dtype))
        factor = share + 0 * largest  # NaN where the row is
        return cls(
            weights=weights,
            sizes=weights,
            factor=factor,
            total=factor.clone(),
            largest=largest * factor,
            first=_at(weights, first) * factor,
            entropy=log_mass - torch.linalg.vecdot(weights, x),
            squares=torch.linalg.vecdot(weights, weights) * factor.square(),
            lse=top + log_mass,
        )

    @classmethod
    def of_map(cls, scores: ScoreMap, logits: Tensor, first: Tensor | int | None) -> "Rows":
        """Another map than softmax. Only rows that sum to one have an entropy."""
        weights = scores(logits, where=logits > HIDDEN / 2)
        sizes = weights if scores.properties.non_negative else weights.abs()
        total = sizes.sum(-1)
        one = scores.properties.sums_to_one and scores.properties.non_negative
        return cls(
            weights=weights,
            sizes=sizes,
            factor=torch.ones_like(total),
            total=total,
            largest=sizes.amax(-1),
            first=_at(sizes, first),
            entropy=torch.special.entr(sizes).sum(-1) if one else torch.full_like(total, torch.nan),
            squares=sizes.square().sum(-1),
            lse=logits.logsumexp(-1),
        )

    def hide(self, empty: Tensor) -> None:
        """Rows without a visible key: nothing in them, and no entropy."""
        for row in (self.factor, self.total, self.largest, self.first, self.squares):
            row.masked_fill_(empty, 0)
        self.entropy.masked_fill_(empty, torch.nan)


def _at(weights: Tensor, first: Tensor | int | None) -> Tensor:
    """The weights of the first key; 0 where it is outside of the block's keys."""
    if first is None:
        return torch.zeros_like(weights[..., 0])
    if isinstance(first, int):
        return weights[..., first]
    inside = (first >= 0) & (first < weights.shape[-1])
    index = first.clamp(0, weights.shape[-1] - 1).expand(*weights.shape[:-1], 1)
    return weights.gather(-1, index)[..., 0].where(inside[..., 0], 0)
