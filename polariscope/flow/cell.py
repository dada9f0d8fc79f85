"""What one cell of a phase diagram solves."""

from collections.abc import Collection, Mapping
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from polariscope import scores as score_maps
from polariscope.errors import InputError, unknown_name
from polariscope.flow.presets import Wanted, check_data, random_problem
from polariscope.flow.times import untimed
from polariscope.validation import as_input_error

MOST_NUMBERS = 4_000_000
"""Entries of V0, and of all V0 that are held at a time."""
STRICT = ConfigDict(strict=True, frozen=True, extra="forbid", allow_inf_nan=False)


class Cell(BaseModel):
    """What one cell of a phase diagram solves, but for the seed. The defaults are those of `presets.preset`.

    Args:
        loss, scores: names; model: value, or tied (d = n).
        n: number of keys; d: dimension of the predictor, n if left out.
        scale: V0 and a0 have entries scale·N(0, 1).
        target_norm: ‖β*‖, for losses that fit a vector.
        temperature: σ(a/temperature).
        condition_number: κ of X, for regression: singular values from 1 down to 1/κ at equal ratios. Left out, X has
            entries N(0, 1)/√d.
    """

    model_config = STRICT
    loss: str = "logistic"
    scores: str = "softmax"
    model: Literal["value", "tied"] = "value"
    n: int = Field(8, ge=1, le=10_000)
    d: int | None = Field(None, ge=1, le=10_000)
    scale: float = Field(0.1, ge=1e-100, le=1e100)  # squares of these are numbers
    target_norm: float = Field(1.0, ge=1e-90, le=1e90)
    temperature: float = Field(1.0, ge=1e-100, le=1e100)
    condition_number: float | None = Field(None, ge=1)

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        check_data(self.loss, Wanted(self.d or self.n, self.target_norm, self.condition_number))
        score_maps.get(self.scores)
        if self.model == "tied" and self.d not in (None, self.n):
            raise InputError("d", got=f"{self.d} with n = {self.n}", expected="d = n for the tied model", fix="drop d")
        if self.entries > MOST_NUMBERS:
            got = f"n = {self.n}, d = {self.d or self.n}"
            raise InputError(
                "size of V0", got=got, expected=f"at most {MOST_NUMBERS} entries n·d", fix="give a small d"
            )
        return self

    @property
    def entries(self) -> int:
        """Of V0: n·d."""
        return self.n * (self.d or self.n)

    @property
    def shape(self) -> tuple[Any, ...]:
        """Cells that agree in this may be solved by one compiled program."""
        return self.loss, self.model, self.n, self.d or self.n

    def problem(self, seed: int, log_t: Any) -> dict[str, Any]:
        """The problem of one seed, as `solve` takes it. A seed gives the same random numbers in every cell."""
        names = ("scores", "n", "d", "scale", "target_norm", "condition_number")
        made = untimed(random_problem(self.loss, seed=seed, **{name: getattr(self, name) for name in names}))
        tempered = {} if self.temperature == 1 else {"temperature": self.temperature}
        return {**made, **tempered, "model": self.model, "log_t": list(log_t)}


NAMES = tuple(Cell.model_fields)


def read_cell(given: dict[str, Any]) -> Cell:
    try:
        return Cell(**given)
    except ValidationError as problem:
        raise as_input_error(problem, "grid setting", NAMES) from None


def check_names(given: Mapping[Any, Any], known: Collection[str], what: str) -> None:
    for name in given:
        if name not in known:
            raise unknown_name(what, name, known)
