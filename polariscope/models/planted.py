"""The model ``planted``: a tiny transformer whose attention maps and massive activation are known in closed form."""

import torch

from polariscope.errors import InputError
from polariscope.models._dtype import dtype_name, torch_device, torch_dtype
from polariscope.models._loaded import LoadedModel
from polariscope.models.byte_tokenizer import byte_tokenizer
from polariscope.models.planted_truth import MASSIVE, SHARES, HeadTruth
from polariscope.models.planted_weights import POSITIONS, build


def open_planted(name: str, *, seed: int = 0, dtype: str = "float32", device: str = "cpu") -> LoadedModel:
    """The planted model; ``extras["truth"]`` has ``heads[layer][head]`` (`HeadTruth`) and ``massive`` (`MassiveTruth`).

    Args:
        name: ``"planted"``.
        seed: of the random part. The truth does not depend on it.
        dtype: of the weights; built in float64 and rounded.
        device: where to put them.

    Raises:
        InputError: for a seed that is no whole number from 0 on.
    """
    if not isinstance(seed, int) or not 0 <= seed < 2**63:
        raise InputError("seed", got=repr(seed), expected="a whole number from 0 on", fix="for example 0")
    wanted, place = torch_dtype(dtype), torch_device(device)
    stored = torch.float64 if isinstance(wanted, str) else wanted
    model = build(seed).to(place, stored).eval()
    heads = tuple(tuple(HeadTruth(share) for share in layer) for layer in SHARES)
    return LoadedModel(
        model=model,
        tokenizer=byte_tokenizer(POSITIONS),
        name=name,
        source="planted",
        revision=f"construction 1, seed {seed}",
        dtype=dtype_name(stored),
        checkpoint_dtype="float64",
        extras={"truth": {"heads": heads, "massive": MASSIVE}},
    )
