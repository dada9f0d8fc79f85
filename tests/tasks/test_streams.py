"""Random streams known by name."""

import numpy as np
import pytest
import torch

from polariscope import tasks
from polariscope.errors import InputError

NAMES = ["training data", "evaluation data", "initialization", "order", "mixing"]


def test_streams_of_one_seed_differ_and_are_uncorrelated():
    draws = np.stack([torch.randn(4000, generator=tasks.stream(0, name)).numpy() for name in NAMES])
    correlation = np.corrcoef(draws) - np.eye(len(NAMES))
    assert np.abs(correlation).max() < 0.08  # five standard deviations of a correlation of 4000 independent pairs


def test_a_stream_repeats_and_does_not_depend_on_the_others():
    first = torch.rand(5, generator=tasks.stream(4, "order"))
    tasks.stream(4, "initialization")
    torch.rand(9, generator=tasks.stream(4, "mixing"))
    assert torch.equal(first, torch.rand(5, generator=tasks.stream(4, "order")))
    assert not torch.equal(first, torch.rand(5, generator=tasks.stream(5, "order")))


def test_the_global_state_is_left_alone():
    before = torch.get_rng_state()
    torch.rand(3, generator=tasks.stream(0, "order"))
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("seed", [-1, 1.5, "0"])
def test_a_seed_that_is_none_is_refused(seed):
    with pytest.raises(InputError, match="seed"):
        tasks.stream(seed, "order")
