"""The default model against a float64 reference: every metric of every head in every document."""

import itertools

import numpy as np
import pytest
from float64_reference import all_metrics, layers, weights

from polariscope import models, probe
from polariscope.probe import corpora
from polariscope.probe.statistics import metric_names

T, DOCUMENTS, EPS = 64, 50, 0.3
# Numbers that jump: an indicator or a count may fall on either side of its threshold within this distance of it.
JUMPS = {"sink_rate": 1, "sink_rate_late": 1, "sink_queries": 2 / T, "sink_keys": 1, "sink_keys_all_rows": 1}
COUNTED = {"share_below_0.001": 3e-3, "share_above_0.1": 3e-3}


@pytest.mark.real_model
def test_smollm2_equals_float64_head_by_head():
    loaded = models.load("smollm2-135m")
    result = probe.scan(loaded.model, loaded.tokenizer, corpora.read("pydoc"), max_length=T, limit=DOCUMENTS)
    every = (loaded.tokenizer(document.text).input_ids for document in corpora.read("pydoc"))
    texts = list(itertools.islice((ids[:T] for ids in every if len(ids) >= T), DOCUMENTS))
    assert len(texts) == DOCUMENTS
    weight = weights(loaded.model)
    tables, largest = [], []
    for ids in texts:
        found = list(layers(loaded.model, ids, weight))
        tables.append([all_metrics(layer, EPS) for layer in found])
        largest.append([np.abs(layer["hidden"]).max() for layer in found])
    assert set(tables[0][0]) == set(metric_names((EPS,)))
    for name in metric_names((EPS,)):
        wanted = np.array([[layer[name] for layer in document] for document in tables], dtype=float)
        got = result.document_heads[name].to_numpy().reshape(wanted.shape)
        error = np.abs(got - wanted)
        if name in JUMPS:
            assert error.max() <= JUMPS[name] + 1e-12
            assert (error > 0).mean() < 1e-4, name
        elif name in COUNTED:
            assert error.max() <= COUNTED[name], name
            assert error.mean() < 1e-6, name
        else:
            np.testing.assert_array_less(error, 1e-4 * np.maximum(1, np.abs(wanted)), err_msg=name)
            mean = result.heads[name].to_numpy()
            np.testing.assert_allclose(mean, wanted.mean(axis=0).ravel(), rtol=1e-4, atol=1e-4, err_msg=name)
    by_layer = result.document_layers["massive_max"].to_numpy().reshape(DOCUMENTS, -1)
    np.testing.assert_allclose(by_layer, largest, rtol=1e-4)
    assert result.summary["self_checks"]["causality"]["max_abs_difference"] == 0
    assert 0.4 < result.summary["metrics"]["sink_rate"]["value"] < 0.9
