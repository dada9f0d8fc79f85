"""Random problems over all losses, score maps, models, sizes and scales: each must end with a status and say so.

    python benchmarks/robustness.py [COUNT] [--seed S]

Prints how many ended how, and every problem that raised, or has NaN at a time that its status calls reached.
"""

import argparse
import collections
import time
import warnings

import numpy as np

from polariscope import flow, scores
from polariscope.errors import InputError

SIZES = ((2, 2), (5, 3), (12, 4))


def problems(count, seed):
    """Problems in an order that does not depend on ``count``."""
    random = np.random.default_rng(seed)
    losses, maps, models = list(flow.losses.REGISTRY), list(scores.REGISTRY), list(flow.models.REGISTRY)
    for index in range(count):
        n, d = SIZES[random.integers(len(SIZES))]
        model = str(random.choice(models, p=[0.6, 0.1, 0.1, 0.1, 0.1]))
        scale = 10.0 ** random.uniform(-6, 3)
        problem = flow.random_problem(
            str(random.choice(losses)), scores=str(random.choice(maps)), n=n, d=n if model == "tied" else d, seed=index
        )
        for key in ("V0", "a0"):
            problem[key] = (10.0 ** random.uniform(-6, 3) * np.array(problem[key])).tolist()
        problem |= {"K0": (scale * random.normal(size=(n, 3))).tolist(), "q0": random.normal(size=3).tolist()}
        yield problem | {"model": model, "name": f"{index} {model} {problem['scores']} {problem['loss']} n={n}"}


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("count", nargs="?", type=int, default=1000)
    arguments.add_argument("--seed", type=int, default=0)
    given = arguments.parse_args()
    times = np.geomspace(1e-3, 1e3, 7)
    begun, ended, refused, bad = time.perf_counter(), collections.Counter(), 0, []
    todo = []
    for problem in problems(given.count, given.seed):
        try:
            flow.read_problem(problem, t=times)
            todo.append(problem)
        except InputError as error:  # a start at a pole, for instance
            refused += 1
            print(f"refused: {problem['name']}: {error}".splitlines()[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for result in flow.solve_many(todo, t=times, rtol=1e-6, progress=lambda d, n, _: d % 500 or print(d, "of", n)):
            ended[result.status] += 1
            if result.complete and not all(np.isfinite(v).all() for v in (result.s, result.a)):
                bad.append(result)
    print(f"{given.count} problems in {time.perf_counter() - begun:.0f} s: {dict(ended)}, {refused} refused")
    print(f"{len(bad)} call themselves complete and are not", *(f"\n  {r.name}: {r.message}" for r in bad))


if __name__ == "__main__":
    main()
