"""The weights of the planted model: random, except for everything that decides an attention weight.

Real models make sinks in two steps: an early MLP writes a massive activation at the first position, and later heads
find the first key by it (Sun et al. 2024, arXiv:2402.17762; Gu et al. 2024, arXiv:2410.10781). This one does the same,
with everything that decides a weight kept exact; the rest (embeddings, keys, values, outputs) is random.

Why it is exact. It is a GPT-2 of 64 channels. The embeddings of tokens are ±1 in equal numbers, those of positions are
pairs (x, −x) of fixed total square, so the first LayerNorm divides by the same number everywhere and layer 0 can read
the position exactly: a query knows log(i − 1), a key knows whether it is the first. From layer 1 on the norm depends on
the text; there only saturated quantities are used: tanh of a large number, which is ±1 in floating point, and a logit
gap of 60, beyond which the weight on other keys is below 1e-22.
"""

import math
from dataclasses import dataclass

import torch
from transformers import GPT2Config, GPT2LMHeadModel

from polariscope.models.byte_tokenizer import BOS_ID, EOS_ID, PAD_ID, VOCABULARY
from polariscope.models.planted_truth import MASSIVE, SHARES

POSITIONS = 4096

_WIDTH, _HEAD, _UNITS = 64, 16, 64
_CONTENT = slice(0, 56)
_FIRST, _NOT_FIRST, _LOG, _MINUS_LOG, _REST, _MINUS_REST = range(56, 62)  # and MASSIVE.channel
_SATURATED = 200.0
_GAP = 60.0
# LayerNorm of the embeddings: 56 + 2 + 2 squares of size 1 over 64 channels, mean 0, eps of GPT-2.
_NORM = 1 / math.sqrt(60 / _WIDTH + 1e-5)


def build(seed: int) -> torch.nn.Module:
    """The network, in float64, every parameter set."""
    random = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(devices=[]):  # the constructor draws from the global generator
        model = GPT2LMHeadModel(_config()).double()
    with torch.no_grad():
        model.transformer.wte.weight.copy_(_tokens(VOCABULARY, random))
        model.transformer.wpe.weight.copy_(_positions())
        for layer, shares in enumerate(SHARES):
            _fill_attention(model.transformer.h.get_submodule(f"{layer}.attn"), shares, random)
            _fill_mlp(model.transformer.h.get_submodule(f"{layer}.mlp"), random)
        written = model.transformer.h.get_submodule(f"{MASSIVE.layers[0]}.mlp")
        removed = model.transformer.h.get_submodule(f"{MASSIVE.layers[-1] + 1}.mlp")
        _detect(written, _FIRST, threshold=0.0, value=MASSIVE.value)
        _detect(removed, MASSIVE.channel, threshold=_massive_norm() / 2, value=-MASSIVE.value)
    return model


def _config() -> GPT2Config:
    return GPT2Config(
        vocab_size=VOCABULARY,
        n_positions=POSITIONS,
        n_embd=_WIDTH,
        n_layer=len(SHARES),
        n_head=_WIDTH // _HEAD,
        n_inner=_UNITS,
        activation_function="tanh",
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=BOS_ID,
        eos_token_id=EOS_ID,
        pad_token_id=PAD_ID,
    )


