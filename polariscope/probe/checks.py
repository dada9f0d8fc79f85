"""What must hold before a number is believed: same logits, no look into the future, every layer seen once."""

import math
from collections import Counter
from typing import Any

import torch
from torch import Tensor

from polariscope.errors import InputError
from polariscope.probe import hooks
from polariscope.probe.blocks import MapStatistics
from polariscope.probe.body import Body

# Largest difference allowed, relative to the largest logit (or 1). Float32 orders of summation differ by about 1e-5.
TOLERANCES = {torch.float64: 1e-6, torch.float32: 1e-3, torch.bfloat16: 0.1, torch.float16: 0.02}
# Logits are compared at this many positions at most: all of them would need T × vocabulary numbers.
POSITIONS = 64


def check(body: Body, ids: list[int], rows: int | None = None) -> dict[str, Any]:
    """Run the three self-checks on one document and return what they found.

    - ``logits``: the largest difference from the model's own attention, at up to 64 positions, the last included.
    - ``causality``: with another token in the middle, the largest difference at the positions before it.
    - ``layers``: each layer's attention is called exactly once in a forward.

    Raises:
        InputError: if one fails, naming it and by how much.
    """
    middle = len(ids) // 2
    other = [*ids[:middle], _another(ids[middle], body), *ids[middle + 1 :]]
    calls: Counter[int] = Counter()

    def count(layer: int, statistics: MapStatistics) -> None:
        calls[layer] += 1

    stock = _logits(body, ids)
    with hooks.measuring(body, count, rows=rows):
        measured = _logits(body, ids)
        layers = _layers(calls, len(body.layers))
        changed = _logits(body, other)
    before = _positions(len(ids), measured.device) < middle
    return {
        "layers": layers,
        "logits": _agreement("logits", measured, stock, "the logits of the model's own attention"),
        "causality": _agreement("causality", changed[before], measured[before], "logits before a changed token"),
    }


def _layers(calls: Counter[int], count: int) -> dict[str, Any]:
    wrong = {layer: calls[layer] for layer in range(count) if calls[layer] != 1}
    if wrong:
        some = ", ".join(f"layer {layer}: {n}" for layer, n in list(wrong.items())[:4])
        raise InputError(
            "self-check layers",
            got=f"{len(wrong)} of {count} layers whose attention was not called exactly once ({some})",
            expected="one softmax attention in every layer",
            fix="this model has layers without attention or with several, which cannot be measured yet",
        )
    return {"layers": count, "calls": sum(calls.values()), "passed": True}


def _agreement(name: str, got: Tensor, wanted: Tensor, what: str) -> dict[str, Any]:
    scale = max(1.0, float(wanted.abs().max()))
    tolerance = TOLERANCES.get(got.dtype, 0.1) * scale
    difference = float((got.double() - wanted.double()).abs().max())
    if not difference <= tolerance:  # NaN fails
        raise InputError(
            f"self-check {name}",
            got=f"a largest difference of {difference:.3g} from {what}",
            expected=f"at most {tolerance:.3g}",
            fix=_advice(difference, got.dtype),
        )
    return {"max_abs_difference": difference, "tolerance": tolerance, "passed": True}


def _advice(difference: float, dtype: torch.dtype) -> str:
    if math.isnan(difference):
        return "the model gives numbers that are not finite: check its weights and dtype"
    if dtype in (torch.float16, torch.bfloat16):
        return "try --dtype float32: with half precision rounding alone can turn an expert's choice"
    return "this model cannot be measured: its numbers would be wrong"


def _logits(body: Body, ids: list[int]) -> Tensor:
    hidden = body(ids)[0]
    return body.head(hidden[_positions(len(ids), hidden.device)])


def _positions(length: int, device: torch.device) -> Tensor:
    """Up to 64 positions, evenly spread, the first and the last included."""
    return torch.linspace(0, length - 1, min(length, POSITIONS), device=device).round().long()


def _another(token: int, body: Body) -> int:
    return (token + 1) % body.model.config.get_text_config(decoder=True).vocab_size
