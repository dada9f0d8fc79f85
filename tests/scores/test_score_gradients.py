"""The closed-form pullback is what autodiff gives: on smooth rows, at kinks, behind masks, under jit."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from polariscope import scores

NAMES = list(scores.REGISTRY)


@pytest.fixture(scope="module")
def case():
    """Rows (40, 5) with exact zeros, ties, and a row of negative logits; gradients; a mask with an empty row."""
    rng = np.random.default_rng(2)
    a = rng.normal(loc=0.3, scale=1.5, size=(40, 5))
    a[3, 1], a[4, :2], a[5, 2:] = 0.0, 1.25, -0.5
    a[6] = -np.abs(a[6])
    where = rng.random(a.shape) < 0.7
    where[7] = False
    return a, rng.normal(size=a.shape), where


def close(x, y):
    scale = 1 + np.abs(y).max(-1, keepdims=True)
    np.testing.assert_allclose(x / scale, y / scale, rtol=0, atol=1e-12)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_pullback_is_autodiff(name, masked, case, autodiff):
    m, (a, g, where) = scores.get(name), case
    where = where if masked else None
    expected = autodiff.pullback(m, a, g, where)
    close(autodiff.run(m.vjp, a, g, where), expected)
    close(m.vjp(a, g, where), expected)


@pytest.mark.parametrize("name", NAMES)
def test_pullback_is_the_limit_of_differences(name, case):
    m, (a, g, where) = scores.get(name), case
    a = np.where(a == 0, 0.5, a)  # away from kinks
    h = 1e-6
    for j in range(a.shape[-1]):
        step = h * (np.arange(a.shape[-1]) == j)
        slope = ((m(a + step, where) - m(a - step, where)) * g).sum(-1) / (2 * h)
        exact = m.vjp(a, g, where)[:, j]
        np.testing.assert_allclose(slope, exact, rtol=1e-5, atol=1e-7 * np.abs(m(a, where)).max() ** 2)


@pytest.mark.parametrize("name", NAMES)
def test_gradcheck(name, case):
    m, (a, _, where) = scores.get(name), case
    a = torch.tensor(np.where(a == 0, 0.5, a)[:7], requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: m(x, torch.tensor(where[:7])), (a,))


@pytest.mark.parametrize("name", NAMES)
def test_jax_transformations(name, case):
    m, (a, g, where) = scores.get(name), case
    a, g, where = map(jnp.array, (a[:9], g[:9], where[:9]))

    def everything(a, g, where):
        forward = jax.jvp(lambda x: m(x, where), (a,), (g,))[1]
        return m(a, where), m.vjp(a, g, where), forward, jax.jacfwd(m.vjp)(a, g, where)

    with jax.debug_nans(True):
        weights, pulled, forward, second = map(np.asarray, jax.jit(jax.vmap(everything))(a, g, where))
    a, g, where = map(np.asarray, (a, g, where))
    close(weights, m(a, where))
    close(pulled, m.vjp(a, g, where))
    columns = np.eye(a.shape[-1])[:, None] * np.ones_like(a)
    close(forward, (np.array([m.vjp(a, column, where) for column in columns]) * g).sum(-1).T)  # ⟨Jᵀeᵢ, g⟩ = (Jg)ᵢ
    assert np.isfinite(second).all()


@pytest.mark.parametrize("name", NAMES)
def test_hidden_logits_reach_neither_weights_nor_gradients(name, case, autodiff):
    m, (a, g, where) = scores.get(name), case
    for hidden in (np.nan, np.inf, -np.inf, np.finfo(float).min):
        dirty, g_dirty = np.where(where, a, hidden), np.where(where, g, hidden)
        pulled = autodiff.pullback(m, dirty, g, where)
        np.testing.assert_array_equal(autodiff.run(m, dirty, where), autodiff.run(m, a, where))
        np.testing.assert_array_equal(autodiff.run(m.vjp, dirty, g_dirty, where), autodiff.run(m.vjp, a, g, where))
        close(pulled, m.vjp(a, g, where))
        assert not pulled[~where].any()