def _tokens(vocabulary: int, random: torch.Generator) -> torch.Tensor:
    """Token embeddings: as many +1 as −1 in the content channels, in a random order; 0 elsewhere."""
    content = _CONTENT.stop
    order = torch.rand(vocabulary, content, generator=random, dtype=torch.float64).argsort(dim=1)
    table = torch.zeros(vocabulary, _WIDTH, dtype=torch.float64)
    table[:, _CONTENT] = torch.where(order < content // 2, 1.0, -1.0)
    return table


def _positions() -> torch.Tensor:
    """Position embeddings: ±1 for first or not, and ±x, ±√(1 − x²) with x = log(i − 1)/log(P − 1)."""
    i = torch.arange(1, POSITIONS + 1, dtype=torch.float64)
    x = (i - 1).clamp(min=1).log() / math.log(POSITIONS - 1)
    rest = (1 - x.square()).clamp(min=0).sqrt()
    first = torch.where(i == 1, 1.0, -1.0)
    table = torch.zeros(POSITIONS, _WIDTH, dtype=torch.float64)
    pairs = {_FIRST: first, _LOG: x, _REST: rest}
    for channel, values in pairs.items():
        table[:, channel], table[:, channel + 1] = values, -values
    return table


@dataclass(frozen=True)
class _Search:
    """How a head finds the first key along one direction: query = slope·x + offset, key = gain·channel."""

    slope: float
    offset: float
    channel: int
    gain: float


def _search(share: float) -> _Search:
    """Exact in layer 0: logit gap log(p/(1 − p)) + log(i − 1). For p = 1, from layer 2 on: the gap `_GAP`."""
    scale = math.sqrt(_HEAD)
    if share == 1:
        return _Search(0.0, scale * _GAP, MASSIVE.channel, 1 / _massive_norm())
    return _Search(
        scale * math.log(POSITIONS - 1) / _NORM, scale * math.log(share / (1 - share)), _FIRST, 1 / (2 * _NORM)
    )


def _massive_norm() -> float:
    """LayerNorm of the massive channel at its position: the whole vector but that entry is negligible."""
    return math.sqrt(_WIDTH - 1)


def _fill_attention(attention: torch.nn.Module, shares: tuple[float | None, ...], random: torch.Generator) -> None:
    projection = attention.get_submodule("c_attn")
    weight, bias = projection.get_parameter("weight").zero_(), projection.get_parameter("bias").zero_()
    for head, share in enumerate(shares):
        query, key, value = (slice(k * _WIDTH + head * _HEAD, k * _WIDTH + (head + 1) * _HEAD) for k in range(3))
        direction = torch.nn.functional.normalize(_normal(random, _HEAD, scale=1.0), dim=0)
        keys = _normal(random, _CONTENT.stop, _HEAD, scale=0.3)
        # Queries point along `direction` only; keys are random across it and planted along it.
        weight[_CONTENT, key] = keys - (keys @ direction)[:, None] * direction
        weight[_CONTENT, value] = _normal(random, _CONTENT.stop, _HEAD, scale=0.1)
        if share is not None:
            search = _search(share)
            weight[_LOG, query] = search.slope * direction
            bias[query] = search.offset * direction
            weight[search.channel, key] = search.gain * direction
    _fill_output(attention.get_submodule("c_proj"), random)


def _fill_mlp(mlp: torch.nn.Module, random: torch.Generator) -> None:
    """Random units that read and write content; unit 0 is left free."""
    inner = mlp.get_submodule("c_fc")
    inner.get_parameter("bias").zero_()
    weight = inner.get_parameter("weight").zero_()
    weight[_CONTENT, 1:] = _normal(random, _CONTENT.stop, _UNITS - 1, scale=0.1)
    _fill_output(mlp.get_submodule("c_proj"), random)
    mlp.get_submodule("c_proj").get_parameter("weight")[0] = 0


def _fill_output(projection: torch.nn.Module, random: torch.Generator) -> None:
    """Random writes into the content channels, of mean 0, so that the mean over all channels stays 0."""
    projection.get_parameter("bias").zero_()
    weight = projection.get_parameter("weight").zero_()
    writes = _normal(random, weight.shape[0], _CONTENT.stop, scale=0.1)
    weight[:, _CONTENT] = writes - writes.mean(dim=1, keepdim=True)


def _detect(mlp: torch.nn.Module, channel: int, *, threshold: float, value: float) -> None:
    """Unit 0: add ``value`` to the massive channel where the normed channel is above the threshold, else 0."""
    inner, outer = mlp.get_submodule("c_fc"), mlp.get_submodule("c_proj")
    inner.get_parameter("weight")[channel, 0] = _SATURATED
    inner.get_parameter("bias")[0] = -_SATURATED * threshold
    outer.get_parameter("weight")[0, MASSIVE.channel] = value / 2
    outer.get_parameter("bias")[MASSIVE.channel] = value / 2


def _normal(random: torch.Generator, *shape: int, scale: float) -> torch.Tensor:
    return scale * torch.randn(*shape, generator=random, dtype=torch.float64)
