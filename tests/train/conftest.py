import pytest

from polariscope import train


def settings(**options):
    return train.RunSettings(**{"task": "classification", **options})


@pytest.fixture(scope="session")
def softmax_folder(tmp_path_factory):
    """A saved run of three epochs."""
    folder = tmp_path_factory.mktemp("runs") / "softmax"
    train.run(settings(attention="softmax", epochs=3), folder)
    return folder


@pytest.fixture
def make():
    """Settings of the classification task with some options changed."""
    return settings
