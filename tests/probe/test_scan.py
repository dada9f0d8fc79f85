"""The whole probe on models whose answer is known, and on what goes wrong."""

import numpy as np
import pandas as pd
import pytest
import torch
from float64_reference import head_metrics, maps
from tiny_models import build, text, tokenizer

from polariscope import metrics, models, probe
from polariscope.errors import InputError
from polariscope.files import read_json
from polariscope.probe.statistics import metric_names

T = 48
TEXTS = [text(T + extra, seed) for seed, extra in enumerate((0, 30, 2, 100, 1))]


def scan(model=None, texts=TEXTS, **options):
    return probe.scan(model or build("llama"), tokenizer(), texts, **{"max_length": T, **options})


@pytest.fixture(scope="module")
def planted():
    return models.load("planted")


@pytest.fixture(scope="module")
def planted_result(planted):
    length = 200
    texts = [text(length + seed, seed) for seed in range(6)]
    return probe.scan(planted.model, planted.tokenizer, texts, max_length=length, eps=(0.3, 0.5))


def test_planted_heads_are_recovered(planted, planted_result):
    length, query = 200, np.arange(1, 201)
    for row in planted_result.heads.itertuples():
        truth = planted.extras["truth"]["heads"][row.layer][row.head]
        first, entropy = truth.first_key_share(query), truth.entropy(query)
        alpha = truth.map(length)[:, 0].sum() / length
        assert row.first_key_share == pytest.approx(first.mean(), abs=2e-6)
        assert row.first_key_mean == pytest.approx(alpha, abs=2e-6)
        assert row.sink_rate == (alpha > 0.3)
        assert row.entropy == pytest.approx(entropy[1:].mean(), abs=1e-5)
        assert row.normalized_entropy == pytest.approx((entropy[1:] / np.log(query[1:])).mean(), abs=1e-5)
        assert row.max_weight == pytest.approx(truth.max_weight(query).mean(), abs=2e-6)
        assert row.last_query_first_key == pytest.approx(first[-1], abs=2e-6)
        assert row.null_mass == pytest.approx(0, abs=1e-6)


def test_planted_massive_activation_is_recovered(planted, planted_result):
    truth = planted.extras["truth"]["massive"]
    layers = planted_result.layers.set_index("layer")
    assert list(layers.index[layers.massive_flag]) == list(truth.layers) == planted_result.summary["massive_layers"]
    for layer in truth.layers:
        row = layers.loc[layer]
        assert row.massive_max == row.massive_max_low == row.massive_max_high == truth.value
        assert (row.massive_channel, row.massive_position) == (truth.channel, truth.position)
        assert row.massive_share == 1
        assert row.massive_ratio > 1000


def test_planted_positions(planted, planted_result):
    table = planted_result.positions
    assert len(table) == 4 * 200
    for layer in range(4):
        expected = np.mean(
            [truth.map(200).sum(axis=0) / np.arange(200, 0, -1) for truth in planted.extras["truth"]["heads"][layer]],
            axis=0,
        )
        np.testing.assert_allclose(table[table.layer == layer].alpha, expected, rtol=0, atol=5e-6)
    first = table[(table.layer == 0) & (table.position == 0)].iloc[0]
    assert first.alpha_top_head == pytest.approx(0.9, abs=0.01)
    assert first.sink_rate == 0.5  # the heads with shares 0.9 and 0.5 of four


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_heads_equal_a_float64_reference(dtype):
    model = build("llama", dtype)
    result = scan(model)
    values = [[head_metrics(attention) for attention in maps(build("llama"), list(t.encode())[:T])] for t in TEXTS]
    for name in values[0][0]:
        expected = np.stack([[layer[name] for layer in document] for document in values])
        got = result.document_heads[name].to_numpy().reshape(expected.shape)
        # The rotary table is float32 in the model and in the reference alike.
        np.testing.assert_allclose(got, expected, rtol=0, atol=2e-5 if dtype == torch.float32 else 2e-6, err_msg=name)
        np.testing.assert_allclose(result.heads[name], expected.mean(axis=0).ravel(), rtol=0, atol=2e-5, err_msg=name)


