"""Each document's numbers, collected while a forward runs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from polariscope.errors import InputError
from polariscope.probe.activations import Massive, massive
from polariscope.probe.attention import MapStatistics
from polariscope.probe.body import Body, Layer
from polariscope.probe.sites import Site, expect
from polariscope.probe.statistics import Place, column_means, head_values, of_document, top_keys

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Measured:
    """One document's numbers of the sites that are wanted. H is the largest number of heads; what a site lacks is NaN.

    Args:
        values: metrics, (sites, M, H).
        bad_rows: rows with a statistic that is not finite, (sites, H).
        alpha: column means α_k, (sites, H, keys); NaN beyond the last key.
        top_keys: the key with the largest α_k, (sites, H); −1 where there is no head.
        value_norms: mean ‖v_k‖ over key heads, (sites, keys).
        massive: of each layer that ran.
        layers: which layers of the body ran, by number.
        engines: what measured each site.
    """

    values: Array
    bad_rows: NDArray[np.int64]
    alpha: Array
    top_keys: NDArray[np.int64]
    value_norms: Array
    massive: tuple[Massive, ...]
    layers: tuple[int, ...]
    engines: tuple[str, ...]


class Recorder:
    """Collects the numbers of a forward's documents; its methods are the listeners of `hooks.measuring`.

    Args:
        body: the model.
        sites: the calls to expect.
        eps: thresholds of the sink rate.
    """

    def __init__(self, body: Body, sites: Sequence[Site], eps: Sequence[float]) -> None:
        self.body, self.sites, self.eps = body, tuple(sites), tuple(eps)
        self.number = {id(layer): index for index, layer in enumerate(body.layers)}
        self.expect((Place(),))

    def expect(self, places: Sequence[Place]) -> None:
        """Begin with a forward: where its documents lie."""
        self.places = tuple(places)
        self._engines: list[str] = []
        self._calls: list[list[tuple[Tensor, ...]]] = [[] for _ in places]
        self._massive: list[dict[int, Massive]] = [{} for _ in places]

    def on_attention(self, layer: Layer | None, module: nn.Module, statistics: MapStatistics | None) -> None:
        """Take the statistics of a call; None for one that is not wanted. Raises InputError if it is not expected."""
        expect(self.sites, len(self._engines), module)
        self._engines.append("" if statistics is None else statistics.engine)
        if statistics is None:
            return
        for place, calls in zip(self.places, self._calls, strict=True):
            s = of_document(statistics, place)
            norms = s.value_norms[0].double().mean(0)
            calls.append((head_values(s, self.eps), column_means(s), top_keys(s), norms))

    def on_output(self, layer: Layer, hidden: Tensor) -> None:
        """Take a layer's output, (B, T, D)."""
        if hidden.ndim != 3:
            return
        for place, found in zip(self.places, self._massive, strict=True):
            found[self.number[id(layer)]] = massive(hidden[place.batch, place.start : place.stop])

    def finish(self) -> list[Measured]:
        """The numbers of each document. Raises InputError if a call is missing."""
        if len(self._engines) != len(self.sites):
            raise InputError(
                "attention calls",
                got=f"{len(self._engines)}",
                expected=f"{len(self.sites)}, as in the first document",
                fix="this model attends differently from document to document and cannot be measured",
            )
        return [self._measured(calls, found) for calls, found in zip(self._calls, self._massive, strict=True)]

    def _measured(self, calls: list[tuple[Tensor, ...]], found: dict[int, Massive]) -> Measured:
        heads = max(site.heads for site in self.sites)
        columns = zip(*calls, strict=True)
        values, alpha, top, norms = ([x.cpu().numpy() for x in column] for column in columns)
        table = np.stack([_wider(x, heads, np.nan) for x in values])
        bad = np.nan_to_num(table[:, -1]).astype(int)
        keys = max(x.shape[-1] for x in alpha)
        layers = tuple(sorted(found))
        return Measured(
            values=table[:, :-1],
            bad_rows=bad,
            alpha=np.stack([_wider(_wider(x, keys, np.nan).T, heads, np.nan).T for x in alpha]),
            top_keys=np.stack([_wider(x, heads, -1) for x in top]),
            value_norms=np.stack([_wider(x, keys, np.nan) for x in norms]),
            massive=tuple(found[index] for index in layers),
            layers=layers,
            engines=tuple(name for name in self._engines if name),
        )


def _wider(x: np.ndarray, size: int, fill: float) -> np.ndarray:
    """The last axis filled up to a size."""
    lacking = size - x.shape[-1]
    return np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, lacking)], constant_values=fill) if lacking else x
