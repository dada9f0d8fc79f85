"""Similarities: how alike a query and a key are, before any score map."""

from torch import Tensor


def scaled_dot(q: Tensor, k: Tensor) -> Tensor:
    """a_ij = ⟨q_i, k_j⟩/√d for q (…, Tq, d) and k (…, Tk, d).

    Source: Vaswani et al. (2017), arXiv:1706.03762.
    """
    return (q * q.shape[-1] ** -0.5) @ k.mT  # (…, Tq, Tk)
