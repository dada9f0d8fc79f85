"""Label mixing: put one token of a sequence among the rest of a sequence with another label; whose label wins?"""

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import torch
from torch import Tensor

from polariscope.errors import InputError, unknown_name
from polariscope.nets.transformer import Transformer

PICKS = ("most", "random", "least")


@dataclass(frozen=True)
class LabelMixing:
    """Outcomes of label mixing.

    Args:
        pairs: indices (A, B) of the mixed sequences, (P, 2).
        outcomes: pick → whether the mixture was given the label of its single token, (P, 2): in column 0 the
            token comes from A and the rest from B, in column 1 the other way round. The picks are "most" (the most
            attended token, the published measure), and as controls "random" (any token) and "least" (the least
            attended).
    """

    pairs: np.ndarray
    outcomes: dict[str, np.ndarray]

    def rate(self, pick: str = "most") -> float:
        """Flip rate: the share of mixtures given the single token's label, over pairs and both roles."""
        return float(self._of(pick).mean())

    def interval(self, pick: str = "most", confidence: float = 0.95) -> tuple[float, float]:
        """Wilson's interval of the flip rate with the pairs as the independent trials.

        With p the rate, P the number of pairs and z the normal quantile,
        (p + z²/2P ± z √(p(1 − p)/P + z²/4P²)) / (1 + z²/P). The two roles of a pair share their sequences and count
        as one trial; that is on the wide side. A bootstrap would give [1, 1] for a rate of 1.
        """
        p, count = self.rate(pick), len(self.pairs)
        z = NormalDist().inv_cdf((1 + confidence) / 2)
        centre = p + z * z / (2 * count)
        half = z * (p * (1 - p) / count + (z / (2 * count)) ** 2) ** 0.5
        low, high = ((centre + sign * half) / (1 + z * z / count) for sign in (-1, 1))
        return (0.0 if p == 0 else low), (1.0 if p == 1 else high)  # exact there, up to rounding

    def _of(self, pick: str) -> np.ndarray:
        if pick not in self.outcomes:
            raise unknown_name("pick", pick, self.outcomes)
        return self.outcomes[pick]


@torch.no_grad()
def mix_labels(
    model: Transformer,
    ids: Tensor,
    labels: Tensor,
    generator: torch.Generator,
    layer: int = -1,
    head: int = 0,
    pairs: int = 500,
) -> LabelMixing:
    """Mix pairs of sequences of different labels and see whose label is predicted.

    Two different labels are drawn uniformly, then a sequence A and a sequence B of them. In B, the token that CLS
    attends to most is replaced by one token of A; the tokens are shuffled, CLS stays last. The same is done with A and
    B exchanged. The controls use the same pairs, places and shuffles; only the token taken from A differs.

    Args:
        model: predicts a label at the last position.
        ids: sequences (N, T), CLS last.
        labels: their labels (N,).
        generator: draws pairs, random tokens and shuffles; on the CPU.
        layer: whose attention ranks the tokens; negative counts from the end.
        head: likewise.
        pairs: number of pairs P.

    Returns:
        A `LabelMixing`.

    Raises:
        InputError: for fewer than two labels, sequences without content, or a layer or head that is not there.

    Source: Varre, Rofin, Flammarion (2026), arXiv:2603.06248, Section 4.2 ("top-1 dominance"). The controls are ours.
    """
    _check(model, ids, labels, layer, head, pairs)
    last = slice(-1, None)
    chosen = _draw_pairs(labels.cpu(), pairs, generator).to(ids.device)  # (P, 2)
    content, target = ids[chosen][..., :-1], labels[chosen]  # (P, 2, T−1), (P, 2)
    row = model(ids, last, weights=True).weights[layer][:, head, -1, :-1]  # (N, T−1): CLS on the content
    most, least = row.argmax(-1)[chosen], row.argmin(-1)[chosen]  # (P, 2)
    width = content.shape[-1]
    random = torch.randint(width, (pairs, 2), generator=generator).to(ids.device)
    shuffle = torch.rand(pairs, 2, width, generator=generator).argsort(dim=-1, stable=True).to(ids.device)
    # Column 0 keeps A's token in the rest of B: hence the flip of roles.
    rest, place, cls = content.flip(1), most.flip(1)[..., None], ids[chosen][..., -1:]
    outcomes = {}
    for pick, index in zip(PICKS, (most, random, least), strict=True):
        token = content.gather(-1, index[..., None])
        mixed = torch.cat([rest.scatter(-1, place, token).gather(-1, shuffle), cls], -1)  # (P, 2, T)
        predicted = model(mixed.flatten(0, 1), last).logits[:, -1].argmax(-1).view(pairs, 2)
        outcomes[pick] = (predicted == target).cpu().numpy()
    return LabelMixing(chosen.cpu().numpy(), outcomes)


def _draw_pairs(labels: Tensor, pairs: int, generator: torch.Generator) -> Tensor:
    """Indices (P, 2) of sequences with different labels: labels first, uniformly, then a sequence of each."""
    values, inverse, counts = labels.unique(return_inverse=True, return_counts=True)
    first = torch.randint(len(values), (pairs,), generator=generator)
    step = torch.randint(1, len(values), (pairs,), generator=generator)
    which = torch.stack([first, (first + step) % len(values)], -1)  # (P, 2)
    sizes, starts = counts[which], (counts.cumsum(0) - counts)[which]
    within = (torch.rand(pairs, 2, generator=generator, dtype=torch.float64) * sizes).long()
    return inverse.argsort(stable=True)[starts + within]


def _check(model: Transformer, ids: Tensor, labels: Tensor, layer: int, head: int, pairs: int) -> None:
    if ids.ndim != 2 or ids.shape[1] < 2 or labels.shape != ids.shape[:1]:
        got = f"ids {tuple(ids.shape)}, labels {tuple(labels.shape)}"
        raise InputError("sequences to mix", got=got, expected="(N, T) with T ≥ 2, and (N,)", fix="check the shapes")
    if len(labels.unique()) < 2:
        raise InputError("labels to mix", got="fewer than two", expected="at least two", fix="draw more sequences")
    if pairs < 1:
        raise InputError("pairs", got=pairs, expected="at least 1", fix="try pairs=500")
    for name, index, count in (("layer", layer, model.config.layers), ("head", head, model.config.heads)):
        if not -count <= index < count:
            raise InputError(name, got=index, expected=f"{-count} to {count - 1}", fix=f"the network has {count}")
