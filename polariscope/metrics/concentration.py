"""How much of an attention row sits on one key, for any score map: largest weight, shares, participation."""

from polariscope.errors import InputError
from polariscope.metrics._rows import row_mass, weights
from polariscope.scores._base import Array


def shares(s: Array) -> Array:
    """The shares |sⱼ| / Σₖ|sₖ| of each row: non-negative, summing to one, NaN for a row without weight.

    Args:
        s: attention weights (…, n) of any score map, signed ones included.

    Returns:
        (…, n).

    Source: the proxy of Gu et al. (2024), When Attention Sink Emerges in Language Models, arXiv:2410.10781, for scores
    that are not distributions. Deviation: their code adds 1e-8 to the sum.
    """
    xp = weights(s)
    return xp.abs(s) / row_mass(xp, s, keepdims=True)


def max_weight(s: Array) -> Array:
    """The largest weight maxⱼ sⱼ of each row, raw: for an unnormalized map it is not a share.

    Args:
        s: attention weights (…, n).

    Returns:
        (…,). In [1/n, 1] for distributions.

    Source: the sparsity score of Varre, Rofin, Flammarion (2026), arXiv:2603.06248, is its mean over queries.
    """
    return weights(s).max(s, axis=-1)


def relative_max_weight(s: Array) -> Array:
    """The largest share maxⱼ |sⱼ| / Σₖ|sₖ| of each row, in [1/n, 1]; for distributions the same as `max_weight`.

    Args:
        s: attention weights (…, n).

    Returns:
        (…,). NaN for a row without weight.
    """
    xp = weights(s)
    return xp.max(xp.abs(s), axis=-1) / row_mass(xp, s)


def first_key_share(s: Array, key: int = 0) -> Array:
    """The share |s_key| / Σₖ|sₖ| of the first key (or another one) in each row, in [0, 1].

    Args:
        s: attention weights (…, n).
        key: which key, 0-based; with left padding, the first one that is no padding.

    Returns:
        (…,). NaN for a row without weight.

    Raises:
        InputError: for a key that is not there.

    Source: Varre, Rofin, Flammarion (2026), arXiv:2603.06248. Deviation: their code divides by Σ + 1e-9, so a row
    without weight counts as 0 there.
    """
    xp = weights(s)
    n = s.shape[-1]
    if not 0 <= key < n:
        raise InputError("key", got=key, expected=f"an index from 0 to {n - 1}", fix="count keys from 0")
    return xp.abs(s[..., key]) / row_mass(xp, s)


def participation(s: Array) -> Array:
    """The participation ratio 1 / Σⱼ pⱼ² of the shares p = |s| / Σ|s|: how many keys take part, in [1, n].

    Args:
        s: attention weights (…, n).

    Returns:
        (…,). NaN for a row without weight.
    """
    xp = weights(s)
    p = shares(s)
    return 1.0 / xp.sum(p * p, axis=-1)
