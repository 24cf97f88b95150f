"""Settings as a model. Its fields define a command line's options, their checks, and their error messages."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeVar, get_args

from annotated_types import Ge, Le
from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError
from pydantic.fields import FieldInfo

from serene.errors import SereneError, choices

Called = Callable[[str, object], str]  # formats a setting and its value as users write it: --steps 0, or STEPS=0


class BadSetting(SereneError):
    """A setting is invalid, or cannot be combined with another one. The message names the valid choices."""


class Settings(BaseModel):
    """The base of all models of settings. A field's description is its option's help."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, arbitrary_types_allowed=True)


M = TypeVar("M", bound=BaseModel)


def option(name: str, value: object = None) -> str:
    """``--batch-size``, followed by the value."""
    return f"--{name.replace('_', '-')}" + ("" if value is None else f" {value}")


def add_options(parser: argparse.ArgumentParser, model: type[BaseModel]) -> None:
    """Adds an option for each field that is not boolean. Values stay texts, for `checked`. Options that are not given
    are absent."""
    for name, field in model.model_fields.items():
        if field.annotation is not bool:
            default = (
                "" if field.is_required() or field.default in (None, "", (), Path()) else f" (default {field.default})"
            )
            parser.add_argument(
                option(name),
                default=argparse.SUPPRESS,
                required=field.is_required(),
                help=f"{field.description}{default}",
            )


def checked(model: type[M], given: Mapping[str, object], called: Called = option) -> M:
    """The settings. An empty text counts as not given. Raises BadSetting for the first invalid one."""
    try:
        return model.model_validate({name: value for name, value in given.items() if value != ""})
    except ValidationError as error:
        wrong = error.errors()[0]
        name = str(wrong["loc"][0])
        expected = (
            wrong["ctx"]["error"] if wrong["type"] == "value_error" else f"expected {_valid(model.model_fields[name])}"
        )
        raise BadSetting(f"{called(name, wrong['input'])}: {expected}") from None


def expect(called: Called, name: str, value: int, low: int, high: int) -> None:
    """Raises BadSetting unless a number is within bounds that depend on other settings."""
    if not low <= value <= high:
        raise BadSetting(f"{called(name, value)}: expected a whole number from {low:,} to {high:,}")


def one_of(valid: Iterable[str]) -> AfterValidator:
    """A validator for the annotation of a text: it has to be one of these."""

    def check(value: str) -> str:
        if value not in valid:
            raise ValueError(f"expected {choices(valid)}")
        return value

    return AfterValidator(check)


def _valid(field: FieldInfo) -> str:
    """A text about a field's valid numbers."""
    kind = "a whole number" if int in (field.annotation, *get_args(field.annotation)) else "a number"
    low = next((each.ge for each in field.metadata if isinstance(each, Ge)), None)
    high = next((each.le for each in field.metadata if isinstance(each, Le)), None)
    if low is None:
        return kind
    return f"{kind} from {low:,} to {high:,}" if high is not None else f"{kind}, {low:,} or more"
