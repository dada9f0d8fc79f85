"""Signed distances to kinks: across a change of sign the Jacobian jumps, and it jumps nowhere else."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from polariscope import scores

NAMES = list(scores.REGISTRY)
KINKED = [name for name in NAMES if not scores.get(name).properties.smooth]
N, POINTS = 4, 4001


def jacobians(m, rows):
    """J at each row, (m, n, n), column by column of Jᵀ."""
    return np.stack([m.vjp(rows, np.broadcast_to(e, rows.shape)) for e in np.eye(rows.shape[-1])], axis=1)


def lines(seed=0):
    """Eight straight lines (POINTS, n) on which key 0 keeps a positive logit, so that no row is dead."""
    rng = np.random.default_rng(seed)
    for _ in range(8):
        start, end = rng.normal(scale=1.5, size=(2, N))
        start[0], end[0] = 1.0, 1.5
        yield start + np.linspace(0, 1, POINTS)[:, None] * (end - start)


@pytest.mark.parametrize("name", NAMES)
def test_maps_without_kinks_have_no_distances(name, library):
    m, a = scores.get(name), np.random.default_rng(1).normal(size=(3, N))
    shape = library.run(m.kinks, a).shape
    assert shape == ((3, 0) if m.properties.smooth else (3, N))
    assert library.run(m.kinks, a[0]).shape == shape[1:]


@pytest.mark.parametrize("name", KINKED)
def test_the_jacobian_jumps_where_a_sign_changes_and_nowhere_else(name):
    """On a line with steps h, jumps across a change of sign do not shrink with h; all others are below C·h."""
    m, crossings = scores.get(name), 0
    for line in lines():
        signs = np.sign(m.kinks(line))
        crossed = (np.diff(signs, axis=0) != 0).any(axis=1)
        jump = np.abs(np.diff(jacobians(m, line), axis=0)).max(axis=(1, 2))
        assert (jump[crossed] > 0.1).all()
        assert (jump[~crossed] < 200 / POINTS).all()
        crossings += crossed.sum()
    assert crossings >= 5


@pytest.mark.parametrize("name", KINKED)
def test_one_sided_jacobians_at_a_kink_differ_and_are_limits(name):
    """The kink is located by halving; Jacobians at distances δ and δ/10 of one side agree, of two sides do not."""
    m = scores.get(name)
    for line in lines():
        signs = np.sign(m.kinks(line))
        for i, j in np.argwhere(np.diff(signs, axis=0) != 0):
            low, high = line[i], line[i + 1]
            for _ in range(60):
                middle = (low + high) / 2
                same = np.sign(m.kinks(middle))[j] == signs[i, j]
                low, high = (middle, high) if same else (low, middle)
            way = line[i + 1] - line[i]
            near, far = 1e-4 * way, 1e-3 * way
            before, after = jacobians(m, np.array([low - near, high + near]))
            before_far, after_far = jacobians(m, np.array([low - far, high + far]))
            assert np.abs(before - after).max() > 0.1
            np.testing.assert_allclose(before, before_far, atol=1e-4)
            np.testing.assert_allclose(after, after_far, atol=1e-4)


def test_distances_of_known_rows():
    a = np.array([1.5, 0.9, 0.4, -1.3])
    for name in ("relu", "relu-elementwise", "l1"):
        np.testing.assert_array_equal(scores.get(name).kinks(a), a)
    np.testing.assert_allclose(scores.get("sparsemax").kinks(a), a - 0.7, atol=1e-15)  # Σ max(a − 0.7, 0) = 0.8 + 0.2
    np.testing.assert_allclose(scores.get("sparsemax").kinks(np.array([1e300, 0.0])), [1, -1e300], rtol=1e-15)


@pytest.mark.parametrize("name", KINKED)
def test_distances_are_in_the_units_of_the_logits_at_any_temperature(name):
    """Along a line they have slope ±1 per unit of a, for keys without weight, whatever the temperature."""
    a = np.array([2.0, 1.9, -6.0])
    for value in (0.5, 1.0, 3.0):
        m = scores.temperature(scores.get(name), value)
        moved = m.kinks(a + np.array([0, 0, 0.25])) - m.kinks(a)
        np.testing.assert_allclose(moved, [0, 0, 0.25], atol=1e-14)


def test_distances_of_sparsemax_agree_with_its_support_and_have_a_gradient():
    m = scores.get("sparsemax")
    a = np.random.default_rng(2).normal(size=(500, 5))
    np.testing.assert_array_equal(m.kinks(a) > 0, m(a) > 0)
    row = jnp.array([1.5, 0.9, 0.4, -1.3])
    slopes = jax.jit(jax.jacfwd(m.kinks))(row)  # a − τ, and ∂τ/∂a is the mean over the support
    np.testing.assert_allclose(slopes, np.eye(4) - np.array([0.5, 0.5, 0, 0]), atol=1e-15)


def test_a_function_of_ones_own_is_given_the_benefit_of_the_doubt():
    assert scores.from_function(jnp.abs, name="mine").kinks(jnp.ones((2, 3))).shape == (2, 0)
