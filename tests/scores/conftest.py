"""The three array libraries behind one small interface, in float64."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

compiled = cache(jax.jit)


@cache
def jax_pullback(m):
    return jax.jit(lambda a, g, where: jax.vjp(lambda x: m(x, where), a)[1](g)[0])


@dataclass(frozen=True)
class Library:
    name: str

    def run(self, f, *arrays) -> np.ndarray:
        """f of NumPy arrays, computed in this library; in JAX under jit. None stays None."""
        given = [None if x is None else self.array(x) for x in arrays]
        return self.numpy((compiled(f) if self.name == "jax" else f)(*given))

    def array(self, x) -> Any:
        return {"numpy": np.array, "jax": jnp.array, "torch": torch.tensor}[self.name](np.array(x))

    def numpy(self, x) -> np.ndarray:
        return np.asarray(x.detach() if self.name == "torch" else x)

    def pullback(self, m, a, g, where) -> np.ndarray:
        """Jᵀg of a map at a by the library's own autodiff."""
        if self.name == "jax":
            return self.numpy(jax_pullback(m)(*(None if x is None else jnp.array(x) for x in (a, g, where))))
        x = torch.tensor(a, requires_grad=True)
        s = m(x, None if where is None else torch.tensor(where))
        return torch.autograd.grad(s, x, torch.tensor(g))[0].numpy()


@pytest.fixture(scope="module", autouse=True)
def float64():
    with jax.enable_x64(True):
        yield


@pytest.fixture(scope="session")
def libraries():
    return tuple(Library(name) for name in ("numpy", "jax", "torch"))


@pytest.fixture(params=["numpy", "jax", "torch"], scope="session")
def library(request):
    return Library(request.param)


@pytest.fixture(params=["jax", "torch"], scope="session")
def autodiff(request):
    return Library(request.param)
