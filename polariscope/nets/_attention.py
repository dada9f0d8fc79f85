"""Attention of any registered kind, as a function of tensors and as a module."""

import numpy as np
from torch import Tensor, nn

from polariscope import scores
from polariscope.errors import InputError
from polariscope.nets import REGISTRY, SIMILARITIES


class Attention(nn.Module):
    """o_i = Σ_j A_ij v_j with A_i = σ(a_i) over the visible keys and a_ij = similarity(q_i, k_j).

    The mask acts inside the score map: an invisible key gets weight 0 and no gradient, and a query that sees no key
    gets the output 0.

    Args:
        kind: a name in `polariscope.nets.REGISTRY`.

    Raises:
        InputError: for an unknown kind.
    """

    def __init__(self, kind: str) -> None:
        super().__init__()
        similarity, score_map = REGISTRY.get(kind)
        self.kind = kind
        self.similarity = SIMILARITIES.get(similarity)
        self.scores = scores.get(score_map)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Output (…, Tq, e) and weights A (…, Tq, Tk) of q (…, Tq, d), k (…, Tk, d), v (…, Tk, e)."""
        _check_shapes(q, k, v)
        a = self.similarity(q, k)
        weights = self.scores(a, where=mask)
        return weights @ v, weights

    def extra_repr(self) -> str:
        """The kind, in the module's printed form."""
        return repr(self.kind)


def attention(kind: str, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Attention of a registered kind: output and weights.

    Args:
        kind: a name in `polariscope.nets.REGISTRY`.
        q: queries (…, Tq, d).
        k: keys (…, Tk, d).
        v: values (…, Tk, e).
        mask: booleans that broadcast to (…, Tq, Tk), True where a query sees a key; None means everywhere.

    Returns:
        The output (…, Tq, e) and the weights A (…, Tq, Tk).

    Raises:
        InputError: for an unknown kind, shapes that do not fit, or a mask that is not boolean.
    """
    return Attention(kind)(q, k, v, mask)


def _check_shapes(q: Tensor, k: Tensor, v: Tensor) -> None:
    shapes = tuple(q.shape), tuple(k.shape), tuple(v.shape)
    fits = min(map(len, shapes)) >= 2 and q.shape[-1] == k.shape[-1] > 0 and k.shape[-2] == v.shape[-2]
    try:
        np.broadcast_shapes(*(shape[:-2] for shape in shapes))
    except ValueError:
        fits = False
    if not fits:
        raise InputError(
            "shapes of queries, keys and values",
            got=", ".join(map(str, shapes)),
            expected="(…, Tq, d), (…, Tk, d), (…, Tk, e) with the same leading axes",
            fix="put the heads before the positions",
        )
