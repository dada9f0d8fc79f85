"""The default model against a float64 reference."""

import itertools

import numpy as np
import pytest
from float64_reference import head_metrics, maps

from polariscope import models, probe
from polariscope.probe import corpora

T, DOCUMENTS = 128, 2


@pytest.mark.real_model
def test_smollm2_equals_float64_head_by_head():
    loaded = models.load("smollm2-135m")
    result = probe.scan(loaded.model, loaded.tokenizer, corpora.read("pydoc"), max_length=T, limit=DOCUMENTS)
    every = (loaded.tokenizer(document.text).input_ids for document in corpora.read("pydoc"))
    texts = itertools.islice((ids[:T] for ids in every if len(ids) >= T), DOCUMENTS)
    expected = [list(maps(loaded.model, ids)) for ids in texts]
    for name in head_metrics(expected[0][0][:1]):
        wanted = np.stack([[head_metrics(layer)[name] for layer in document] for document in expected])
        got = result.document_heads[name].to_numpy().reshape(wanted.shape)
        np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-4 * max(1, wanted.max() / 10), err_msg=name)
    alpha = np.stack([[layer[:, :, 0].mean(axis=1) for layer in document] for document in expected])
    assert np.array_equal(result.document_heads["sink_rate"].to_numpy().reshape(alpha.shape), alpha > 0.3)
    assert result.summary["self_checks"]["causality"]["max_abs_difference"] == 0
    assert 0.4 < result.summary["metrics"]["sink_rate"]["value"] < 0.9
