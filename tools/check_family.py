"""Whether the probe measures one type of transformers exactly: its statistics against the model's own eager maps."""

import copy
import random
from dataclasses import dataclass
from typing import Any

import torch
from tiny_configs import FIRST_FREE_ID, VOCABULARY, tiny_config
from torch import Tensor
from transformers import MODEL_FOR_CAUSAL_LM_MAPPING, PreTrainedModel

from polariscope.errors import InputError
from polariscope.probe import blocks, hooks
from polariscope.probe.attention import MapStatistics
from polariscope.probe.body import evaluating
from polariscope.probe.documents import Tokens
from polariscope.probe.maps import statistics_of
from polariscope.probe.session import Session, prepare

LENGTH, LARGEST_MODEL = 24, 10_000_000
TOLERANCE = 1e-4
COMPARED = ("total", "largest", "first", "entropy", "squares", "columns")


@dataclass(frozen=True)
class Verdict:
    """What was found about one type.

    Args:
        type: of the configuration.
        model: the class.
        verdict: "exact", "fallback", "not applicable" or "failing".
        way: how it was measured.
        engine: what made the statistics.
        deviation: largest difference of a statistic from that of the model's own eager maps.
        note: what a reader should know; the reason of a failure.
    """

    type: str
    model: str = ""
    verdict: str = "failing"
    way: str = ""
    engine: str = ""
    deviation: float | None = None
    note: str = ""


def check_family(model_type: str) -> Verdict:
    """Build a tiny random model of the type, probe it, compare."""
    found = {"type": model_type}
    try:
        model = build(model_type)
        found["model"] = type(model).__name__
        return Verdict(**found | judge(model, build(model_type, "eager")))
    except Exception as problem:
        return Verdict(**found, note=one_line(problem))


def build(model_type: str, attention: str | None = None) -> PreTrainedModel:
    """A tiny model with random weights, large enough that its heads are not uniform."""
    config = tiny_config(model_type)
    kind = MODEL_FOR_CAUSAL_LM_MAPPING[type(config)]
    # Some models are of one part of what the configuration describes.
    config = next((part for part in vars(config).values() if type(part) is kind.config_class), config)
    with torch.device("meta"):
        size = sum(x.numel() for x in kind(copy.deepcopy(config)).parameters())
    if size > LARGEST_MODEL:
        raise InputError("tiny model", got=f"{size:,} weights", expected="few", fix="add sizes to tiny_configs.yaml")
    torch.manual_seed(0)
    model = kind._from_config(config, attn_implementation=attention)
    with torch.no_grad():
        for part in model.modules():
            for name, weight in part.named_parameters(recurse=False):
                plain = weight.ndim == 2 and name == "weight"
                weight.add_(torch.randn_like(weight), alpha=0.2 if plain else 0.1)
    return model.float().eval()


def judge(model: PreTrainedModel, eager: PreTrainedModel) -> dict[str, Any]:
    """The verdict on a model, with the same model in eager attention as the judge."""
    draw = random.Random(0)
    ids = [draw.randrange(FIRST_FREE_ID, VOCABULARY) for _ in range(LENGTH)]
    try:
        session = prepare(model, [str(i) for i in range(VOCABULARY)], Tokens("random", ids, LENGTH), (0.3,))
    except InputError as problem:
        if "no attention" in str(problem) and not any(A.ndim > 3 for A in eager_attentions(eager, ids)):
            return {"verdict": "not applicable", "note": "nothing attends, and eager attention gives no maps"}
        raise
    found = {"way": session.examination.way, "engine": ", ".join(sorted({site.engine for site in session.sites}))}
    silent = len(session.examination.silent)
    notes = [f"{silent} of {len(session.body.layers)} layers without attention"] if silent else []
    tried = session.examination.record["tried_before"]
    notes += [f"{way}: {' '.join(reason.split())}" for way, reason in tried.items()]
    notes += ["more than one call in a layer"] if any("(2)" in site.attention for site in session.sites) else []
    measured, maps = measure(session, ids), eager_attentions(eager, ids)
    maps = [A for A in maps if A.ndim == 4 and A.shape[2] == len(ids)]
    pairs = paired(session, measured, maps)
    if pairs is None:
        notes += [f"{len(measured)} calls measured, {len(maps)} eager maps to compare with"]
        return found | {"verdict": "failing", "note": "; ".join(notes)}
    found["deviation"] = max(deviation(got, A) for got, A in pairs)
    right = found["deviation"] <= TOLERANCE
    if any(A is not map_ for (_, A), map_ in zip(pairs, maps, strict=False)) and len(pairs) == len(maps):
        notes += ["its eager maps leave out the learned sink, whose share is put in from the logits"]
    if not right:
        notes += ["statistics differ from those of eager maps"]
    verdict = ("exact" if found["way"] == "interface" else "fallback") if right else "failing"
    return found | {"verdict": verdict, "note": "; ".join(notes)}


def paired(
    session: Session, measured: list[MapStatistics], maps: list[Tensor]
) -> list[tuple[MapStatistics, Tensor]] | None:
    """Each call with its map: one by one, or all calls of a layer with the map of that layer; None if neither fits."""
    if len(measured) != len(maps):
        layers = sorted({site.layer for site in session.sites})
        if len(layers) != len(maps):
            return None
        maps = [maps[layers.index(site.layer)] for site in session.sites]
    sinks = [getattr(site.module, "sinks", None) for site in session.sites]
    return [(s, with_sink(A, s, sink)) for s, A, sink in zip(measured, maps, sinks, strict=True)]


def with_sink(A: Tensor, got: MapStatistics, sink: Tensor | None) -> Tensor:
    """The map that is used. Granite leaves the share of its learned sink out of the maps that it gives."""
    total = A.sum(-1)
    if sink is None or not torch.allclose(total, torch.ones_like(total)):
        return A
    return A * torch.sigmoid(got.lse - sink.detach()[:, None])[..., None]


def measure(session: Session, ids: list[int]) -> list[MapStatistics]:
    """The statistics of every call of one forward."""
    found: list[MapStatistics] = []
    way = session.examination.way
    with (
        evaluating(session.body.model),
        hooks.measuring(session.body, lambda _, __, s: found.append(s), way=way, engine=blocks.attend) as now,
    ):
        now.map_length = len(ids)
        session.body(ids, **({"output_attentions": True} if way == "maps" else {}))
    return found


def eager_attentions(model: PreTrainedModel, ids: list[int]) -> list[Tensor]:
    """What the model itself gives as its attentions; of softmax attention maps (1, H, T, S)."""
    with evaluating(model):
        out = model(input_ids=torch.tensor([ids]), output_attentions=True, use_cache=False)
    return [A for A in getattr(out, "attentions", None) or () if isinstance(A, Tensor)]


def deviation(got: MapStatistics, A: Tensor) -> float:
    """The largest difference of a statistic, of the column sums after division by T."""
    wanted = statistics_of(A)
    worst = 0.0
    for name in COMPARED:
        difference = (getattr(got, name).double() - getattr(wanted, name).double()).abs().nan_to_num(torch.inf)
        worst = max(worst, float(difference.max()) / (A.shape[2] if name == "columns" else 1))
    return worst


def one_line(problem: BaseException) -> str:
    text = " ".join(str(problem).split())
    return text if isinstance(problem, InputError) else f"{type(problem).__name__}: {text[:300]}"
