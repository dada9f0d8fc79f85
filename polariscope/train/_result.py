"""What a training run leaves behind, in memory and in a folder."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import ValidationError
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from polariscope.errors import InputError
from polariscope.files import SETTINGS, output_folder, read_json, settings_for, write_json
from polariscope.nets.config import TransformerConfig
from polariscope.nets.transformer import Transformer
from polariscope.train._settings import RunSettings

METRICS, TRACE, MODEL, CONFIG = "metrics.json", "trace.parquet", "model.safetensors", "config.json"


@dataclass(frozen=True)
class RunResult:
    """A finished run.

    Args:
        settings: what was asked for.
        metrics: {task, attention, seed, status, message, steps, accuracy, loss, heads, seconds, device}. The status is
            "ok", "diverged" (the loss was not finite at step ``steps``) or "error" (see `run_many`); in the latter two
            every measured number is None. ``heads`` has one record per layer and head, both from 0.
        trace: one row per recorded step, layer and head.
        model: the trained network on the CPU; None for status "error".
    """

    settings: RunSettings
    metrics: dict[str, Any]
    trace: pd.DataFrame
    model: Transformer | None

    def save(self, folder: Path | str) -> None:
        """Write the run's folder: settings, metrics, trace, model and its configuration."""
        if self.model is None:
            raise InputError(
                "run to save", got=f"status {self.metrics['status']}", expected="a run with a model", fix="run it again"
            )
        options = self.settings.model_dump()
        with output_folder(Path(folder), settings_for("train", options, seeds=[self.settings.seed])) as work:
            write_json(work / METRICS, self.metrics)
            write_json(work / CONFIG, self.model.config.model_dump())
            self.trace.to_parquet(work / TRACE, index=False)
            save_file(self.model.state_dict(), work / MODEL, metadata={"format": "pt"})
            (work / MODEL).chmod(0o644)  # safetensors leaves it readable by its owner alone


def load(folder: Path | str) -> RunResult:
    """The run that was saved in a folder; its model gives the same logits as before.

    Raises:
        InputError: if the folder is not that of a training run, or a file in it is missing or damaged.
    """
    folder = Path(folder)
    saved = read_json(folder / SETTINGS)
    if not isinstance(saved, dict) or saved.get("kind") != "train":
        kind = saved.get("kind") if isinstance(saved, dict) else type(saved).__name__
        raise InputError(
            f"run folder {folder}", got=f"results of kind {kind!r}", expected="'train'", fix="give a folder of train"
        )
    if not isinstance(saved.get("options"), dict):
        raise _damaged(folder / SETTINGS, "no options")
    settings = RunSettings(**saved["options"])
    metrics = read_json(folder / METRICS)
    if not isinstance(metrics, dict) or not {"status", "accuracy", "heads"} <= set(metrics):
        raise _damaged(folder / METRICS, "no status, accuracy and heads")
    return RunResult(settings, metrics, _read_trace(folder / TRACE), _read_model(folder))


def _read_trace(path: Path) -> pd.DataFrame:
    try:
        return pd.read_parquet(path)
    except (OSError, ValueError) as problem:  # pyarrow's errors are ValueErrors
        raise _damaged(path, str(problem)) from problem


def _read_model(folder: Path) -> Transformer:
    try:
        config = TransformerConfig.model_validate_json(json.dumps(read_json(folder / CONFIG)))
    except ValidationError as problem:
        raise _damaged(folder / CONFIG, problem.errors()[0]["msg"]) from problem
    model = Transformer(config, generator=None)
    try:
        model.load_state_dict(load_file(folder / MODEL))
    except (OSError, SafetensorError, RuntimeError) as problem:  # RuntimeError: names or shapes do not fit
        raise _damaged(folder / MODEL, str(problem)) from problem
    return model.eval()


def _damaged(path: Path, why: str) -> InputError:
    return InputError(
        "damaged run folder", got=f"{path} ({why.splitlines()[0]})", expected="the file as written", fix="run it again"
    )
