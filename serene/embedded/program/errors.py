"""The errors that refuse a program; their messages name the place in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

from serene.errors import SereneError, choices

T = TypeVar("T")


class NotBmv2Json(SereneError):
    """The file is not what p4c writes for BMv2."""


class UnsupportedProgram(SereneError):
    """A valid program that asks for what the embedded switch lacks; the message names it."""


class NoMemory(SereneError):
    """The machine's memory does not hold a program's state."""


@contextmanager
def where(at: str) -> Iterator[None]:
    """Prefixes errors raised within with the place in the program where they arose."""
    try:
        yield
    except (NotBmv2Json, UnsupportedProgram) as error:
        raise type(error)(f"{at}: {error}") from error
    except RecursionError as error:
        raise UnsupportedProgram(f"{at}: nested too deeply") from error


def known(objects: Mapping[str, T], name: object, what: str) -> T:
    """Looks up an object that the program refers to by name; an unknown name is an error that says so."""
    if not isinstance(name, str) or name not in objects:
        some = choices(sorted(objects)[:20]) or "none"
        raise NotBmv2Json(f"no {what} {name!r}; expected {some}" + (" ..." if len(objects) > 20 else ""))
    return objects[name]


def unique(names: list[str], what: str) -> None:
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise NotBmv2Json(f"two {what}s are called {twice!r}")
