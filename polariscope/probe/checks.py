"""What must hold before a number is believed: same logits, no look into the future, every layer's attention seen."""

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from polariscope.errors import InputError
from polariscope.probe import hooks
from polariscope.probe.attention import Engine
from polariscope.probe.body import Body, Layer, kind_of
from polariscope.probe.layout import Layout
from polariscope.probe.sites import Discovery, Site, unmeasured
from polariscope.probe.statistics import Place

# Largest difference allowed, relative to the largest logit (or 1). Float32 orders of summation differ by about 1e-5.
TOLERANCES = {torch.float64: 1e-6, torch.float32: 1e-3, torch.bfloat16: 0.1, torch.float16: 0.02}
# Logits are compared at this many positions at most: all of them would need T × vocabulary numbers.
POSITIONS = 64

Sample = list[int] | Tensor


@dataclass(frozen=True)
class Examination:
    """What the self-checks found.

    Args:
        way: how the model is measured, one of `polariscope.probe.hooks.WAYS`.
        sites: its attention calls, in order.
        silent: layers in which nothing attends.
        record: for the result file.
    """

    way: str
    sites: tuple[Site, ...]
    silent: tuple[Layer, ...]
    record: dict[str, Any]


def examine(body: Body, sample: Sample, engine: Engine) -> Examination:
    """Find out how a model can be measured, and check it on one document.

    - ``logits``: the largest difference from the model's own attention, at up to 64 positions, the last included.
    - ``causality``: with another token in the middle, the largest difference at the positions before it; for decoders.
    - ``layers``: every layer attends, or has nothing that could.

    The interface is tried first. Where it fails, the model makes its maps itself, one layer at a time; the record says
    that and why.

    Raises:
        InputError: if no way passes, with what was tried.
    """
    stock = _logits(body, sample)
    ways = hooks.WAYS if hooks.can_be_switched(body.model) else hooks.WAYS[1:]
    tried: dict[str, str] = {}
    for way in ways:
        try:
            found = _examine(body, sample, stock, engine, way)
        except InputError as problem:
            tried[way] = str(problem)
        # Whatever a model's own code raises on an unusual path: it counts as tried, and is told.
        except Exception as problem:
            tried[way] = f"{type(problem).__name__}: {' '.join(str(problem).split())[:300]}"
        else:
            return Examination(found.way, found.sites, found.silent, {**found.record, "tried_before": tried})
    raise _unsupported(body, tried)


def _unsupported(body: Body, tried: dict[str, str]) -> InputError:
    attends = any("attention" in type(part).__name__.lower() for part in body.network.modules())
    if not attends and all("no attention call" in reason for reason in tried.values()):
        return InputError(
            "model without attention",
            got=kind_of(body.model),
            expected="a transformer with softmax attention in at least one layer",
            fix="state-space and linear-attention models have no attention map to measure",
        )
    return InputError(
        "model that cannot be measured",
        got=kind_of(body.model),
        expected="attention through AttentionInterface, or maps from output_attentions=True",
        fix="what was tried: " + "; ".join(f"{way}: {reason}" for way, reason in tried.items()),
    )


def _examine(body: Body, sample: Sample, stock: Tensor, engine: Engine, way: str) -> Examination:
    found = Discovery(body)
    options, length = forward_options(way), _length(body, sample)

    def inside(listener: Callable[..., None]) -> AbstractContextManager[hooks.Measuring]:
        return hooks.measuring(body, listener, way=way, engine=engine)

    with inside(found.on_attention) as now:
        now.map_length = length
        measured = _logits(body, sample, **options)
    if not found.sites:
        raise InputError("self-check layers", got="no attention call", expected="attention", fix="load another model")
    silent = unmeasured(body, tuple(found.sites))
    record = {
        "way": way,
        "layers": {
            "layers": len(body.layers),
            "calls": len(found.sites),
            "without_attention": [layer.index for layer in silent],
            "passed": True,
        },
        "logits": _agreement("logits", measured, stock, "the logits of the model's own attention"),
        "causality": None,
    }
    if body.kind in ("decoder", "encoder-decoder") and isinstance(sample, list):
        with inside(lambda *_: None) as now:
            now.map_length = length
            record["causality"] = _causality(body, sample, measured, options)
    return Examination(way, tuple(found.sites), tuple(silent), record)


def keeps_documents_apart(body: Body, ids: list[int]) -> bool:
    """Whether a document behind another in one row gives the hidden states that it gives alone.

    Masks alone do not tell: convolutions and recurrent states read over the border between documents as well.

    Args:
        body: a decoder or encoder.
        ids: the document.
    """
    count, document = len(ids), torch.tensor([ids])
    both = Layout.of((Place(0, 0, count), Place(0, count, 2 * count)), (1, 2 * count))
    try:
        inputs = both.inputs(torch.cat([document.flip(-1), document], dim=-1), body.network)
    except InputError:  # a model that takes no positions
        return False
    alone = body.run(Layout.of((Place(0, 0, count),), (1, count)).inputs(document, body.network))
    behind = body.run(inputs)[:, count:]
    scale = max(1.0, float(alone.abs().max()))
    return float((behind.double() - alone.double()).abs().max()) <= TOLERANCES.get(alone.dtype, 0.1) * scale


def forward_options(way: str) -> dict[str, bool]:
    """What a forward must be asked for."""
    return {"output_attentions": True} if way == "maps" else {}


def _causality(body: Body, ids: list[int], measured: Tensor, options: dict[str, bool]) -> dict[str, Any]:
    """Another token in the middle of what the decoder reads; its encoder's input stays."""
    middle = len(ids) // 2
    name = "decoder_input_ids" if body.kind == "encoder-decoder" else "input_ids"
    inputs = body.inputs(ids)
    inputs[name] = inputs[name].clone()
    rows = getattr(body.model.get_input_embeddings(), "num_embeddings", 2)
    inputs[name][0, middle] = (inputs[name][0, middle] + 1) % rows
    changed = _logits(body, ids, **inputs, **options)
    before = _positions(len(ids), measured.device) < middle
    return _agreement("causality", changed[before], measured[before], "logits before a changed token")


def _length(body: Body, sample: Sample) -> int:
    return len(sample) if isinstance(sample, list) else positions_of(body, sample)


def positions_of(body: Body, pixels: Tensor) -> int:
    """Number of positions of an image: patches, class and register tokens."""
    return body(pixels).shape[1]


def _agreement(name: str, got: Tensor, wanted: Tensor, what: str) -> dict[str, Any]:
    scale = max(1.0, float(wanted.abs().max()))
    tolerance = TOLERANCES.get(got.dtype, 0.1) * scale
    difference = float((got.double() - wanted.double()).abs().max()) if got.numel() else 0.0
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


def _logits(body: Body, sample: Sample, **options: Any) -> Tensor:
    hidden = body(sample, **options)[0]
    return body.head(hidden[_positions(len(hidden), hidden.device)])


def _positions(length: int, device: torch.device) -> Tensor:
    """Up to 64 positions, evenly spread, the first and the last included."""
    return torch.linspace(0, length - 1, min(length, POSITIONS), device=device).round().long()
