"""Masks: which key a query may see. True means visible; the score map does the hiding."""

import torch
from torch import Tensor


def causal(length: int, device: torch.device | str | None = None) -> Tensor:
    """Position i sees positions 0 … i: a boolean (length, length)."""
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()
