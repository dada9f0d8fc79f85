"""Intervals of a probe cover the truth as often as they say."""

import numpy as np
import pytest

from polariscope import models, probe
from polariscope.probe import corpora
from polariscope.probe.intervals import Intervals

POPULATION, SAMPLE, RESAMPLES = 1000, 100, 500
# Metrics of the planted model that differ from document to document.
METRICS = ("first_value_norm", "output_norm", "first_key_contribution", "first_key_norm")


@pytest.fixture(scope="module")
def population():
    """Metrics of every head in every document, (N, heads), and the largest activation, (N, layers), where they vary."""
    loaded = models.load("planted")
    texts = corpora.read("random-tokens", count=POPULATION)
    found = probe.scan(loaded.model, loaded.tokenizer, texts, max_length=16)
    columns = {name: found.document_heads[name] for name in METRICS} | {
        "massive_max": found.document_layers["massive_max"]
    }
    tables = {name: column.to_numpy().reshape(POPULATION, -1) for name, column in columns.items()}
    return {name: table[:, table.std(axis=0) > 1e-6] for name, table in tables.items()}


@pytest.mark.parametrize("confidence", [0.95, 0.8])
@pytest.mark.parametrize("name", [*METRICS, "massive_max"])
def test_intervals_over_documents_cover_the_mean_of_all(population, name, confidence):
    samples = np.column_stack([population[name], population[name].mean(axis=1)])
    truth, random = samples.mean(axis=0), np.random.default_rng(1)
    covered = np.zeros(samples.shape[1])
    for _ in range(RESAMPLES):
        chosen = samples[random.integers(POPULATION, size=SAMPLE)]
        _, low, high = Intervals(confidence, seed=int(random.integers(1 << 30))).mean(chosen)
        covered += (low <= truth) & (truth <= high)
    rate = covered / RESAMPLES
    assert abs(rate[-1] - confidence) <= 0.03  # of the mean over heads
    assert (np.abs(rate - confidence) <= 0.05).all()
