"""The square loss on the logistic path: equal to its own integration, and refused where it does not apply."""

import numpy as np
import pytest

from polariscope import flow

TIMES = [0.0, 0.01, 0.5, 2.0, 5.0, 20.0, 1e3]


@pytest.mark.parametrize("length", [0.5, 3.0])
@pytest.mark.parametrize("scores", ["softmax", "square", "sigmoid"])
def test_equals_the_flow_of_the_square_loss(scores, length):
    problem = flow.random_problem("square", scores=scores, n=5, d=3, seed=6)
    target = length * np.array(problem["target"])
    problem |= {"target": target.tolist(), "V0": (0.3 * np.outer(target, [0.1, -0.2, 0.3, 0.0, 0.2])).tolist()}
    one, other = flow.shared_path(problem, t=TIMES), flow.solve(problem, t=TIMES)
    np.testing.assert_allclose(one.s, other.s, rtol=0, atol=2e-9)
    np.testing.assert_allclose(one.u, other.u, rtol=0, atol=1e-8)
    np.testing.assert_allclose(one.objective, other.objective, rtol=1e-6, atol=1e-9)
    assert one.status == other.status == "converged"


def test_refused_where_the_path_is_another():
    problem = flow.random_problem("square", n=5, d=3, seed=6)
    with pytest.raises(ValueError, match="multiples of the target"):
        flow.shared_path(problem, t=TIMES)
    with pytest.raises(ValueError, match="square loss"):
        flow.shared_path(problem | {"loss": "logistic"}, t=TIMES)
    beyond = problem | {"V0": np.outer(problem["target"], [2.0] * 5).tolist()}
    with pytest.raises(ValueError, match="this side"):
        flow.shared_path(beyond, t=TIMES)
