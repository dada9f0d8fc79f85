"""The training loop: the published facts on small budgets, exact repetition, an independent loop, divergence."""

import math

import numpy as np
import pandas as pd
import pytest
import torch
from torch.nn import functional

from polariscope import nets, tasks, train
from polariscope.errors import InputError
from polariscope.train._run import _batches

COLUMNS = ["step", "loss", "accuracy", "layer", "head", "max_share", "max_weight", "row_sum", "entropy"]


def states_equal(one, other):
    return all(torch.equal(a, b) for a, b in zip(one.state_dict().values(), other.state_dict().values(), strict=True))


def test_softmax_puts_everything_on_one_token_that_decides(softmax_folder):
    metrics = train.load(softmax_folder).metrics
    head = metrics["heads"][0]
    assert metrics["status"] == "ok"
    assert metrics["accuracy"] == 1
    assert head["max_share"] > 0.9
    assert head["row_sum"] == pytest.approx(1, abs=1e-6)
    assert 0 <= head["entropy"] < 0.2
    assert head["flip_rate"] >= 0.95
    assert head["flip_rate_low"] <= head["flip_rate"] <= head["flip_rate_high"]
    assert head["flip_rate_least"] <= 0.05


def test_uniform_attention_solves_the_task_and_is_not_flipped(make):
    metrics = train.run(make(attention="uniform", epochs=3)).metrics
    head = metrics["heads"][0]
    assert metrics["accuracy"] > 0.99
    assert head["max_share"] == pytest.approx(1 / 11, abs=1e-6)
    assert head["entropy"] == pytest.approx(math.log(11), abs=1e-6)
    assert head["flip_rate"] <= 0.05


def test_sigmoid_attention_has_no_entropy_and_rows_that_do_not_sum_to_one(make):
    result = train.run(make(attention="sigmoid", epochs=2))
    head = result.metrics["heads"][0]
    assert result.metrics["accuracy"] > 0.99
    assert head["entropy"] is None
    assert result.trace.entropy.isna().all()
    assert result.trace.entropy.dtype == float
    assert head["row_sum"] > 1.5
    assert head["max_share"] < 0.3
    assert head["flip_rate"] <= 0.05


@pytest.mark.parametrize("kind", list(nets.REGISTRY))
def test_a_run_repeats_bit_for_bit(kind, make):
    torch.manual_seed(11)
    before = torch.get_rng_state()
    first, again = (train.run(make(attention=kind, steps=8)) for _ in range(2))
    assert torch.equal(torch.get_rng_state(), before)
    assert states_equal(first.model, again.model)
    pd.testing.assert_frame_equal(first.trace, again.trace, check_exact=True)
    assert first.metrics | {"seconds": 0} == again.metrics | {"seconds": 0}
    other = train.run(make(attention=kind, steps=8, seed=1))
    assert not states_equal(first.model, other.model)


@pytest.mark.parametrize("options", [{}, {"layers": 2, "heads": 2, "mlp": True, "layernorm": True, "positions": "add"}])
@pytest.mark.parametrize("optimizer", ["adamw", "sgd"])
def test_the_loop_is_the_plain_loop(optimizer, options, make):
    """The same data, initialization and order in ten plain lines that compute every row of every layer."""
    settings = make(steps=5, optimizer=optimizer, lr=3e-3, batch_size=64, dim=16, **options)
    task = tasks.Classification()
    data = task.draw(10_000, tasks.stream(0, "training data"))
    order = torch.randperm(10_000, generator=tasks.stream(0, "order"))
    model = nets.Transformer(settings.network(), tasks.stream(0, "initialization"))
    kind = torch.optim.AdamW if optimizer == "adamw" else torch.optim.SGD
    plain = kind(model.parameters(), lr=3e-3, foreach=False)
    for step in range(5):
        index = order[64 * step : 64 * (step + 1)]
        loss = functional.cross_entropy(model(data.ids[index]).logits[:, -1], data.targets[index, 0])
        plain.zero_grad()
        loss.backward()
        plain.step()
    trained = train.run(settings).model
    for name, value in model.state_dict().items():
        # A bias of the keys shifts a whole row of logits, which softmax ignores: its gradient is rounding noise, and
        # AdamW makes full steps of it.
        if "key.bias" not in name:
            torch.testing.assert_close(trained.state_dict()[name], value, rtol=0, atol=2e-5)


