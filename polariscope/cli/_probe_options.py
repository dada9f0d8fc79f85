"""What ``polariscope probe`` was asked for."""

import json as jsonlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import typer

from polariscope.errors import InputError

# Options that change no number.
_HOW = ("output", "json", "resume", "dry_run")
_VERSIONS = ("polariscope", "numpy", "torch", "transformers", "tokenizers")


@dataclass(frozen=True)
class Request:
    """The options, as given or as a preset sets them."""

    model: str
    output: Path
    data: str
    subset: str | None
    preset: str | None
    max_length: int
    limit: int | None
    bos: str
    eps: str
    layers: str | None
    heads: str | None
    until_ci: float | None
    until_metric: str
    seed: int
    kernel: str
    device: str
    dtype: str
    revision: str | None
    trust_remote_code: bool
    resume: bool
    dry_run: bool
    json: bool

    @property
    def partial(self) -> Path:
        """Where a running probe keeps what it has measured: beside the output."""
        return self.output.with_name(f"{self.output.name}.partial")

    def options(self) -> dict[str, Any]:
        """The options that decide the numbers."""
        return {name: value for name, value in asdict(self).items() if name not in _HOW}

    def settings(self, model: Mapping[str, Any]) -> dict[str, Any]:
        """For ``settings.json``."""
        from polariscope.files import settings_for

        return settings_for("probe", self.options(), model=dict(model))

    def identity(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """What must be equal for a run to go on with an earlier one."""
        versions = {name: settings["versions"][name] for name in _VERSIONS}
        return {**settings["options"], "loaded_model": settings["model"], "versions": versions}

    def arguments(self) -> dict[str, Any]:
        """For `polariscope.probe.scan`. Raises InputError for what is out of range."""
        from polariscope.probe.arguments import Until, check_arguments

        until = None if self.until_ci is None else Until(self.until_ci, self.until_metric)
        arguments: dict[str, Any] = {
            "max_length": self.max_length,
            "limit": self.limit,
            "bos": "on" if self.bos == "both" else self.bos,
            "eps": _numbers(self.eps),
            "seed": self.seed,
            "until": until,
        }
        check_arguments(**arguments)
        chosen = {"layers": _ranges("--layers", self.layers), "heads": _ranges("--heads", self.heads)}
        return {**arguments, **chosen, "kernel": self.kernel}

    def finished(self) -> dict[str, Any] | None:
        """The summary, if the output is there already, made with the same options."""
        try:
            settings = jsonlib.loads((self.output / "settings.json").read_text())
            same = settings["kind"] == "probe" and settings["options"] == self.options()
            there = same and not self.partial.exists()
            return jsonlib.loads((self.output / "results.json").read_text()) if there else None
        except (OSError, ValueError, KeyError, TypeError):
            return None


def with_preset(context: typer.Context, options: dict[str, Any]) -> dict[str, Any]:
    """The options, with those of the preset that were not given on the command line; ``--until-ci`` lifts the limit."""
    from polariscope.probe import presets

    given = {name for name in options if getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE"}
    fixed: Mapping[str, Any] = {} if options["preset"] is None else presets.get(options["preset"]).options
    if options["until_ci"] is not None and "limit" not in fixed:
        fixed = {**fixed, "limit": None}
    return {**options, **{name: value for name, value in fixed.items() if name not in given}}


def _numbers(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(word) for word in text.split(","))
    except ValueError:
        raise InputError(
            "--eps", got=repr(text), expected="numbers separated by commas", fix="for example --eps 0.3,0.5"
        ) from None


def _ranges(option: str, text: str | None) -> list[int] | None:
    """Whole numbers from a list of numbers and ranges."""
    if text is None:
        return None
    numbers: set[int] = set()
    try:
        for word in text.split(","):
            low, dash, high = word.partition("-")
            numbers |= set(range(int(low), int(high if dash else low) + 1))
    except ValueError:
        raise InputError(
            option, got=repr(text), expected="whole numbers and ranges with commas between them", fix="write 0-3,7"
        ) from None
    return sorted(numbers)
