"""The architecture of the small transformer, as checked settings."""

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from polariscope.errors import InputError


class TransformerConfig(BaseModel):
    """The architecture.

    Args:
        vocabulary: V.
        length: largest T; matters only with positions.
        outputs: classes per position.
        attention: a name in `polariscope.nets.REGISTRY`.
        layers, heads, dim: depth, H and D; H divides D.
        mlp: whether a GELU network of width 4D follows the attention.
        layernorm: whether each part, and the end, is normalized first.
        positions: learned position vectors are added to the token vectors, take half of the width, or are absent.
        causal: whether position i sees 0 … i only.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")
    vocabulary: int = Field(gt=0)
    length: int = Field(gt=0)
    outputs: int = Field(gt=0)
    attention: str = "softmax"
    layers: int = Field(1, gt=0)
    heads: int = Field(1, gt=0)
    dim: int = Field(128, gt=0)
    mlp: bool = False
    layernorm: bool = False
    positions: Literal["none", "add", "concat"] = "none"
    causal: bool = False

    @model_validator(mode="after")
    def _check_width(self) -> Self:
        if self.dim % self.heads or (self.positions == "concat" and self.dim % 2):
            raise InputError(
                "width of the network",
                got=f"dim {self.dim}, heads {self.heads}, positions {self.positions}",
                expected="a dim that the heads divide, and an even one for concat",
                fix=f"try dim={2 * self.heads * max(1, self.dim // (2 * self.heads))}",
            )
        return self
