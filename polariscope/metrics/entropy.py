"""How spread an attention row is: entropy, entropy relative to its ceiling, effective support."""

import math

from polariscope.metrics._rows import Scores, distributions, row_mass, weights
from polariscope.scores._base import Array, mask


def entropy(s: Array, scores: Scores = None) -> Array:
    """The Shannon entropy H = −Σⱼ sⱼ log sⱼ of each row, in nats, exact at sⱼ = 0.

    Args:
        s: attention weights (…, n); hidden keys have weight 0.
        scores: the score map that made them, or its name, which must declare ``sums_to_one`` and ``non_negative``.
            None: every row is checked as numbers.

    Returns:
        H (…,), in [0, log n]. NaN for rows with NaN and for rows without any weight.

    Raises:
        InputError: for rows that are not distributions: they have no entropy, only a number that looks like one.

    Deviation: no ε inside the logarithm. Zhai et al. (2023), Stabilizing Transformer Training by Preventing Attention
    Entropy Collapse, whose code adds 1e-6, get a value that is lower by about 1e-6 times the number of keys.
    """
    xp = distributions(s, scores)
    logs = xp.log(xp.where(s == 0, 1.0, s))
    h = xp.sum(-s * logs, axis=-1)
    return h + 0.0 * row_mass(xp, s)


def normalized_entropy(s: Array, scores: Scores = None, where: Array | None = None) -> Array:
    """The entropy of each row over its ceiling, H / log nᵢ, nᵢ the number of keys the row can see.

    Args:
        s: attention weights (…, n).
        scores: as for `entropy`.
        where: visible keys, boolean, broadcastable to s; None: all n. For a causal map give the lower triangle.

    Returns:
        Values in [0, 1], (…,). NaN where nᵢ ≤ 1 (0/0: the first row of a causal map), and where the entropy is NaN.

    Raises:
        InputError: as `entropy`, and for a mask that is not boolean or does not fit.
    """
    h = entropy(s, scores)
    xp = weights(s)
    visible = xp.ones_like(s) > 0 if where is None else xp.broadcast_to(mask(xp, s, where), s.shape)
    n = xp.sum(xp.astype(visible, s.dtype), axis=-1)
    return xp.where(n > 1, h / xp.log(xp.where(n > 1, n, 2.0)), math.nan)


def effective_support(s: Array, scores: Scores = None) -> Array:
    """The number of keys a uniform row of the same entropy would have, exp H, in [1, n].

    Args, raises: as `entropy`. NaN where the entropy is NaN.
    """
    h = entropy(s, scores)
    return weights(s).exp(h)
