"""Names, refusals, functions of one's own, and what importing costs."""

import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from polariscope import scores
from polariscope.errors import InputError
from polariscope.scores import Properties

SOFTMAX = scores.get("softmax")
ROW = np.array([1.0, 2.0])


@pytest.mark.parametrize("name", list(scores.REGISTRY))
def test_a_map_describes_itself(name):
    m = scores.get(name)
    assert m.name == name
    assert m.summary == scores.REGISTRY.summaries()[name]
    assert "arXiv:" in m.source
    assert scores.get(m) is m
    assert hash(m) == hash(scores.get(name))


def test_the_documentation_states_the_declared_properties():
    page = (Path(__file__).parents[2] / "docs" / "scores.md").read_text(encoding="utf-8")
    cells = [[cell.strip() for cell in line.split(" | ")] for line in page.splitlines() if line.startswith("| `")]
    stated = {row[0].strip("| `"): [cell == "yes" for cell in row[2:7]] for row in cells if len(row) == 8}
    order = ("sums_to_one", "non_negative", "shift_invariant", "full_support", "smooth")
    assert stated == {n: [getattr(scores.get(n).properties, p) for p in order] for n in scores.REGISTRY}


def test_an_unknown_name_gets_its_neighbour():
    with pytest.raises(InputError, match="'softmax'"):
        scores.get("sofmax")


@pytest.mark.parametrize(
    ("a", "where", "message"),
    [
        ([1.0, 2.0], None, "list"),
        (np.array([1, 2]), None, "int64"),
        (np.array([1j, 2]), None, "complex"),
        (np.array(1.0), None, r"\(…, n\)"),
        (np.zeros((2, 0)), None, "n ≥ 1"),
        (ROW, np.array([0.0, -np.inf]), "finfo"),
        (ROW, np.array([1, 0]), "booleans"),
        (ROW, np.array([True, True, False]), "broadcasts"),
        (ROW, np.array([[True, True]]), "broadcasts"),
    ],
)
def test_bad_logits_and_masks_are_refused(a, where, message):
    with pytest.raises(InputError, match=message):
        SOFTMAX(a, where)
    with pytest.raises(InputError, match=message):
        SOFTMAX.vjp(a, a, where)


def test_a_gradient_of_another_shape_is_refused():
    with pytest.raises(InputError, match="shape of the logits"):
        SOFTMAX.vjp(ROW, np.ones((2, 2)))


@pytest.mark.parametrize("bias", [np.nan, np.inf, "x"])
def test_a_bias_that_is_no_number_is_refused(bias):
    with pytest.raises(InputError, match="bias"):
        scores.sigmoid_with_bias(bias)


def test_a_function_of_ones_own_in_jax_and_torch(autodiff):
    library = {"jax": lambda a: jax.nn.softmax(a), "torch": lambda a: torch.softmax(a, -1)}
    mine = scores.from_function(library[autodiff.name], name="mine", properties=Properties(sums_to_one=True))
    a, g = autodiff.array([[0.1, -2.0, 1.0]] * 2), autodiff.array([[1.0, 2.0, 3.0]] * 2)
    np.testing.assert_allclose(mine(a), SOFTMAX(a), rtol=1e-14)
    np.testing.assert_allclose(mine.vjp(a, g), SOFTMAX.vjp(a, g), rtol=1e-13)
    assert mine.properties == Properties(sums_to_one=True)
    with pytest.raises(InputError, match="named where"):
        mine(a, a > 0)


def test_a_function_of_ones_own_with_masks_under_jit():
    def cubic(a, where=None):
        f = jnp.abs(a) ** 3 if where is None else jnp.where(where, jnp.abs(a) ** 3, 0.0)
        return f / f.sum(-1, keepdims=True)

    mine = scores.from_function(cubic, name="cubic")
    a, where = jnp.array([1.0, 2.0, jnp.nan]), jnp.array([True, True, False])
    np.testing.assert_allclose(jax.jit(mine)(a, where), [1 / 9, 8 / 9, 0], rtol=1e-14)
    # J = diag(3s/a)(I − 1sᵀ) gives for g = (1, 0): (3·s₁/1)(1 − s₁), −(3·s₂/2)s₁
    g = jnp.array([1.0, 0.0, jnp.nan])
    np.testing.assert_allclose(mine.vjp(a, g, where), [3 / 9 * 8 / 9, -3 / 2 * 8 / 9 / 9, 0], rtol=1e-14)


def test_what_a_function_of_ones_own_cannot_do():
    mine = scores.from_function(lambda a: a[..., :1], name="short")
    with pytest.raises(InputError, match="shape"):
        mine(ROW)
    with pytest.raises(InputError, match="NumPy"):
        scores.from_function(lambda a: a, name="mine").vjp(ROW, ROW)
    with pytest.raises(InputError, match="callable"):
        scores.from_function("softmax", name="mine")  # pyright: ignore[reportArgumentType]


def test_importing_score_maps_loads_no_array_library():
    code = "import sys, polariscope.scores, polariscope.metrics; print({'numpy', 'jax', 'torch'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
