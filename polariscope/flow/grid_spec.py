"""What a phase diagram is: one or two axes, what stays fixed, seeds, and times."""

import itertools
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from polariscope.errors import InputError, unknown_name
from polariscope.flow.cell import NAMES, STRICT, Cell, check_names, read_cell
from polariscope.flow.times import read_times
from polariscope.validation import as_input_error

MOST_FLOWS = 1_000_000
_WHOLE = ("n", "d")
_WORDS = ("loss", "scores", "model")
_RANGE = ("from", "to", "count", "spacing")


class Range(BaseModel):
    """Values of an axis from one number to another, at equal distances or equal ratios."""

    model_config = STRICT | ConfigDict(validate_by_name=False)
    start: float = Field(alias="from")
    to: float
    count: int = Field(ge=2, le=10_000)
    spacing: Literal["log", "linear"] = "linear"

    def values(self) -> list[float]:
        """The values, both ends included. Raises InputError for logarithms of what is not positive."""
        if self.spacing == "log" and min(self.start, self.to) <= 0:
            got = f"{self.start:g} to {self.to:g} with spacing: log"
            raise InputError("range of an axis", got=got, expected="positive ends", fix="try spacing: linear")
        between = np.geomspace if self.spacing == "log" else np.linspace
        return [float(f"{value:.12g}") for value in between(self.start, self.to, self.count)]  # 0.1, not 0.1 + 1e-17


class GridSpec(BaseModel):
    """A phase diagram: every combination of the values of its axes, each with every seed.

    Args:
        axes: one or two names of `Cell`, each with a list of values or a `Range` {from, to, count, spacing}. The first
            is drawn from left to right, the second upwards.
        fixed: values of other names of `Cell`; what is left out takes its default.
        seeds: how many, or a list of them.
        t or log_t: the last time, or several times that increase.
        rtol: accuracy of the weights, as in `solve`.
        name: a title. Everything but this decides the numbers.

    Raises:
        InputError: for anything unknown, misspelt, of the wrong type, out of range, or that does not fit together.
    """

    model_config = STRICT
    name: str | None = Field(None, max_length=200)
    axes: dict[str, tuple[Any, ...]]
    fixed: dict[str, Any] = Field(default_factory=dict)
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    t: tuple[float, ...] | None = None
    log_t: tuple[float, ...] | None = None
    rtol: float = Field(1e-9, ge=1e-13, le=1e-2)

    def __init__(self, **given: Any) -> None:
        check_names(given, GridSpec.model_fields, "grid setting")
        try:
            super().__init__(**_listed(given))
        except ValidationError as problem:
            raise as_input_error(problem, "grid setting", GridSpec.model_fields) from None

    @field_validator("axes", mode="before")
    @classmethod
    def _read_axes(cls, raw: Any) -> dict[str, tuple[Any, ...]]:
        if not isinstance(raw, Mapping) or len(raw) not in (1, 2):
            got = f"{len(raw)} axes" if isinstance(raw, Mapping) else type(raw).__name__
            raise InputError("axes", got=got, expected="one or two names with their values", fix="write NAME: [1, 2]")
        return {name: _values(name, values) for name, values in raw.items()}

    @field_validator("fixed", mode="before")
    @classmethod
    def _read_fixed(cls, raw: Any) -> Any:
        if not isinstance(raw, Mapping):
            expected = "names with one value each"
            raise InputError("fixed", got=repr(raw)[:80], expected=expected, fix="write fixed: {n: 8}")
        check_names(raw, NAMES, "name in fixed")
        return dict(raw)

    @field_validator("seeds", mode="before")
    @classmethod
    def _read_seeds(cls, raw: Any) -> tuple[int, ...]:
        seeds = list(range(min(raw, MOST_FLOWS + 1))) if type(raw) is int else raw
        good = isinstance(seeds, list) and seeds and all(type(seed) is int and 0 <= seed < 2**63 for seed in seeds)
        if not good or len(set(seeds)) < len(seeds):
            expected = "a count, or a list of different integers from 0 to 2⁶³ - 1"
            raise InputError("seeds", got=repr(raw)[:80], expected=expected, fix="try seeds: 10")
        return tuple(seeds)

    @field_validator("t", "log_t", mode="before")
    @classmethod
    def _read_times(cls, raw: Any) -> Any:
        return tuple(raw) if isinstance(raw, list) else raw if raw is None else (raw,)

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        read_times({"t": self.t, "log_t": self.log_t})
        both = sorted(set(self.axes) & set(self.fixed))
        if both:
            raise InputError(
                f"grid setting {both[0]}", got="it as an axis and as fixed", expected="one of the two", fix="drop one"
            )
        cells = int(np.prod([len(values) for values in self.axes.values()]))
        if cells * len(self.seeds) > MOST_FLOWS:
            got = f"{cells} cells with {len(self.seeds)} seeds each"
            raise InputError("size of the grid", got=got, expected=f"at most {MOST_FLOWS} flows", fix="ask for less")
        _ = self.cells  # what does not fit together is said now
        return self

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """Every cell, the last axis varying fastest."""
        combined = (dict(zip(self.axes, values, strict=True)) for values in itertools.product(*self.axes.values()))
        return tuple(read_cell({**self.fixed, **varied}) for varied in combined)

    @property
    def times(self) -> list[float]:
        """Times as log t."""
        return read_times({"t": self.t, "log_t": self.log_t}).tolist()


def read_spec(source: Any) -> GridSpec:
    """A phase diagram from a `GridSpec`, a mapping, or the path of a YAML file. Raises InputError as `GridSpec`."""
    if isinstance(source, GridSpec):
        return source
    if isinstance(source, str | Path):
        from polariscope.yaml_file import read_yaml

        source = read_yaml(Path(source))
    if not isinstance(source, Mapping) or not all(isinstance(key, str) for key in source):
        expected = f"a mapping with {', '.join(GridSpec.model_fields)}"
        fix = "write axes: {n: [2, 4]} and t: 100"
        raise InputError("phase diagram", got=type(source).__name__, expected=expected, fix=fix)
    return GridSpec(**source)


def _values(name: Any, raw: Any) -> tuple[Any, ...]:
    """The values of one axis, as its type wants them, each once."""
    if name not in NAMES:
        raise unknown_name("axis", name, NAMES)
    if isinstance(raw, Mapping):
        raw = _spread(name, raw)
    if not isinstance(raw, list) or not raw or None in raw:
        expected = "a list of values, or from, to, count and spacing"
        raise InputError(f"axis {name}", got=repr(raw)[:80], expected=expected, fix=f"write {name}: [1, 2]")
    values = [float(v) if type(v) is int and name not in _WHOLE else v for v in raw]
    if any(value in values[:place] for place, value in enumerate(values)):
        raise InputError(f"axis {name}", got="a value twice", expected="every value once", fix="drop one")
    return tuple(values)


def _spread(name: str, raw: Mapping[Any, Any]) -> list[float]:
    """The values of a `Range`."""
    if name in _WORDS:
        raise InputError(f"axis {name}", got=repr(raw)[:80], expected="a list of names", fix=f"list the {name} wanted")
    check_names(raw, _RANGE, f"{name} setting")
    try:
        values = Range(**raw).values()
    except ValidationError as problem:
        raise as_input_error(problem, f"{name} setting", _RANGE) from None
    return [round(value) for value in values] if name in _WHOLE else values


def _listed(value: Any) -> Any:
    """Arrays and tuples as lists, NumPy scalars as numbers."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Mapping):
        return {key: _listed(one) for key, one in value.items()}
    return [_listed(one) for one in value] if isinstance(value, list | tuple) else value