def test_block_size_does_not_matter():
    one, other = scan(rows=5), scan()
    for table in ("heads", "layers", "positions", "documents", "document_heads"):
        pd.testing.assert_frame_equal(getattr(one, table), getattr(other, table), rtol=0, atol=1e-5)


def test_same_input_same_result():
    one, other = scan(), scan()
    pd.testing.assert_frame_equal(one.heads, other.heads)
    assert one.summary["metrics"] == other.summary["metrics"]


def test_columns():
    result = scan(eps=(0.3, 0.1))
    names = metric_names((0.3, 0.1))
    assert names[6:8] == ["sink_rate", "sink_rate_0.1"]
    assert list(result.heads) == [
        *("layer", "head", "attention", "kv_head", "engine"),
        *(n + end for n in names for end in ("", "_low", "_high")),
        *("top_key", "top_key_documents", "top_token", "top_token_documents"),
        *("documents", "bad_rows"),
    ]
    assert len(result.heads) == 12
    assert (result.heads["sink_rate_0.1"] >= result.heads["sink_rate"]).all()
    for name in names:
        assert (result.heads[f"{name}_low"] <= result.heads[name] + 1e-12).all()
        assert (result.heads[name] <= result.heads[f"{name}_high"] + 1e-12).all()
    assert set(result.summary["metrics"]) == {*names, "massive_max"}


def test_intervals_can_be_made_again_from_the_files(tmp_path):
    scan(confidence=0.8, seed=5).save(tmp_path)
    heads, by_document, documents = (
        pd.read_parquet(tmp_path / f"{name}.parquet") for name in ("heads", "document_heads", "documents")
    )
    samples = by_document["entropy"].to_numpy().reshape(len(TEXTS), -1)
    low, high = metrics.bootstrap_interval(samples, confidence=0.8, seed=5)
    np.testing.assert_array_equal(heads["entropy_low"], low)
    np.testing.assert_array_equal(heads["entropy_high"], high)
    summary = read_json(tmp_path / "results.json")
    low, high = metrics.bootstrap_interval(documents["entropy"].to_numpy(), confidence=0.8, seed=5)
    assert summary["metrics"]["entropy"] == {"value": pytest.approx(samples.mean()), "low": low, "high": high}
    by_layer = pd.read_parquet(tmp_path / "document_layers.parquet")
    layers = pd.read_parquet(tmp_path / "layers.parquet")
    np.testing.assert_allclose(layers["massive_max"], by_layer.groupby("layer")["massive_max"].mean())
    assert len(pd.read_parquet(tmp_path / "positions.parquet")) == 3 * T


def test_one_document_has_no_interval():
    result = scan(limit=1)
    assert result.heads["entropy"].notna().all()
    assert result.heads[["entropy_low", "entropy_high"]].isna().all(axis=None)


def test_short_documents_are_skipped_and_counted():
    seen = []
    texts = [text(T - 1), TEXTS[0], "", TEXTS[1], text(10), TEXTS[2]]
    result = scan(texts=texts, limit=2, progress=seen.append)
    assert seen == [1, 2]
    assert result.summary["documents"] == {"measured": 2, "too_short": 2, "broken": []}  # the fifth was never reached
    assert result.documents["status"].tolist() == ["measured", "measured", "too short", "too short"]
    assert result.documents["id"].tolist() == ["1", "3", "0", "2"]
    assert result.documents["n_tokens"].tolist() == [T, T + 30, T - 1, 0]


def test_a_limit_never_reads_further_than_it_must():
    def endless():
        while True:
            yield TEXTS[0]

    assert scan(texts=endless(), limit=3).summary["documents"]["measured"] == 3


@pytest.mark.parametrize(("texts", "longest"), [([], 0), ([text(20), text(31)], 31)])
def test_no_document_long_enough(texts, longest):
    with pytest.raises(InputError, match=f"longest of {longest} tokens") as caught:
        scan(texts=texts)
    assert (f"--max-length {longest}" in caught.value.fix) == (longest > 1)


