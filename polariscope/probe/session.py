"""One model, examined and ready: documents in, records out. What a worker holds."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from polariscope.errors import InputError
from polariscope.probe import blocks, checks, hooks
from polariscope.probe.attention import Engine
from polariscope.probe.body import Body, body_of, evaluating
from polariscope.probe.documents import Tokens, Vocabulary
from polariscope.probe.gathered import Record
from polariscope.probe.layout import Layout
from polariscope.probe.recording import Measured, Recorder
from polariscope.probe.sites import Site
from polariscope.probe.statistics import Place


@dataclass(frozen=True)
class Session:
    """A model that passed the self-checks.

    Args:
        body: the model.
        words: its vocabulary.
        examination: how it is measured.
        engine: what computes attention.
        eps: thresholds of the sink rate.
        layers: which layers' attention to measure; None: all.
    """

    body: Body
    words: Vocabulary
    examination: checks.Examination
    engine: Engine
    eps: tuple[float, ...]
    layers: frozenset[int] | None = None

    @property
    def sites(self) -> tuple[Site, ...]:
        """The attention calls that are measured."""
        return tuple(site for site in self.examination.sites if self.layers is None or site.layer in self.layers)

    @contextmanager
    def open(self) -> Iterator["Measure"]:
        """The model measuring inside, as it was before afterwards."""
        recorder = Recorder(self.body, self.examination.sites, self.eps)
        with (
            evaluating(self.body.model),
            hooks.measuring(
                self.body,
                recorder.on_attention,
                recorder.on_output,
                way=self.examination.way,
                engine=self.engine,
                wanted=self.layers,
            ) as now,
        ):
            yield Measure(self, recorder, now)


@dataclass(frozen=True)
class Measure:
    """An open session."""

    session: Session
    recorder: Recorder
    now: hooks.Measuring

    def __call__(self, tokens: Tokens) -> tuple[Record, Measured]:
        """Run one document. Raises InputError if the model attends otherwise than in the first document."""
        session, body = self.session, self.session.body
        self.recorder.expect((Place(),))
        self.now.map_length = len(tokens.ids)
        body(tokens.sample, **checks.forward_options(session.examination.way))
        (measured,) = self.recorder.finish()
        written = body.written(tokens.ids)
        keys = [written if site.attention == "decoder" else tokens.ids for site in session.sites]
        layers = [body.layers[index] for index in measured.layers]
        on = [written if layer.stack == "decoder" else tokens.ids for layer in layers]
        return Record.of(tokens.id, tokens.count, tokens.ids, measured, keys, on), measured

    def batch(self, input_ids: Tensor, places: Sequence[Place]) -> list[Measured]:
        """Run a batch of documents of any lengths, padded on either side or packed one after another.

        Positions are counted within each document, and no query of padding counts.

        Args:
            input_ids: token ids, (B, T); anything outside of the documents is padding.
            places: where the documents lie.

        Returns:
            The numbers of each document, as if it had been run alone.

        Raises:
            InputError: for a model that is no decoder or encoder, and if documents see one another.
        """
        session, body = self.session, self.session.body
        layout = Layout.of(places, tuple(input_ids.shape))
        if body.kind not in ("decoder", "encoder"):
            raise InputError(
                "batch", got=body.kind, expected="a decoder or encoder", fix="run its documents one by one"
            )
        self.recorder.expect(places)
        with self.now.laid_out(layout):
            body.run(layout.inputs(input_ids, body.network), **checks.forward_options(session.examination.way))
        return self.recorder.finish()


def prepare(
    model: nn.Module,
    tokenizer: Any,
    first: Tokens,
    eps: Sequence[float],
    *,
    layers: Sequence[int] | None = None,
    engine: Engine = blocks.attend,
) -> Session:
    """Examine a model on a document.

    Raises:
        InputError: if it cannot be measured, or has not the layers asked for.
    """
    body = body_of(model)
    with evaluating(model):
        examination = checks.examine(body, first.sample, engine)
    wanted = None if layers is None else frozenset(layers)
    session = Session(body, Vocabulary(tokenizer), examination, engine, tuple(eps), wanted)
    check_choice("--layers", wanted, {site.layer for site in examination.sites}, "layers with attention")
    return session


def check_choice(option: str, asked: frozenset[int] | None, there: set[int], what: str) -> None:
    """Refuse numbers that are not there."""
    missing = sorted((asked or frozenset()) - there)
    if missing or asked == frozenset():
        raise InputError(
            option, got=missing or "nothing", expected=f"{what}: {min(there)} to {max(there)}", fix="choose among them"
        )
