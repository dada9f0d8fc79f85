"""The same array in each of the three libraries, in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch


@pytest.fixture(scope="module", autouse=True)
def float64():
    with jax.enable_x64(True):
        yield


@pytest.fixture(params=["numpy", "jax", "torch"], scope="session")
def array(request):
    make = {"numpy": np.array, "jax": jnp.array, "torch": torch.tensor}[request.param]
    return lambda x: make(np.array(x))