def test_first_tokens_are_reported():
    result = scan(bos="on")
    assert result.summary["bos"] == {"mode": "on", "prefix": ["<bos>"]}
    first = result.summary["first_tokens"]
    assert first["ids"] == [256, *TEXTS[0].encode()[:4]]
    assert first["tokens"] == ["<bos>", *TEXTS[0][:4]]
    assert first["at_position_1"] == [{"id": 256, "token": "<bos>", "documents": 5}]
    table = result.positions
    assert (table[table.position == 0].token == "<bos>").all()
    assert (table[table.position == 0].token_share == 1).all()
    assert (table[table.position >= 16].token == "").all()


def test_the_model_is_as_before():
    model = build("llama")
    model.train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    scan(model)
    assert model.training
    assert model.config._attn_implementation == "sdpa"
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())


def test_the_model_is_as_before_after_an_exception():
    model = build("llama")

    def stop(done):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        scan(model, progress=stop)
    assert model.config._attn_implementation == "sdpa"
    assert not any(part._forward_hooks for part in model.modules())


def overflowing(token):
    """A model that gives infinities where a text holds this token, and numbers elsewhere."""
    model = build("llama")
    with torch.no_grad():
        model.model.embed_tokens.weight[token] = torch.inf
    return model


@pytest.fixture
def with_one_bad_document():
    bad = "#"
    texts = [TEXTS[0], TEXTS[1], TEXTS[2][: T - 10] + bad + TEXTS[2][T - 9 :], TEXTS[3]]
    return scan(overflowing(ord(bad)), texts), scan(build("llama"), [TEXTS[0], TEXTS[1], TEXTS[3]])


def test_rows_that_are_not_finite_are_counted_and_left_out(with_one_bad_document):
    result, clean = with_one_bad_document
    # The token and all after it; from the second layer on also earlier queries, as 0 × NaN is NaN in the values.
    assert (result.heads["bad_rows"][:4] == 10).all()
    assert (result.heads["bad_rows"] >= 10).all()
    assert result.summary["bad_rows"] == result.heads["bad_rows"].sum() == result.documents["bad_rows"].sum()
    assert (result.heads["documents"] == 3).all()
    assert result.documents.loc[2, metric_names((0.3,))].isna().all()
    assert (result.documents["bad_rows"] > 0).tolist() == [False, False, True, False]
    np.testing.assert_allclose(result.heads["entropy"], clean.heads["entropy"], rtol=0, atol=1e-6)
    np.testing.assert_allclose(result.positions["alpha"], clean.positions["alpha"], rtol=0, atol=1e-6)
    assert result.summary["metrics"]["entropy"]["value"] == pytest.approx(clean.summary["metrics"]["entropy"]["value"])


def test_results_with_bad_rows_can_be_saved(with_one_bad_document, tmp_path):
    with_one_bad_document[0].save(tmp_path)
    assert read_json(tmp_path / "results.json")["bad_rows"] >= 120


def test_weights_that_are_not_finite_are_refused():
    model = build("llama")
    with torch.no_grad():
        model.model.layers[0].mlp.up_proj.weight[3, 3] = torch.nan
    with pytest.raises(InputError, match="self-check logits"):
        scan(model)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"max_length": 1}, "--max-length"),
        ({"max_length": 301}, "at most 300"),
        ({"limit": 0}, "--limit"),
        ({"bos": "maybe"}, "BOS"),
        ({"eps": ()}, "--eps"),
        ({"eps": (0.3, 0.3)}, "--eps"),
        ({"eps": (float("nan"),)}, "--eps"),
        ({"eps": (1.0,)}, "--eps"),
        ({"confidence": 1.0}, "confidence"),
        ({"rows": 0}, "rows"),
    ],
)
def test_bad_arguments_are_refused(options, said):
    with pytest.raises(InputError, match=said):
        scan(**options)
