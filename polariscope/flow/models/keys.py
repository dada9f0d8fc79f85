r"""A step towards an attention head: the logits a = Kq are products of keys K (n, k) with a query q (k,).

With the payoff p = -Jᵀ Vᵀ∇ℓ that the value model gives its logits (ȧ = p),

    K̇ = p qᵀ,    q̇ = Kᵀ p,    so    ȧ = ‖q‖² p     (keys trained),
                                   ȧ = K Kᵀ p     (query trained),
                                   ȧ = (‖q‖² I + K Kᵀ) p   (both; KᵀK - q qᵀ is conserved).

With the keys trained alone it is the value model with logits that learn ‖q‖² times as fast; with the query trained the
logits cannot leave the range of K, and a common shift of them is not conserved unless 1 is orthogonal to it.
"""

from polariscope.flow.models._model import Model, Parameters


def logits(parameters: Parameters) -> object:
    """The logits are K q."""
    return parameters["K"] @ parameters["q"]


_NEEDS = {"K": "nk", "q": "k"}
KEYS = Model("keys", logits, _NEEDS, ("K",), logits, own=True)
QUERY = Model("query", logits, _NEEDS, ("q",), logits)
BOTH = Model("keys-query", logits, _NEEDS, ("K", "q"), logits)
