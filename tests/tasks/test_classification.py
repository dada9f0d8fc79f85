"""Laws of the classification task's sequences."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from polariscope import tasks
from polariscope.errors import InputError

SIZES = [(41, 11, 4), (81, 11, 4), (161, 21, 4), (7, 3, 2), (13, 2, 3)]


@pytest.mark.parametrize(("vocabulary", "length", "labels"), SIZES)
def test_sequences_are_distinct_tokens_of_one_group_then_cls(vocabulary, length, labels):
    task = tasks.Classification(vocabulary, length, labels)
    batch = task.draw(500, tasks.stream(0, "test"))
    assert batch.ids.shape == (500, length)
    assert batch.targets.shape == (500, 1)
    assert (batch.ids[:, -1] == 0).all()
    content = batch.ids[:, :-1]
    group = (vocabulary - 1) // labels
    assert ((content - 1) // group == batch.targets).all()
    assert (content.sort(-1).values.diff(dim=-1) > 0).all()
    assert content.min() == 1
    assert content.max() == vocabulary - 1


@given(seed=st.integers(0, 2**63), group=st.integers(1, 12), labels=st.integers(2, 5), data=st.data())
@settings(max_examples=40, deadline=None)
def test_any_admissible_size_can_be_drawn(seed, group, labels, data):
    length = data.draw(st.integers(2, group + 1))
    task = tasks.Classification(1 + group * labels, length, labels)
    batch = task.draw(20, tasks.stream(seed, "any"))
    assert all(len(set(row)) == length for row in batch.ids.tolist())
    assert ((batch.ids[:, :-1] - 1) // group == batch.targets).all()


def test_groups_tokens_and_places_are_uniform():
    task = tasks.Classification(41, 6)
    batch = task.draw(20_000, tasks.stream(3, "uniform"))
    assert chisquare(batch.targets.flatten().bincount()).pvalue > 1e-3
    for place in (0, 4):
        assert chisquare(batch.ids[:, place].bincount(minlength=41)[1:]).pvalue > 1e-3


def test_the_same_seed_gives_the_same_sequences_and_another_seed_others():
    task = tasks.Classification()
    first, again = (task.draw(50, tasks.stream(1, "training data")) for _ in range(2))
    other = task.draw(50, tasks.stream(2, "training data"))
    assert torch.equal(first.ids, again.ids)
    assert not torch.equal(first.ids, other.ids)


@pytest.mark.parametrize(
    "options", [{"vocabulary": 42}, {"vocabulary": 1}, {"length": 12}, {"length": 1}, {"labels": 1}, {"vocabulary": -7}]
)
def test_sizes_that_cannot_be_are_refused(options):
    with pytest.raises(InputError, match="classification"):
        tasks.Classification(**options)


def test_loss_and_accuracy():
    task = tasks.Classification()
    logits = torch.tensor([[[2.0, 0, 0, 0]], [[0, 1.0, 0, 0]], [[0, 0, 0, 3.0]]], dtype=torch.float64)
    targets = torch.tensor([[0], [2], [3]])
    expected = sum(row[0].logsumexp(-1) - row[0][t[0]] for row, t in zip(logits, targets, strict=True)) / 3
    assert task.loss(logits, targets).item() == pytest.approx(expected.item(), abs=1e-12)
    assert task.accuracy(logits, targets) == pytest.approx(2 / 3)
