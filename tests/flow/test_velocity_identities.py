"""The velocity at random states: replicator form, and the motion of the predictor with C(s) squared."""

import pytest

from polariscope import flow


@pytest.mark.parametrize("loss", list(flow.losses.REGISTRY))
@pytest.mark.parametrize("scale", [0.1, 2.0])
def test_softmax_has_replicator_form_for_every_loss(loss, scale):
    for seed in range(3):
        problem = flow.random_problem(loss, n=6, d=4, scale=scale, seed=seed)
        assert flow.replicator_residual(problem) < 1e-11


@pytest.mark.parametrize("scores", ["sigmoid", "square", "l1", "identity"])
def test_other_maps_do_not(scores):
    assert flow.replicator_residual(flow.random_problem("logistic", scores=scores, n=6, seed=1)) > 1e-3


def test_the_predictor_moves_with_the_square_of_the_covariance():
    for seed in range(5):
        problem = flow.random_problem("square", n=6, d=4, seed=seed)
        assert flow.predictor_residual(problem, power=2) < 1e-11
        assert flow.predictor_residual(problem, power=1) > 1e-3
