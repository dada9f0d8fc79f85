"""One document's numbers, collected while a forward runs."""

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
    """Collects the numbers of one document; its methods are the listeners of `polariscope.probe.hooks.measuring`.

    Args:
        body: the model.
        sites: the calls to expect.
        eps: thresholds of the sink rate.
        place: where the document lies in its batch.
    """

    def __init__(self, body: Body, sites: Sequence[Site], eps: Sequence[float], place: Place | None = None) -> None:
        self.body, self.sites, self.eps = body, tuple(sites), tuple(eps)
        self.place = place or Place()
        self.number = {id(layer): index for index, layer in enumerate(body.layers)}
        self._calls: list[tuple[Tensor, ...]] = []
        self._engines: list[str] = []
        self._massive: dict[int, Massive] = {}

    def on_attention(self, layer: Layer | None, module: nn.Module, statistics: MapStatistics | None) -> None:
        """Take the statistics of a call; None for one that is not wanted. Raises InputError if it is not expected."""
        expect(self.sites, len(self._engines), module)
        self._engines.append("" if statistics is None else statistics.engine)
        if statistics is None:
            return
        s = of_document(statistics, self.place)
        norms = s.value_norms[0].double().mean(0)
        self._calls.append((head_values(s, self.eps), column_means(s), top_keys(s), norms))

    def on_output(self, layer: Layer, hidden: Tensor) -> None:
        """Take a layer's output, (B, T, D)."""
        place = self.place
        if hidden.ndim == 3:
            self._massive[self.number[id(layer)]] = massive(hidden[place.batch, place.start : place.stop])

    def finish(self) -> Measured:
        """The document's numbers. Raises InputError if a call is missing; the recorder is empty afterwards."""
        if len(self._engines) != len(self.sites):
            raise InputError(
                "attention calls",
                got=f"{len(self._engines)}",
                expected=f"{len(self.sites)}, as in the first document",
                fix="this model attends differently from document to document and cannot be measured",
            )
        heads = max(site.heads for site in self.sites)
        columns = zip(*self._calls, strict=True)
        values, alpha, top, norms = ([x.cpu().numpy() for x in column] for column in columns)
        table = np.stack([_wider(x, heads, np.nan) for x in values])
        bad = np.nan_to_num(table[:, -1]).astype(int)
        keys = max(x.shape[-1] for x in alpha)
        layers = tuple(sorted(self._massive))
        measured = Measured(
            values=table[:, :-1],
            bad_rows=bad,
            alpha=np.stack([_wider(_wider(x, keys, np.nan).T, heads, np.nan).T for x in alpha]),
            top_keys=np.stack([_wider(x, heads, -1) for x in top]),
            value_norms=np.stack([_wider(x, keys, np.nan) for x in norms]),
            massive=tuple(self._massive[index] for index in layers),
            layers=layers,
            engines=tuple(name for name in self._engines if name),
        )
        self._calls, self._engines, self._massive = [], [], {}
        return measured


def _wider(x: np.ndarray, size: int, fill: float) -> np.ndarray:
    """The last axis filled up to a size."""
    lacking = size - x.shape[-1]
    return np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, lacking)], constant_values=fill) if lacking else x
