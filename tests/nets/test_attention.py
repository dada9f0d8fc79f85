"""Laws of every registered attention kind, and agreement with independent code."""

import pytest
import torch
from torch.nn import functional

from polariscope import nets, scores
from polariscope.errors import InputError

KINDS = list(nets.REGISTRY)
SHAPE = (2, 3, 5, 4)  # B, H, T, d


@pytest.fixture
def qkv():
    generator = torch.Generator().manual_seed(7)
    return [torch.randn(SHAPE, generator=generator, dtype=torch.float64, requires_grad=True) for _ in range(3)]


@pytest.fixture
def mask():
    """Every query sees some keys, but query 0 sees none and nobody sees key 3."""
    visible = torch.rand(5, 5, generator=torch.Generator().manual_seed(1)) < 0.6
    visible[:, 1] = True
    visible[0], visible[:, 3] = False, False
    return visible


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_names_registered_parts(kind):
    entry = nets.REGISTRY.get(kind)
    assert entry.similarity in nets.SIMILARITIES
    assert entry.scores in scores.REGISTRY
    assert nets.REGISTRY.summaries()[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_rows_have_the_declared_properties(kind, qkv, mask):
    _, weights = nets.attention(kind, *qkv, mask=mask)
    rows = weights[..., 1:, :]  # row 0 sees no key
    properties = scores.get(nets.REGISTRY.get(kind).scores).properties
    if properties.sums_to_one:
        torch.testing.assert_close(rows.sum(-1), torch.ones(2, 3, 4, dtype=torch.float64), rtol=0, atol=1e-12)
    if properties.non_negative:
        assert (rows >= 0).all()
    if properties.full_support:
        assert (rows[mask[1:].expand_as(rows)] != 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_the_output_is_the_weighted_sum_of_values(kind, qkv, mask):
    output, weights = nets.attention(kind, *qkv, mask=mask)
    expected = torch.einsum("bhij,bhje->bhie", weights, qkv[2])
    torch.testing.assert_close(output, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_hidden_keys_have_no_weight_and_no_gradient(kind, qkv, mask):
    q, k, v = qkv
    output, weights = nets.attention(kind, q, k, v, mask=mask)
    assert (weights[~mask.expand_as(weights)] == 0).all()
    output.square().sum().backward()
    assert (v.grad[..., 3, :] == 0).all()
    assert k.grad is None or (k.grad[..., 3, :] == 0).all()
    assert k.grad is None or torch.isfinite(k.grad).all()


@pytest.mark.parametrize("kind", KINDS)
def test_a_query_that_sees_nothing_gets_zero_and_no_gradient(kind, qkv, mask):
    q, k, v = qkv
    output, weights = nets.attention(kind, q, k, v, mask=mask)
    assert (output[..., 0, :] == 0).all()
    assert (weights[..., 0, :] == 0).all()
    output[..., 1:, :].sum().backward(retain_graph=True)
    assert q.grad is None or (q.grad[..., 0, :] == 0).all()
    before = v.grad.clone()
    output[..., 0, :].sum().backward()
    assert (v.grad == before).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("masked", [False, True])
def test_gradients_are_those_of_finite_differences(kind, masked, mask):
    generator = torch.Generator().manual_seed(3)
    tensors = [torch.randn(1, 2, 5, 3, generator=generator, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    visible = mask if masked else None
    assert torch.autograd.gradcheck(lambda q, k, v: nets.attention(kind, q, k, v, visible)[0], tensors)


@pytest.mark.parametrize("kind", KINDS)
def test_permuting_the_keys_permutes_the_weights_and_keeps_the_output(kind, qkv, mask):
    q, k, v = qkv
    order = torch.tensor([3, 0, 4, 2, 1])
    output, weights = nets.attention(kind, q, k, v, mask)
    moved_output, moved_weights = nets.attention(kind, q, k[..., order, :], v[..., order, :], mask[:, order])
    torch.testing.assert_close(moved_output, output, rtol=0, atol=1e-12)
    torch.testing.assert_close(moved_weights, weights[..., order], rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_the_module_and_the_function_are_the_same(kind, qkv, mask):
    for of_function, of_module in zip(nets.attention(kind, *qkv, mask), nets.Attention(kind)(*qkv, mask), strict=True):
        assert torch.equal(of_function, of_module)


@pytest.mark.parametrize("masked", [False, True])
def test_softmax_is_the_attention_of_torch(masked, qkv, mask):
    visible = mask if masked else None
    output, _ = nets.attention("softmax", *qkv, mask=visible)
    expected = functional.scaled_dot_product_attention(*qkv, attn_mask=visible)
    torch.testing.assert_close(output, expected, rtol=0, atol=1e-12)


def test_sigmoid_kinds_against_closed_forms(qkv):
    q, k, v = qkv
    a = torch.einsum("bhid,bhjd->bhij", q, k) / 2  # √d = 2
    r = 1 / (1 + torch.exp(-a))
    torch.testing.assert_close(nets.attention("sigmoid", q, k, v)[1], r, rtol=0, atol=1e-12)
    expected = r / r.sum(-1, keepdim=True)
    torch.testing.assert_close(nets.attention("sigmoid-normalized", q, k, v)[1], expected, rtol=0, atol=1e-12)


def test_uniform_needs_no_queries_and_keys(qkv, mask):
    q, k, v = qkv
    output, weights = nets.attention("uniform", q, k, v, mask)
    expected = (mask.double() / mask.sum(-1, keepdim=True).clamp(min=1)).expand_as(weights)
    torch.testing.assert_close(weights, expected, rtol=0, atol=1e-15)
    output.sum().backward()
    assert q.grad is None or (q.grad == 0).all()


def test_queries_and_keys_may_differ_in_number():
    q, k, v = torch.ones(2, 4), torch.ones(6, 4), torch.ones(6, 3)
    output, weights = nets.attention("softmax", q, k, v)
    assert output.shape == (2, 3)
    assert weights.shape == (2, 6)


@pytest.mark.parametrize(
    "shapes",
    [((5, 4), (5, 3), (5, 4)), ((5, 4), (6, 4), (5, 4)), ((4,), (5, 4), (5, 4)), ((2, 5, 4), (3, 5, 4), (5, 4))],
)
def test_shapes_that_do_not_fit_are_refused(shapes):
    with pytest.raises(InputError, match="shapes of queries, keys and values"):
        nets.attention("softmax", *(torch.zeros(shape) for shape in shapes))


def test_a_float_mask_is_refused(qkv):
    with pytest.raises(InputError, match="mask"):
        nets.attention("softmax", *qkv, mask=torch.zeros(5, 5))


def test_an_unknown_kind_is_refused_with_the_nearest_name(qkv):
    with pytest.raises(InputError, match="did you mean 'softmax'"):
        nets.attention("softmacks", *qkv)
