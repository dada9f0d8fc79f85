"""Settings: complete, strict, and with the source's values where nothing is said."""

import pickle

import pytest

from polariscope import tasks, train
from polariscope.errors import InputError


@pytest.mark.parametrize("task", list(tasks.REGISTRY))
def test_defaults_are_the_tasks_published_values(task):
    settings = train.RunSettings(task=task)
    assert settings.model_dump(include=set(tasks.REGISTRY.get(task).defaults)) == tasks.REGISTRY.get(task).defaults
    assert settings.seed == 0
    assert settings.attention == "softmax"


def test_classification_trains_400_steps_in_ten_epochs():
    assert train.RunSettings(task="classification").total_steps() == 400
    assert train.RunSettings(task="classification", epochs=1, batch_size=10_000).total_steps() == 1
    assert train.RunSettings(task="classification", steps=7).total_steps() == 7
    assert train.RunSettings(task="classification", steps=7).epochs is None


def test_none_means_the_default():
    assert train.RunSettings(task="classification", lr=None, dim=None) == train.RunSettings(task="classification")


def test_settings_survive_a_pickle_and_a_dump():
    settings = train.RunSettings(task="classification", steps=3, heads=2)
    assert pickle.loads(pickle.dumps(settings)) == settings
    assert train.RunSettings(**settings.model_dump()) == settings


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"task": "clasification"}, "did you mean 'classification'"),
        ({"attention": "softmacks"}, "did you mean 'softmax'"),
        ({"seed": -1}, "seed"),
        ({"seed": 1.5}, "seed"),
        ({"lr": 0.0}, "lr"),
        ({"lr": float("nan")}, "lr"),
        ({"lr": float("inf")}, "lr"),
        ({"lr": "1e-3"}, "lr"),
        ({"epochs": 0}, "epochs"),
        ({"steps": -1}, "steps"),
        ({"epochs": 1, "steps": 1}, "epochs=1 and steps=1"),
        ({"batch_size": 0}, "batch_size"),
        ({"layers": 0}, "layers"),
        ({"heads": 3}, "dim 128, heads 3"),
        ({"dim": 15, "positions": "concat"}, "width of the network"),
        ({"positions": "rotary"}, "'none', 'add' or 'concat'"),
        ({"optimizer": "adam"}, "'adamw' or 'sgd'"),
        ({"device": "tpu"}, "device"),
        ({"vocabulary": 42}, "classification vocabulary"),
        ({"length": 12}, "classification length"),
        ({"mlp": 1}, "mlp"),
        ({"weight_decay": 0.1}, "weight_decay"),
    ],
)
def test_bad_settings_are_refused_with_words(options, said):
    with pytest.raises(InputError) as caught:
        train.RunSettings(**{"task": "classification", **options})
    assert said in str(caught.value)
    assert caught.value.fix


def test_a_task_is_needed():
    with pytest.raises(InputError, match="run setting task: got nothing"):
        train.RunSettings()
