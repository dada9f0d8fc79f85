"""Where a model attends: its attention calls, in the order in which one forward makes them."""

import re
from dataclasses import dataclass, field

from torch import nn

from polariscope.errors import InputError
from polariscope.probe.attention import MapStatistics
from polariscope.probe.body import Body, Layer

_CROSS = re.compile(r"cross|encoder_?attn|encdec|enc_dec", re.IGNORECASE)


@dataclass(frozen=True)
class Site:
    """One attention call of a forward.

    Args:
        attention: "self"; in an encoder-decoder "encoder", "decoder" or "cross". A second call
            in the same layer is "self (2)".
        layer: number of the layer within its stack, 0-based.
        heads: number of query heads.
        kv_heads: number of key heads; 0 where it is not known.
        engine: what measured it in the first document.
        module: the attention module.
    """

    attention: str
    layer: int
    heads: int
    kv_heads: int
    engine: str
    module: nn.Module = field(repr=False, compare=False)


class Discovery:
    """A listener that finds out what one forward calls.

    Args:
        body: the model.
    """

    def __init__(self, body: Body) -> None:
        self.body = body
        self.names = {part: name for name, part in body.network.named_modules()}
        self.sites: list[Site] = []

    def on_attention(self, layer: Layer | None, module: nn.Module, statistics: MapStatistics) -> None:
        """Take a call."""
        attention = self._attention(layer, module)
        index = sum(site.attention == attention for site in self.sites) if layer is None else layer.index
        before = sum(site.layer == index and site.attention.split(" ")[0] == attention for site in self.sites)
        self.sites.append(
            Site(
                attention=f"{attention} ({before + 1})" if before else attention,
                layer=index,
                heads=statistics.total.shape[1],
                kv_heads=statistics.key_norms.shape[1] if statistics.engine != "map" else 0,
                engine=statistics.engine,
                module=module,
            )
        )

    def _attention(self, layer: Layer | None, module: nn.Module) -> str:
        name = self.names.get(module, "").rpartition("layers")[2]
        if _CROSS.search(name) or getattr(module, "is_cross_attention", False):
            return "cross"
        return layer.stack if layer is not None and self.body.kind == "encoder-decoder" else "self"


def expect(sites: tuple[Site, ...], number: int, module: nn.Module) -> None:
    """Check that the call with this number is made by the module that made it in the first document.

    Raises:
        InputError: if the calls of a forward depend on the document.
    """
    if number >= len(sites) or sites[number].module is not module:
        wanted = f"{len(sites)} calls" if number >= len(sites) else type(sites[number].module).__name__
        raise InputError(
            "attention calls",
            got=f"call {number} by {type(module).__name__}",
            expected=f"{wanted}, as in the first document",
            fix="this model attends differently from document to document and cannot be measured",
        )


def unmeasured(body: Body, sites: tuple[Site, ...]) -> list[Layer]:
    """Layers in which nothing attends: linear attention, state-space layers.

    Raises:
        InputError: if a layer did not attend that has a part of the class that attends elsewhere: it was missed.
    """
    seen = {id(part) for site in sites for part in [site.module]}
    classes = {type(site.module) for site in sites}
    silent = [x for x in body.layers if not any(id(part) in seen for part in x.module.modules())]
    missed = [x for x in silent if any(type(part) in classes for part in x.module.modules())]
    if missed:
        some = ", ".join(str(x.index) for x in missed[:4])
        raise InputError(
            "self-check layers",
            got=f"{len(missed)} of {len(body.layers)} layers whose attention was not called (layers {some})",
            expected="a call of every attention",
            fix="this model cannot be measured so",
        )
    return silent
