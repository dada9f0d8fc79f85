"""Label mixing against a loop over pairs, Wilson's interval against SciPy's, and a model whose answer is known."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy.stats import binomtest

from polariscope import nets, tasks
from polariscope.errors import InputError
from polariscope.influence import LabelMixing, mix_labels


def network(kind="softmax"):
    config = nets.TransformerConfig(
        vocabulary=41, length=11, outputs=4, attention=kind, layers=2, heads=2, dim=16, mlp=True
    )
    return nets.Transformer(config, tasks.stream(2, "initialization")).double()


@pytest.fixture(scope="module")
def batch():
    return tasks.Classification().draw(200, tasks.stream(0, "evaluation data"))


def mix(model, batch, **options):
    return mix_labels(model, batch.ids, batch.targets[:, 0], tasks.stream(0, "mixing"), **options)


@torch.no_grad()
def wins(model, ids, labels, source, rest, layer, head):
    """For each token of sequence ``source``, most attended first: does its label win in the rest of ``rest``?"""
    ranking = []
    for sequence in (ids[source], ids[rest]):
        row = model(sequence[None], weights=True).weights[layer][0, head, -1, :-1]
        ranking.append(row.argsort(descending=True).tolist())
    others = [ids[rest, i].item() for i in ranking[1][1:]]
    results = []
    for i in ranking[0]:
        mixed = torch.tensor([[*others, ids[source, i].item(), 0]])
        results.append(model(mixed).logits[0, -1].argmax().item() == labels[source].item())
    return results


@pytest.mark.parametrize("kind", ["softmax", "sigmoid"])
@pytest.mark.parametrize(("layer", "head"), [(0, 1), (-1, 0)])
def test_outcomes_are_those_of_a_loop_over_pairs(kind, layer, head, batch):
    # Without positions the prediction does not depend on the shuffle, so the loop needs none.
    model = network(kind)
    mixed = mix(model, batch, layer=layer, head=head, pairs=16)
    labels = batch.targets[:, 0]
    for number, (a, b) in enumerate(mixed.pairs.tolist()):
        for role, (source, rest) in enumerate([(a, b), (b, a)]):
            expected = wins(model, batch.ids, labels, source, rest, layer, head)
            assert mixed.outcomes["most"][number, role] == expected[0]
            assert mixed.outcomes["least"][number, role] == expected[-1]
            assert mixed.outcomes["random"][number, role] in expected
    assert 0 < mixed.rate("random") < 1  # so that the comparison above is about something


def test_pairs_have_different_labels_drawn_uniformly(batch):
    keep = (batch.targets[:, 0] != 3) | (torch.arange(200) < 20)  # label 3 becomes rare
    mixed = mix(network(), batch[keep], pairs=3000)
    labels = batch[keep].targets[:, 0].numpy()[mixed.pairs]
    assert (labels[:, 0] != labels[:, 1]).all()
    assert np.bincount(labels.ravel(), minlength=4) / labels.size == pytest.approx([0.25] * 4, abs=0.03)


def test_it_repeats(batch):
    first, again = (mix(network(), batch, pairs=30) for _ in range(2))
    assert (first.pairs == again.pairs).all()
    assert all((first.outcomes[pick] == again.outcomes[pick]).all() for pick in first.outcomes)


class Rule:
    """Attends to the largest token id; answers with the most frequent group, or with the rarest."""

    config = SimpleNamespace(layers=1, heads=1)

    def __init__(self, rarest):
        self.sign = -1 if rarest else 1

    def __call__(self, ids, rows=slice(None), weights=False):
        groups = torch.nn.functional.one_hot((ids[:, :-1] - 1) // 10, 4).sum(1)
        groups[groups == 0] = 5 if self.sign < 0 else 0  # a group that is absent is not the answer
        return nets.Output((self.sign * groups.double())[:, None], (ids.double()[:, None, None],))


@pytest.mark.parametrize(("rarest", "rate"), [(True, 1.0), (False, 0.0)])
def test_a_rule_of_known_answer(rarest, rate, batch):
    mixed = mix(Rule(rarest), batch, pairs=50)
    assert [mixed.rate(pick) for pick in ("most", "random", "least")] == [rate] * 3
    assert mixed.interval()[0 if rate == 0 else 1] == rate


@pytest.mark.parametrize(("count", "total"), [(0, 10), (3, 10), (250, 500), (500, 500), (1, 1)])
def test_the_interval_is_wilsons(count, total):
    outcomes = np.zeros((total, 2), dtype=bool)
    outcomes[:count] = True
    expected = binomtest(count, total).proportion_ci(0.9, method="wilson")
    interval = LabelMixing(np.zeros((total, 2), dtype=int), {"most": outcomes}).interval(confidence=0.9)
    assert interval == pytest.approx((expected.low, expected.high), abs=1e-12)


@pytest.mark.parametrize(
    ("options", "what"),
    [({"layer": 2}, "layer"), ({"layer": -3}, "layer"), ({"head": 2}, "head"), ({"pairs": 0}, "pairs")],
)
def test_places_that_are_not_there_are_refused(options, what, batch):
    with pytest.raises(InputError, match=what):
        mix(network(), batch, **options)


def test_one_label_cannot_be_mixed(batch):
    with pytest.raises(InputError, match="labels to mix"):
        mix(network(), batch[batch.targets[:, 0] == 1])


def test_shapes_that_do_not_fit_are_refused(batch):
    with pytest.raises(InputError, match="sequences to mix"):
        mix_labels(network(), batch.ids, batch.targets, tasks.stream(0, "mixing"))


def test_an_unknown_pick_is_refused(batch):
    with pytest.raises(InputError, match="did you mean 'most'"):
        mix(network(), batch, pairs=2).rate("mast")
