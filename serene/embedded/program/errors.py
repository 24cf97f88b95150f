"""The errors of refused programs. Their messages name the place in the program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

from serene.errors import SereneError, choices

T = TypeVar("T")


class NotBmv2Json(SereneError):
    """The file is not what p4c writes for BMv2."""


class UnsupportedProgram(SereneError):
    """The program is valid, but uses something that the embedded switch does not support. The message names it."""


class NoMemory(SereneError):
    """The machine does not have enough memory for a program's state."""


@contextmanager
def where(at: str) -> Iterator[None]:
    """Adds the place in the program to the messages of errors that are raised inside."""
    try:
        yield
    except (NotBmv2Json, UnsupportedProgram) as error:
        raise type(error)(f"{at}: {error}") from error
    except RecursionError as error:
        raise UnsupportedProgram(f"{at}: nested too deeply") from error


def known(objects: Mapping[str, T], name: object, what: str) -> T:
    """Looks up an object that the program refers to by name. Raises NotBmv2Json for an unknown name."""
    if not isinstance(name, str) or name not in objects:
        some = choices(sorted(objects)[:20]) or "none"
        raise NotBmv2Json(f"no {what} {name!r}; expected {some}" + (" ..." if len(objects) > 20 else ""))
    return objects[name]


def unique(names: list[str], what: str) -> None:
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise NotBmv2Json(f"two {what}s are called {twice!r}")
