"""A probe that is killed and resumed ends with the numbers of one that was not."""

import json
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

from polariscope import models, probe
from polariscope.errors import InputError
from polariscope.probe import corpora, saving
from polariscope.probe.result import TABLES
from polariscope.probe.saving import Checkpoint

LENGTH, LIMIT = 64, 60
COMMAND = ["planted", "--data", "random-tokens", "--max-length", str(LENGTH), "--limit", str(LIMIT), "--eps", "0.3,0.1"]


def run(output, *words):
    """The command line in a process that saves after every document."""
    script = (
        "import sys; from polariscope.probe import saving; saving.EVERY_DOCUMENTS = 1; "
        "from polariscope.cli import main; main(sys.argv[1:])"
    )
    arguments = ["probe", *COMMAND, *words, "-o", str(output)]
    return subprocess.Popen([sys.executable, "-c", script, *arguments], stdout=subprocess.DEVNULL)


def kill_when(process, done):
    """SIGKILL as soon as something is there; whether the process was still running then."""
    while process.poll() is None and not done():
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    return process.wait() == -signal.SIGKILL


def assert_same(one, other):
    for name in TABLES:
        left, right = (pd.read_parquet(folder / f"{name}.parquet") for folder in (one, other))
        pd.testing.assert_frame_equal(left, right, check_exact=True)
    left, right = (json.loads((folder / "results.json").read_text()) for folder in (one, other))
    left.pop("seconds"), right.pop("seconds")
    assert left == right


def test_killed_at_three_moments_and_resumed(tmp_path):
    undisturbed, killed = tmp_path / "undisturbed", tmp_path / "killed"
    assert run(undisturbed).wait() == 0
    partial = tmp_path / "killed.partial"
    moments = np.sort(np.random.default_rng(0).choice(np.arange(1, LIMIT - 10), 3, replace=False))
    for moment in moments:
        number = int(moment)
        assert kill_when(run(killed, "--resume"), lambda n=number: (partial / f"records-{n}.npz").exists())
        assert not killed.exists()
    assert run(killed, "--resume").wait() == 0
    assert_same(undisturbed, killed)
    assert not partial.exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["killed", "undisturbed"]


def scan(checkpoint=None, limit=8, **options):
    loaded = models.load("planted")
    texts = corpora.read("random-tokens", count=limit)
    return probe.scan(loaded.model, loaded.tokenizer, texts, max_length=32, checkpoint=checkpoint, **options)


class Stop(Exception):
    pass


def stop_at(count):
    def progress(done):
        if done == count:
            raise Stop

    return progress


@pytest.mark.parametrize("count", range(1, 8))
def test_every_moment_between_documents(count, tmp_path, monkeypatch):
    monkeypatch.setattr(saving, "EVERY_DOCUMENTS", 2)
    folder = tmp_path / "partial"
    with pytest.raises(Stop):
        scan(Checkpoint(folder, {"a": 1}, resume=False), progress=stop_at(count))
    # A moment in which the records were written, but not yet the sums that make them count.
    torn = folder / f"records-{count // 2 + 1}.npz"
    folder.mkdir(exist_ok=True)
    torn.write_bytes(b"torn")
    seen = []
    result = scan(Checkpoint(folder, {"a": 1}, resume=True), progress=seen.append)
    assert seen == list(range(count // 2 * 2 + 1, 9))
    pd.testing.assert_frame_equal(result.heads, scan().heads, check_exact=True)
    pd.testing.assert_frame_equal(result.positions, scan().positions, check_exact=True)


def test_other_settings_or_documents_are_refused(tmp_path):
    folder = tmp_path / "partial"
    with pytest.raises(Stop):
        scan(Checkpoint(folder, {"a": 1, "b": [2]}, resume=False), progress=stop_at(3))
    assert not folder.exists()  # nothing is saved before there is enough
    scan(Checkpoint(folder, {"a": 1, "b": [2]}, resume=False))
    with pytest.raises(InputError, match="a = 1, now 3"):
        Checkpoint(folder, {"a": 3, "b": [2]}, resume=True)
    other = corpora.read("random-tokens", seed=1, count=8)
    loaded = models.load("planted")
    with pytest.raises(InputError, match="random-tokens:1:0"):
        probe.scan(
            loaded.model,
            loaded.tokenizer,
            other,
            max_length=32,
            checkpoint=Checkpoint(folder, {"a": 1, "b": [2]}, resume=True),
        )


def test_without_resume_it_begins_anew(tmp_path):
    folder = tmp_path / "partial"
    scan(Checkpoint(folder, {"a": 1}, resume=False))
    seen = []
    scan(Checkpoint(folder, {"a": 2}, resume=False), limit=4, progress=seen.append)
    assert seen == [1, 2, 3, 4]
    assert json.loads((folder / "settings.json").read_text()) == {"a": 2}
    assert [path.name for path in folder.glob("records-*")] == ["records-1.npz"]
