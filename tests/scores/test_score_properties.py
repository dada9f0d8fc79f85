"""Declared properties are exactly the true ones: each declared one holds on every row, each other fails on some row."""

import numpy as np
import pytest

from polariscope import scores
from polariscope.scores import Properties

NAMES = list(scores.REGISTRY)
N = 6


def rows() -> np.ndarray:
    """Random rows, and rows where maps break: zero logits, all negative, all zero, Σa = 0."""
    rng = np.random.default_rng(0)
    random = rng.normal(scale=2.0, size=(300, N))
    with_zero = random[:60].copy()
    with_zero[:, 2] = 0.0
    pole = np.array([[1.0, -1.0, 2.0, -2.0, 4.0, -4.0]])
    return np.concatenate([random, with_zero, -np.abs(random[:20]), np.zeros((1, N)), pole])


def sums_to_one(m, a):
    s = m(a)
    return np.all(np.abs(s.sum(-1) - 1) <= 1e-13 * np.abs(s).sum(-1))


def non_negative(m, a):
    return np.all(m(a) >= 0)


def shift_invariant(m, a):
    both = m.admissible(a + 0.75)
    return np.allclose(m(a)[both], m(a + 0.75)[both], rtol=1e-12, atol=1e-14)


def full_support(m, a):
    return np.all(m(a) != 0)


def smooth(m, a):
    """Along a line the largest jump of Jᵀg between neighbours halves with the step, unless there is a kink."""
    rng = np.random.default_rng(1)
    g = rng.normal(size=N)
    for _ in range(5):
        start, end = np.full(N, 1.5), np.where(np.arange(N) < 2, -1.0, 1.5) + 0.1 * rng.normal(size=N)
        coarse, fine = (_largest_jump(m, start, end, g, points) for points in (2001, 4001))
        if fine > max(0.75 * coarse, 1e-12):
            return False
    return True


def _largest_jump(m, start, end, g, points):
    line = start + np.linspace(0, 1, points)[:, None] * (end - start)
    return np.abs(np.diff(m.vjp(line, np.broadcast_to(g, line.shape)), axis=0)).max()


LAWS = {law.__name__: law for law in (sums_to_one, non_negative, shift_invariant, full_support, smooth)}


def test_every_property_has_a_law():
    assert set(LAWS) == set(Properties.__dataclass_fields__)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("name", NAMES)
def test_declared_if_and_only_if_true(name, law):
    m = scores.get(name)
    a = rows()
    a = a[m.admissible(a)]
    assert len(a) > 300
    assert LAWS[law](m, a) == getattr(m.properties, law)


@pytest.mark.parametrize("name", NAMES)
def test_rows_without_a_value_are_not_admissible(name):
    m = scores.get(name)
    a = np.ones((3, N))
    a[1, 0] = np.nan
    where = np.ones((3, N), bool)
    where[2] = False
    assert m.admissible(a, where).tolist() == [True, False, False]


@pytest.mark.parametrize(("name", "a"), [("relu", [-1.0, -2.0]), ("l1", [0.0, 0.0]), ("square", [0.0, -0.0])])
def test_dead_rows_have_weight_and_gradient_zero(name, a, libraries):
    for library in libraries:
        m = scores.get(name)
        assert library.run(m, a).tolist() == [0, 0]
        assert library.run(m.vjp, a, [1.0, 2.0]).tolist() == [0, 0]
        assert not library.run(m.admissible, a)


def test_sum_is_nan_at_its_pole_and_zero_without_keys(library):
    m, a = scores.get("sum"), np.array([[1.0, -1.0], [0.0, 0.0], [1.0, -1.0]])
    where = [[True, True], [True, True], [False, False]]
    expected = [[np.nan, np.nan], [np.nan, np.nan], [0.0, 0.0]]
    np.testing.assert_array_equal(library.run(m, a, where), expected)
    np.testing.assert_array_equal(library.run(m.vjp, a, a, where), expected)
    np.testing.assert_array_equal(library.run(m, a), [[np.nan, np.nan]] * 3)
