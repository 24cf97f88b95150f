"""Automatic strategies by name: the shipped ones, and ``file.py:Name`` for a user's own class or function."""

from __future__ import annotations

import importlib.util
import inspect
import os
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from controller.automatic.base import Automatic, Decision, Observation
from controller.automatic.dssp import DSSP
from controller.automatic.evict import Evict
from controller.automatic.sync_switch import SyncSwitch
from controller.automatic.waiting import Waiting
from serene.errors import SereneError, choices
from serene.strategy import Strategy

SHIPPED: Mapping[str, type[Automatic]] = {"dssp": DSSP, "sync-switch": SyncSwitch, "waiting": Waiting, "evict": Evict}
KINDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}


class BadAutomatic(SereneError):
    """An automatic strategy that does not exist, cannot be loaded, or does not take such parameters."""


class FromFunction(Automatic):
    """A user's function as an automatic strategy. Its parameters after the observation are set once."""

    def __init__(self, function: Callable[..., Strategy | Decision | None], parameters: Mapping[str, Any]) -> None:
        self._function = function
        self._parameters = dict(parameters)

    def decide(self, seen: Observation) -> Strategy | Decision | None:
        return self._function(seen, **self._parameters)


def load(name: str, parameters: Mapping[str, object] | None = None) -> Automatic:
    """The automatic strategy with this name, with parameters as text or as they are. Raises BadAutomatic."""
    made: Any = SHIPPED.get(name) or _from_file(name)
    given = parameters or {}
    try:
        signature = inspect.signature(made)
        if inspect.isclass(made):
            hints = typing.get_type_hints(made.__init__)  # type: ignore[misc]
            return cast("Automatic", made(**_converted(name, signature, hints, given)))
        _observation, *rest = signature.parameters.values()
        return FromFunction(
            made, _converted(name, signature.replace(parameters=rest), typing.get_type_hints(made), given)
        )
    except BadAutomatic:
        raise
    except SereneError as error:
        raise BadAutomatic(str(error)) from None
    except Exception as error:  # the user's code
        raise BadAutomatic(f"{name}: {type(error).__name__}: {error}") from None


def _converted(
    name: str, signature: inspect.Signature, hints: Mapping[str, Any], given: Mapping[str, object]
) -> dict[str, Any]:
    known = signature.parameters
    unknown = [key for key in given if key not in known]
    if unknown:
        raise BadAutomatic(f"{name} has no parameter {choices(unknown)}; it has {choices(known) or 'none'}")
    missing = [key for key, parameter in known.items() if parameter.default is parameter.empty and key not in given]
    if missing:
        raise BadAutomatic(f"{name} needs {choices(missing)}")
    return {key: _value(name, key, hints.get(key, str), value) for key, value in given.items()}


def _value(name: str, key: str, kind: Any, value: object) -> object:
    if kind not in KINDS or (type(value) is kind):
        return value
    try:
        if kind is bool:
            return {"true": True, "yes": True, "false": False, "no": False}[str(value).lower()]
        if kind is not str and isinstance(value, bool):
            raise ValueError
        return kind(value)  # type: ignore[call-arg]
    except (KeyError, TypeError, ValueError):
        raise BadAutomatic(f"{name}: {key} is {KINDS[kind]}, not {value!r}") from None


def _from_file(name: str) -> Any:
    file, colon, attribute = name.rpartition(":")
    if not colon or not file.endswith(".py"):
        raise BadAutomatic(f"no automatic strategy {name!r}; there are {choices([*SHIPPED, 'FILE.py:NAME'])}")
    path = Path(file)
    if not path.is_file():
        raise BadAutomatic(f"{file}: no such file")
    _check_owner(path)
    spec = importlib.util.spec_from_file_location(f"serene_automatic_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise BadAutomatic(f"{file}: {type(error).__name__}: {error}") from None
    usable = [key for key, value in vars(module).items() if _usable(value, module.__name__)]
    if attribute not in usable:
        raise BadAutomatic(f"{file} has no automatic strategy {attribute!r}; it has {choices(usable) or 'none'}")
    return getattr(module, attribute)


def _usable(value: object, module: str) -> bool:
    if getattr(value, "__module__", None) != module:
        return False
    return (inspect.isclass(value) and callable(getattr(value, "decide", None))) or inspect.isfunction(value)


def _check_owner(path: Path) -> None:
    """The controller often runs as root and listens to everybody on the machine: it runs no code of somebody else."""
    status = path.stat()
    trusted = {0, os.getuid(), int(os.environ.get("SUDO_UID", os.getuid()))}
    if status.st_uid not in trusted or status.st_mode & 0o002:
        raise BadAutomatic(f"{path}: it must belong to the user who runs the controller, and nobody else may write it")
