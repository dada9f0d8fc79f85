"""The paper's claims as experiments: one file per claim, a rule fixed beforehand, a verdict from the result files."""

from polariscope.claims._base import SCALES, Claim, Context, Outcome, Verdict
from polariscope.registry import Registry

REGISTRY = Registry(
    "claim",
    {
        "C1": ("polariscope.claims.replicator:CLAIM", "softmax gradient flow is replicator-like"),
        "C2": ("polariscope.claims.order:CLAIM", "order is kept and gaps grow (Theorem 3.2)"),
        "C3": ("polariscope.claims.one_hot:CLAIM", "logistic loss drives the weights to one-hot (Theorem 3.3)"),
        "C11": ("polariscope.claims.pretrained:CLAIM", "softmax language models have sinks (softmax half)"),
        "C12": ("polariscope.claims.one_token:CLAIM", "classification hangs on one token"),
    },
)

__all__ = ["REGISTRY", "SCALES", "Claim", "Context", "Outcome", "Verdict", "get"]


def get(claim_id: str) -> Claim:
    """The claim with this id. Raises InputError with the nearest ids if there is none."""
    return REGISTRY.get(claim_id)
