"""A small pre-norm transformer whose attention kind, depth and trimmings are settings.

Shapes: B sequences, T positions, R positions asked for, H heads, D width, d = D/H, V vocabulary.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from polariscope.errors import InputError
from polariscope.nets._attention import Attention
from polariscope.nets.config import TransformerConfig
from polariscope.nets.masks import causal

EVERY_ROW = slice(None)
MLP_RATIO = 4


class Output(NamedTuple):
    """What the network returns: logits (B, R, outputs) and, if asked for, per layer the weights (B, H, R, T)."""

    logits: Tensor
    weights: tuple[Tensor, ...] = ()


class Block(nn.Module):
    """x ← x + W_O attention(W_Q n, W_K n, W_V n) with n = norm(x); then x ← x + mlp(norm(x)).

    The four projections have biases.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        width, wide = config.dim, MLP_RATIO * config.dim
        self.heads = config.heads
        self.norm = _norm(config)
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.attention = Attention(config.attention)
        self.mlp = (
            nn.Sequential(_norm(config), nn.Linear(width, wide), nn.GELU(), nn.Linear(wide, width))
            if config.mlp
            else None
        )

    def forward(self, x: Tensor, ids: Tensor | None, mask: Tensor | None, rows: slice) -> tuple[Tensor, Tensor]:
        """The new x (B, R, D) and the weights (B, H, R, T).

        Args:
            x: the vectors (B, T, D), or, if ids are given, a table (V, D) of which x[ids] are the vectors.
            ids: (B, T) or None. A token without a position has the same key wherever it stands, so the table is
                projected, V rows instead of B·T, and looked up afterwards.
            mask: (T, T), True where visible.
            rows: the R queries to compute; the other rows of x are not needed after the last layer.
        """
        n = self.norm(x)
        if ids is None:
            x, q, k, v = x[:, rows], self.query(n[:, rows]), self.key(n), self.value(n)
        else:
            look, here = functional.embedding, ids[:, rows]
            x, q, k, v = look(here, x), look(here, self.query(n)), look(ids, self.key(n)), look(ids, self.value(n))
        q, k, v = self._split(q), self._split(k), self._split(v)  # (B, H, R, d), (B, H, T, d), (B, H, T, d)
        o, weights = self.attention(q, k, v, None if mask is None else mask[rows])
        x = x + self.out(o.transpose(1, 2).flatten(2))  # (B, R, D)
        return (x if self.mlp is None else x + self.mlp(x)), weights

    def _split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)  # (B, T, D) -> (B, H, T, d)


class Transformer(nn.Module):
    """Embedding, blocks, final norm, linear read-out.

    Args:
        config: the architecture.
        generator: fills the parameters with PyTorch's usual laws (embeddings N(0, 1); linear maps, biases too,
            uniform in ±1/√fan_in), which the source uses. None leaves them unset, to be loaded. The global random
            state is neither read nor changed.
    """

    def __init__(self, config: TransformerConfig, generator: torch.Generator | None) -> None:
        super().__init__()
        self.config = config
        with torch.device("meta"):  # so that no layer draws numbers of its own
            token_width = config.dim // 2 if config.positions == "concat" else config.dim
            self.tokens = nn.Embedding(config.vocabulary, token_width)
            self.places = None if config.positions == "none" else nn.Embedding(config.length, token_width)
            self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
            self.norm = _norm(config)
            self.readout = nn.Linear(config.dim, config.outputs)
        self.to_empty(device="cpu")
        if generator is not None:
            for module in self.modules():
                _fill(module, generator)

    def forward(self, ids: Tensor, rows: slice = EVERY_ROW, weights: bool = False) -> Output:
        """Logits, and weights if asked for, at the positions ``rows`` of ids (B, T).

        Naming only the rows that are needed saves the last layer most of its work.

        Raises:
            InputError: for ids that are not (B, T) integers, not in the vocabulary, or too long for the positions.
        """
        self._check(ids)
        length = ids.shape[1]
        mask = causal(length, ids.device) if self.config.causal else None
        x, table_ids = self._embed(ids)
        maps: list[Tensor] = []
        for depth, block in enumerate(self.blocks, start=1):
            last = depth == len(self.blocks)
            x, w = block(x, table_ids, mask, rows if last else EVERY_ROW)
            maps.append(w if last else w[:, :, rows])
            table_ids = None
        return Output(self.readout(self.norm(x)), tuple(maps) if weights else ())

    def _embed(self, ids: Tensor) -> tuple[Tensor, Tensor | None]:
        """The vectors (B, T, D) and None, or without positions the table (V, D) and the ids to look up in it."""
        if self.places is None:
            return self.tokens.weight, ids
        tokens, places = self.tokens(ids), self.places.weight[: ids.shape[1]]  # (B, T, ·), (T, ·)
        if self.config.positions == "add":
            return tokens + places, None
        return torch.cat([tokens, places.expand(len(ids), -1, -1)], -1), None

    def _check(self, ids: Tensor) -> None:
        if ids.ndim != 2 or ids.is_floating_point() or 0 in ids.shape:
            raise InputError(
                "token ids", got=f"{ids.dtype} {tuple(ids.shape)}", expected="integers (B, T)", fix="stack sequences"
            )
        # On other devices this would wait for the device at every step; they report such an id themselves.
        if ids.is_cpu and not 0 <= int(ids.min()) <= int(ids.max()) < self.config.vocabulary:
            raise InputError(
                "token ids",
                got=f"{int(ids.min())} to {int(ids.max())}",
                expected=f"0 to {self.config.vocabulary - 1}",
                fix="use the vocabulary that the network was built for",
            )
        if self.places is not None and ids.shape[1] > self.config.length:
            raise InputError(
                "sequence length",
                got=ids.shape[1],
                expected=f"at most {self.config.length}, the number of position vectors",
                fix="cut the sequences or build a longer network",
            )


def _norm(config: TransformerConfig) -> nn.Module:
    return nn.LayerNorm(config.dim) if config.layernorm else nn.Identity()


@torch.no_grad()
def _fill(module: Any, generator: torch.Generator) -> None:
    if isinstance(module, nn.Embedding):
        module.weight.normal_(generator=generator)
    elif isinstance(module, nn.Linear):
        bound = module.in_features**-0.5
        module.weight.uniform_(-bound, bound, generator=generator)
        module.bias.uniform_(-bound, bound, generator=generator)
    elif isinstance(module, nn.LayerNorm):
        module.reset_parameters()
