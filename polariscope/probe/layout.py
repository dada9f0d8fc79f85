"""Where the documents of a batch lie: padded on either side, or packed one after another."""

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from polariscope.errors import InputError
from polariscope.probe.attention import Call
from polariscope.probe.statistics import Place


@dataclass(frozen=True)
class Layout:
    """The documents of a batch.

    Args:
        shape: B, T.
        document: number of the document within its row, (B, T); −1 for padding.
        first: where the document of each position begins, (B, T); 0 for padding.
        packed: whether a row holds several documents.
    """

    shape: tuple[int, int]
    document: Tensor
    first: Tensor
    packed: bool

    @classmethod
    def of(cls, places: Sequence[Place], shape: tuple[int, ...]) -> "Layout":
        """The layout of documents in a batch (B, T). Raises InputError where they do not fit or overlap."""
        document = torch.full(shape, -1)
        first = torch.zeros(shape, dtype=torch.long)
        for place in places:
            stop = shape[1] if place.stop is None else place.stop
            if not (0 <= place.batch < shape[0] and 0 <= place.start < stop <= shape[1]):
                raise InputError("place", got=place, expected=f"a part of a batch {shape}", fix="count from 0")
            row, here = document[place.batch], slice(place.start, stop)
            if bool((row[here] >= 0).any()):
                raise InputError("place", got=place, expected="documents that do not overlap", fix="move it")
            row[here] = row.max() + 1
            first[place.batch, here] = place.start
        return cls((shape[0], shape[1]), document, first, bool((document > 0).any()))

    @property
    def real(self) -> Tensor:
        """Which positions belong to a document, (B, T)."""
        return self.document >= 0

    def positions(self) -> Tensor:
        """Position of each token within its document, from 0, (B, T)."""
        return torch.arange(self.shape[1]) - self.first

    def inputs(self, input_ids: Tensor, network: nn.Module) -> dict[str, Tensor]:
        """What a network is fed with. In a packed batch, positions that begin anew tell it where documents end.

        Raises:
            InputError: for a packed batch and a network that takes no positions.
        """
        takes = inspect.signature(network.forward).parameters
        inputs: dict[str, Any] = {"input_ids": input_ids}
        if "position_ids" in takes:
            inputs["position_ids"] = self.positions()
        elif self.packed:
            raise InputError(
                "packed batch",
                got=f"{type(network).__name__}, which takes no position_ids",
                expected="a model that does",
                fix="put every document into a row of its own",
            )
        if not self.packed:
            inputs["attention_mask"] = self.real.long()
        return {name: x.to(next(network.parameters()).device) for name, x in inputs.items()}

    def apply(self, call: Call) -> Call:
        """The call, with nothing visible for padding. Raises InputError if documents see one another."""
        device = call.query.device
        visible = call.visible
        if visible is None:
            visible = torch.ones(self.shape[1], self.shape[1], dtype=torch.bool, device=device)
            visible = (visible.tril() if call.causal else visible)[None, None]
        visible = visible & self.real.to(device)[:, None, :, None]
        self.check(visible)
        return replace(call, visible=visible, first=self.first.to(device))

    def check(self, visible: Tensor) -> None:
        """Raise InputError if a query sees a key of another document or of padding. visible: (B, 1 or H, T, T)."""
        document = self.document.to(visible.device)
        foreign = document[:, None, :, None] != document[:, None, None, :]
        if bool((visible & foreign).any()):
            raise InputError(
                "batch",
                got="a model whose documents see one another or the padding",
                expected="documents kept apart by attention_mask or position_ids",
                fix="run its documents one by one",
            )
