"""The shipped automatic strategies as the page's form shows them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from sys import modules

from serene.controller.automatic.base import Automatic
from serene.controller.automatic.loading import SHIPPED
from serene.controller.status.model import AutomaticChoice, Parameter


def shipped() -> list[AutomaticChoice]:
    """Each with its parameters, and the beginning of its module's docstring."""
    return [
        AutomaticChoice(name=name, about=_about(made), parameters=list(_parameters(made)))
        for name, made in SHIPPED.items()
    ]


def _about(made: type[Automatic]) -> str:
    text = " ".join((modules[made.__module__].__doc__ or "").split("\n\n")[0].split())
    return text.split(" (")[0].split("; ")[0].rstrip(".")


def _parameters(made: type[Automatic]) -> Iterator[Parameter]:
    assert is_dataclass(made), made
    for field in fields(made):
        yield Parameter(name=field.name, kind=str(field.type), default=field.default)