def test_an_epoch_visits_every_sequence_once_in_an_order_of_its_own():
    batches = _batches(10, 4, tasks.stream(0, "order"))
    epochs = [[next(batches) for _ in range(3)] for _ in range(2)]
    assert [len(batch) for batch in epochs[0]] == [4, 4, 2]
    orders = [torch.cat(epoch).tolist() for epoch in epochs]
    assert [sorted(order) for order in orders] == [list(range(10))] * 2
    assert orders[0] != orders[1]


def test_the_trace_is_logarithmic_and_ends_with_the_metrics(softmax_folder):
    result = train.load(softmax_folder)
    trace, metrics = result.trace, result.metrics
    assert list(trace.columns) == COLUMNS
    steps = trace.step.to_numpy()
    assert steps[0] == 0
    assert steps[-1] == metrics["steps"] == 120
    assert (np.diff(steps) > 0).all()
    assert np.diff(np.log(steps[1:])).max() < 0.8
    last = trace.iloc[-1]
    assert last.accuracy == metrics["accuracy"]
    assert last.loss == metrics["loss"]
    assert last.max_share == metrics["heads"][0]["max_share"]
    assert trace.loss.iloc[-1] < trace.loss.iloc[0]


def test_there_is_a_record_per_layer_and_head(make):
    result = train.run(make(steps=2, layers=2, heads=4, dim=16, layernorm=True, mlp=True))
    places = [(layer, head) for layer in range(2) for head in range(4)]
    assert [(h["layer"], h["head"]) for h in result.metrics["heads"]] == places
    last = result.trace[result.trace.step == 2]
    assert list(zip(last["layer"], last["head"], strict=True)) == places
    assert np.allclose(last.max_share, [h["max_share"] for h in result.metrics["heads"]], rtol=0, atol=0)


@pytest.mark.parametrize("steps", [1, 40])
def test_a_loss_that_is_not_finite_stops_the_run_and_no_number_is_reported(steps, make, tmp_path):
    result = train.run(make(lr=1e30, steps=steps), tmp_path / "run")
    metrics = train.load(tmp_path / "run").metrics
    assert metrics == result.metrics | {"seconds": metrics["seconds"]}
    assert metrics["status"] == "diverged"
    assert metrics["steps"] <= 2
    assert str(metrics["steps"]) in metrics["message"]
    assert metrics["accuracy"] is None
    assert metrics["loss"] is None
    assert {k for k, v in metrics["heads"][0].items() if v is not None} == {"layer", "head"}
    last = result.trace.iloc[-1]
    assert not math.isfinite(last.loss)
    assert math.isnan(last.accuracy)


def test_progress_hears_every_step(make):
    heard = []
    train.run(make(steps=3), progress=lambda done, total: heard.append((done, total)))
    assert heard == [(1, 3), (2, 3), (3, 3)]


def test_a_foreign_folder_is_refused_before_training(make, tmp_path):
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(InputError, match="output path"):
        train.run(make(steps=10**9), tmp_path)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_a_device_that_is_not_there_is_refused(make):
    with pytest.raises(InputError, match="device"):
        train.run(make(steps=1, device="cuda"))
    assert train.run(make(steps=1, device="auto")).metrics["device"] == "cpu"


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_a_run_on_cuda_agrees_with_the_cpu(make):
    there, here = (train.run(make(steps=20, device=device)) for device in ("cuda", "cpu"))
    assert there.metrics["device"] == "cuda"
    assert there.metrics["loss"] == pytest.approx(here.metrics["loss"], rel=1e-2)
