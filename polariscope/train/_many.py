"""Several runs at once, each worker a fresh process with one thread."""

import multiprocessing
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

import pandas as pd

from polariscope import tasks
from polariscope.errors import InputError
from polariscope.nets.transformer import Transformer
from polariscope.train._result import RunResult
from polariscope.train._settings import RunSettings
from polariscope.train.measures import blank_heads, measured_names

Reply = tuple[dict[str, Any], pd.DataFrame, dict[str, Any]]


def run_many(
    settings: Sequence[RunSettings],
    processes: int = 2,
    progress: Callable[[int], None] | None = None,
    folders: Sequence[Path | str] | None = None,
) -> list[RunResult]:
    """Do several runs, a few at a time.

    Each run uses one thread, so its numbers do not depend on how many run beside it. As with every use of fresh
    processes, a script calls this under ``if __name__ == "__main__":``.

    Args:
        settings: one per run.
        processes: how many at a time.
        progress: called with the number of finished runs after each.
        folders: where each run is saved; None saves nothing.

    Returns:
        The results in the order of the settings. A run that raised, or whose process died, has status "error", its
        message in ``metrics["message"]``, None for every number, and no model.

    Raises:
        InputError: for no or fewer folders than runs, or processes below 1.
    """
    if processes < 1:
        raise InputError("processes", got=processes, expected="at least 1", fix="try processes=2")
    if folders is not None and len(folders) != len(settings):
        raise InputError("folders", got=len(folders), expected=f"one per run, {len(settings)}", fix="match the lists")
    jobs = [(s, None if folders is None else folders[i]) for i, s in enumerate(settings)]
    waiting = list(reversed(range(len(jobs))))
    results: dict[int, RunResult] = {}
    workers: list[_Worker] = []
    try:
        workers.extend(_Worker.start() for _ in range(min(processes, len(jobs))))
        while len(results) < len(jobs):
            for worker in workers:
                if worker.job is None and waiting:
                    worker.give(waiting[-1], jobs[waiting.pop()])
            for worker in _ready(workers):
                index, result = worker.take(settings)
                results[index] = result
                if not worker.process.is_alive() and waiting:
                    worker.stop()
                    workers[workers.index(worker)] = _Worker.start()
                if progress is not None:
                    progress(len(results))
    finally:
        for worker in workers:
            worker.stop()
    return [results[index] for index in range(len(jobs))]


@dataclass(eq=False)
class _Worker:
    """A process, the pipe to it, and the index of the job that it has."""

    process: SpawnProcess
    pipe: Connection
    job: int | None = None

    @classmethod
    def start(cls) -> "_Worker":
        context = multiprocessing.get_context("spawn")
        here, there = context.Pipe()
        process = context.Process(target=_serve, args=(there,), daemon=True)
        process.start()
        there.close()  # so that a dead process reads as the end of the pipe
        return cls(process, here)

    def give(self, index: int, job: tuple[RunSettings, Path | str | None]) -> None:
        self.job = index
        with suppress(OSError):  # it died; the end of the pipe says so again in `take`
            self.pipe.send(job)

    def take(self, settings: Sequence[RunSettings]) -> tuple[int, RunResult]:
        index, self.job = self.job, None
        assert index is not None
        try:
            reply = self.pipe.recv()
        except (EOFError, OSError):
            self.process.join()
            reply = f"the process ended with exit code {self.process.exitcode} before the run did"
        return index, _failed(settings[index], reply) if isinstance(reply, str) else _rebuilt(settings[index], reply)

    def stop(self) -> None:
        self.process.terminate()
        self.process.join()
        self.pipe.close()


def _ready(workers: Sequence[_Worker]) -> list[_Worker]:
    """The workers with an answer, or whose process has died; waits for the first."""
    answers = set(wait([worker.pipe for worker in workers if worker.job is not None]))
    return [worker for worker in workers if worker.pipe in answers]


def _serve(pipe: Connection) -> None:
    """In the worker: run what comes through the pipe and send back the parts of the result, or the error's words."""
    import signal
    import sys

    import torch

    from polariscope.train._run import run

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears the interrupt and stops its workers,
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # which then remove what they had half written
    torch.set_num_threads(1)
    while True:
        try:
            settings, folder = pipe.recv()
        except EOFError:
            return
        try:
            result = run(settings, folder)
            assert result.model is not None
            state = {name: value.numpy() for name, value in result.model.state_dict().items()}
            pipe.send((result.metrics, result.trace, state))
        except Exception as problem:  # any failure of one run must not lose the others; its words are kept
            pipe.send(f"{type(problem).__name__}: {problem}")


def _rebuilt(settings: RunSettings, reply: Reply) -> RunResult:
    import torch

    metrics, trace, state = reply
    model = Transformer(settings.network(), generator=None)
    model.load_state_dict({name: torch.from_numpy(value) for name, value in state.items()})
    return RunResult(settings, metrics, trace, model.eval())


def _failed(settings: RunSettings, message: str) -> RunResult:
    names = measured_names(tasks.REGISTRY.get(settings.task))
    metrics = {
        "task": settings.task,
        "attention": settings.attention,
        "seed": settings.seed,
        "status": "error",
        "message": message,
        "steps": None,
        "accuracy": None,
        "loss": None,
        "heads": blank_heads(settings.layers, settings.heads, names),
        "device": None,
        "seconds": None,
    }
    return RunResult(settings, metrics, pd.DataFrame(), None)
