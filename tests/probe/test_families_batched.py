"""For models of every kind, a document gives the same numbers alone, in a batch, padded on either side and packed."""

import numpy as np
import pytest
import torch
from family_cases import CASES, VOCABULARY, build, ids

from polariscope.probe import checks
from polariscope.probe.body import body_of, evaluating
from polariscope.probe.documents import Tokens
from polariscope.probe.session import prepare
from polariscope.probe.statistics import Place

LENGTHS = (20, 14)
DOCUMENTS = [ids(seed, length) for seed, length in enumerate(LENGTHS)]
LAYOUTS = {
    "batch of two": [[(0, 0)], [(0, 0)]],
    "right": [[(0, 0)], [(1, 0)]],
    "left": [[(0, 2)], [(1, 8)]],
    "packed": [[(0, 0), (1, 20)]],
}
NAMES = [name for name, case in CASES.items() if case.kind in ("decoder", "encoder")]
WORDS = [str(i) for i in range(VOCABULARY)]


def able(case, layout):
    return {"packed": case.packs, "batch of two": True}.get(layout, case.pads)


def batch_of(rows):
    """Token ids and places from rows of (document, start)."""
    width = max(start + LENGTHS[document] for row in rows for document, start in row)
    batch = torch.zeros(len(rows), width, dtype=torch.long)
    places = []
    for index, row in enumerate(rows):
        for document, start in row:
            stop = start + LENGTHS[document]
            batch[index, start:stop] = torch.tensor(DOCUMENTS[document])
            places.append(Place(index, start, stop))
    return batch, places, [document for row in rows for document, _ in row]


@pytest.mark.parametrize(
    ("name", "layout"), [(name, layout) for name in NAMES for layout in LAYOUTS if able(CASES[name], layout)]
)
def test_alone_in_a_batch_padded_and_packed(name, layout):
    batch, places, documents = batch_of(LAYOUTS[layout])
    session = prepare(build(name), WORDS, Tokens("0", DOCUMENTS[0], LENGTHS[0]), (0.3,))
    with session.open() as measure:
        alone = [measure(Tokens("", tokens, len(tokens)))[1] for tokens in DOCUMENTS]
        found = measure.batch(batch, places)
    for measured, document in zip(found, documents, strict=True):
        np.testing.assert_allclose(measured.values, alone[document].values, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(measured.alpha, alone[document].alpha, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_whether_documents_can_be_packed_is_found_out(name):
    model = build(name)
    with evaluating(model):
        assert checks.keeps_documents_apart(body_of(model), DOCUMENTS[0]) == CASES[name].packs
