"""Independent random streams from one seed, each known by its name."""

import numpy as np
import torch

from polariscope.errors import InputError


def stream(seed: int, name: str) -> torch.Generator:
    """A generator that depends on the seed and on the name, and on nothing else.

    Two names give independent streams (NumPy's `SeedSequence`, the name as its spawn key), so that for instance the
    evaluation data stay the same when more training data are drawn.

    Args:
        seed: a non-negative integer.
        name: what the stream is for, such as "initialization".

    Returns:
        A generator on the CPU, at its beginning. Drawing there gives the same data whatever trains on them.

    Raises:
        InputError: for a negative seed.
    """
    if not isinstance(seed, int) or seed < 0:
        raise InputError("seed", got=repr(seed), expected="a non-negative integer", fix="try seed=0")
    sequence = np.random.SeedSequence(entropy=seed, spawn_key=tuple(name.encode()))
    return torch.Generator().manual_seed(int(sequence.generate_state(1, np.uint64)[0]))
