"""Automatic strategies by name: the shipped ones, and ``file.py:Name`` for a user's own class or function."""

from __future__ import annotations

import ast
import inspect
import sys
import traceback
import typing
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import resolve_name
from pathlib import Path
from types import ModuleType, NoneType, UnionType
from typing import Any, cast

from pydantic import ConfigDict, TypeAdapter, ValidationError

from serene.controller.automatic import base
from serene.controller.automatic.adsp import Adsp
from serene.controller.automatic.base import (
    DECISION_TIMEOUT_S,
    LONGEST_PERIOD_S,
    SHORTEST_PERIOD_S,
    Automatic,
    Decision,
    Observation,
    WorkerView,
)
from serene.controller.automatic.dssp import DSSP
from serene.controller.automatic.evict import Evict
from serene.controller.automatic.pacing import Pacing
from serene.controller.automatic.saina import Saina
from serene.controller.automatic.sync_switch import SyncSwitch
from serene.controller.automatic.trust import BadAutomatic, trusted_source
from serene.controller.automatic.waiting import Waiting
from serene.errors import SereneError, choices, one_line
from serene.process.interrupts import Interrupted, time_limit
from serene.strategy import STRATEGIES, BadStrategy, Strategy, strategy_from_dict, to_dict

BEST = "pacing"  # used by `serenectl sync auto` without a name
SHIPPED: Mapping[str, type[Automatic]] = {
    BEST: Pacing,
    "dssp": DSSP,
    "sync-switch": SyncSwitch,
    "saina": Saina,
    "adsp": Adsp,
    "waiting": Waiting,
    "evict": Evict,
}
NOT_OWN = {*sys.stdlib_module_names, "serene"}  # modules that are not the user's, by their first names
INSTALLED = {"site-packages", "dist-packages"}  # folders of more such modules
LONGEST_TROUBLE = 500  # characters of an error's text, since every status has them
LONGEST_REASON = 300  # characters of a decision's reason that are kept
DESCRIBED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)  # they may have docstrings
AUTOMATIC = "auto:"  # prefix of a text that names an automatic strategy
KINDS = {int: "a whole number", float: "a finite number", bool: "true or false", str: "a text"}


@dataclass(frozen=True)
class Terms:
    """The seconds between an automatic strategy's decisions, and the fields of a WorkerView that it needs."""

    period_s: float
    needs: tuple[str, ...]


class FromFunction(Automatic):
    """A user's function as an automatic strategy. parameters: its arguments after the observation."""

    def __init__(self, function: Callable[..., Strategy | Decision | None], parameters: Mapping[str, Any]) -> None:
        self._function = function
        self._parameters = dict(parameters)

    def decide(self, seen: Observation) -> Strategy | Decision | None:
        return self._function(seen, **self._parameters)


def automatic_parts(text: str) -> tuple[str, dict[str, object]]:
    """Name and parameters of an automatic strategy, written as ``auto``, ``auto:dssp``, ``auto:waiting:above=0.3`` or
    ``auto:FILE.py:NAME``. Raises BadStrategy."""
    if text == AUTOMATIC.removesuffix(":"):
        return BEST, {}
    name, _, rest = text.removeprefix(AUTOMATIC).partition(":")
    if name.endswith(".py"):
        attribute, _, rest = rest.partition(":")
        name = f"{name}:{attribute}"
    pairs = [item.partition("=") for item in filter(None, rest.split(","))]
    if not (name in SHIPPED or ".py:" in name) or not all(equals and value for _, equals, value in pairs):
        names = choices([AUTOMATIC + known for known in (*SHIPPED, "FILE.py:NAME")])
        raise BadStrategy(f"no automatic strategy {text!r}; expected {names}, parameters as :key=value,...")
    return name, {key: value for key, _, value in pairs}


def load(name: str, parameters: Mapping[str, object] | None = None) -> Automatic:
    """The automatic strategy with this name: a key of SHIPPED, or FILE.py:NAME. parameters: by name, as text or as
    values of their types. Raises BadAutomatic."""
    try:
        automatic = _made(name, SHIPPED.get(name) or _from_file(name), parameters or {})
        terms(name, automatic)
    except (BadAutomatic, Interrupted):
        raise
    except SereneError as error:
        raise BadAutomatic(str(error)) from None
    except BaseException as error:  # the user's code
        raise BadAutomatic(f"{name}: {_of_load(error)}") from None
    return automatic


def load_in_time(name: str, parameters: Mapping[str, object] | None = None, seconds: float | None = None) -> Automatic:
    """As ``load``, in the main thread. Raises BadAutomatic also if the user's file takes longer. seconds: None for what
    a controller lets it."""
    try:
        with time_limit(DECISION_TIMEOUT_S if seconds is None else seconds):
            return load(name, parameters)
    except TimeoutError as error:
        raise BadAutomatic(f"{name}: {error}") from None


@cache
def source(name: str) -> str:
    """As `source_now`, when it was first asked for."""
    return source_now(name)


def source_now(name: str) -> str:
    """The program of an automatic strategy, named as for ``load``, without its comments and docstrings. For a user's
    file, those of the user's modules that it imports follow. Stored results are valid for the same program only. Raises
    BadAutomatic."""
    if name in SHIPPED:
        module = sys.modules[SHIPPED[name].__module__]
        return "\n".join(_program(inspect.getsource(each)) for each in (module, *_rules(module)))
    file = name.rpartition(":")[0]
    programs, modules = list[str](), [(file, "")]
    for each, package in modules:  # which grow
        try:
            source = trusted_source(file) if each == file else Path(each).read_bytes()
            programs.append(_program(source))
            modules += dict.fromkeys(found for found in _imported(source, package) if found not in modules)
        except (OSError, SyntaxError, ValueError, RecursionError) as error:  # ValueError: a null byte
            raise BadAutomatic(f"{each}: {error}") from None
    return "\n".join(programs)


def _rules(module: ModuleType) -> list[ModuleType]:
    """The modules in which a shipped strategy has rules that it shares with others."""
    used = {getattr(value, "__module__", "") for value in vars(module).values()} - {module.__name__, base.__name__}
    return [sys.modules[name] for name in sorted(used) if name.startswith(f"{__package__}.")]


def _imported(source: bytes, package: str) -> list[tuple[str, str]]:
    """The files of the user's modules that a program imports by statements, each with the package of its relative
    names. package: the program's."""
    found = []
    for node in ast.walk(ast.parse(source)):
        names = list[str]()
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            with suppress(ImportError):  # a relative name that leaves the package
                module = resolve_name("." * node.level + (node.module or ""), package)
                names = [module, *(f"{module}.{alias.name}" for alias in node.names)]
        for name in names:
            found += _files(name)
    return found


def _files(name: str) -> list[tuple[str, str]]:
    """The files of a module and of the packages that it is in, if they are the user's own, as `_imported`."""
    found, folders = list[tuple[str, str]](), None
    parts = name.split(".")
    if parts[0] in NOT_OWN:
        return []
    for count, part in enumerate(parts, 1):
        # Not a package's part by its whole name: the package may not be imported yet.
        spec = _first(part) if folders is None else PathFinder.find_spec(part, folders)
        if spec is None or INSTALLED & {*Path(spec.origin or "").parts}:
            break
        folders = spec.submodule_search_locations
        if (spec.origin or "").endswith(".py"):
            found.append((str(spec.origin), ".".join(parts[: count if folders is not None else count - 1])))
        if folders is None:
            break
    return found


def _first(name: str) -> ModuleSpec | None:
    """Where an import finds the first part of a user's module. Modules that pip installed as editable may have a finder
    of their own."""
    return next((spec for finder in sys.meta_path if (spec := finder.find_spec(name, None)) is not None), None)


@contextmanager
def fresh_modules() -> Iterator[None]:
    """Drops the user's modules that a strategy imports in the block: what they keep must not reach another run."""
    before = {*sys.modules}
    try:
        yield
    finally:
        for name in sys.modules.keys() - before:
            file = getattr(sys.modules[name], "__file__", None) or ""
            if file.endswith(".py") and name.partition(".")[0] not in NOT_OWN and not INSTALLED & {*Path(file).parts}:
                del sys.modules[name]


def _program(source: str | bytes) -> str:
    """Without comments and docstrings. Raises as ``ast.parse``, or RecursionError."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, DESCRIBED) and ast.get_docstring(node, clean=False) is not None:
            del node.body[0]
    return ast.unparse(tree)


def _made(name: str, made: Any, given: Mapping[str, object]) -> Automatic:
    signature = inspect.signature(made)
    if not inspect.isclass(made):
        _observation, *rest = signature.parameters.values()
        hints = typing.get_type_hints(made)
        return FromFunction(made, _converted(name, signature.replace(parameters=rest), hints, given))
    hints = typing.get_type_hints(made.__init__)
    automatic = made(**_converted(name, signature, hints, given))
    if not isinstance(automatic, Automatic):
        raise BadAutomatic(f"{name} is not a subclass of serene.controller.automatic.Automatic")
    return automatic


def _converted(
    name: str, signature: inspect.Signature, hints: Mapping[str, Any], given: Mapping[str, object]
) -> dict[str, Any]:
    known = signature.parameters
    unknown = [key for key in given if key not in known]
    if unknown:
        raise BadAutomatic(f"{name} has no parameter {choices(unknown)}; it has {choices(known) or 'none'}")
    missing = [key for key, parameter in known.items() if parameter.default is parameter.empty and key not in given]
    if missing:
        raise BadAutomatic(f"{name}: parameter {choices(missing)} is missing")
    return {key: _value(name, key, _kind(hints.get(key), known[key]), value) for key, value in given.items()}


def _kind(hint: Any, parameter: inspect.Parameter) -> Any:
    """The type that a parameter's text is converted to: its annotation, as also in ``float | None``, or without one its
    default's type."""
    if hint is None:
        return type(parameter.default) if type(parameter.default) in KINDS else str
    if typing.get_origin(hint) in (typing.Union, UnionType):
        some = [each for each in typing.get_args(hint) if each is not NoneType]
        return some[0] if len(some) == 1 else hint
    return hint


def _value(name: str, key: str, kind: Any, value: object) -> object:
    if kind not in KINDS:
        return value
    adapter: TypeAdapter[object] = TypeAdapter(kind, config=ConfigDict(allow_inf_nan=False))
    try:
        if isinstance(value, str):  # as on a command line
            return adapter.validate_strings(value)
        return str(value) if kind is str else adapter.validate_python(value, strict=True)
    except ValidationError:
        raise BadAutomatic(f"{name}: {key} is {KINDS[kind]}, not {value!r}") from None


def terms(name: str, automatic: Automatic) -> Terms:
    """The terms of an automatic strategy. Raises BadAutomatic if they are invalid."""
    period, needs = automatic.period_s, automatic.needs
    if type(period) not in (int, float) or not SHORTEST_PERIOD_S <= period <= LONGEST_PERIOD_S:
        raise BadAutomatic(
            f"{name}: period_s {period!r}: expected {SHORTEST_PERIOD_S:g} to {LONGEST_PERIOD_S:g} seconds"
        )
    known = [field.name for field in fields(WorkerView)]
    if not isinstance(needs, tuple | list) or any(need not in known for need in needs):
        raise BadAutomatic(f"{name}: needs {needs!r}: expected a tuple of {choices(known)}")
    return Terms(float(period), tuple(needs))


def checked(answer: object) -> Strategy | Decision | None:
    """A program's answer, copied into our own types. Raises SereneError for another kind of answer.

    A user's subclass of a strategy could run any code when it is compiled, and the result is written to the switch.
    """
    if answer is None:
        return None
    if type(answer) in STRATEGIES.values():
        return strategy_from_dict(to_dict(cast("Strategy", answer)))
    if type(answer) is not Decision:
        raise SereneError(f"decide() returned {_shown(answer)}: expected a Strategy, a Decision or None")
    strategy, evicted = answer.strategy, () if answer.evicted is None else answer.evicted
    if type(strategy) not in STRATEGIES.values():
        raise SereneError(f"decide() returned a Decision with strategy {_shown(strategy)}: expected a Strategy")
    if not isinstance(evicted, frozenset | set | tuple | list) or any(type(worker) is not int for worker in evicted):
        raise SereneError(f"decide() returned a Decision with evicted {_shown(evicted)}: expected a set of worker ids")
    if type(answer.reason) is not str:
        raise SereneError(f"decide() returned a Decision with reason {_shown(answer.reason)}: expected a text")
    wanted = None if answer.evicted is None else frozenset(evicted)
    return Decision(strategy_from_dict(to_dict(strategy)), wanted, one_line(answer.reason, LONGEST_REASON))


def in_words(error: BaseException, name: str = "") -> str:
    """An error's text, and the line of the strategy's file, FILE.py:NAME, that raised it. Even making the text may
    fail, since a user's exception may have its own __repr__."""
    ours = isinstance(error, SereneError)
    try:
        text = one_line(str(error) if ours else repr(error), LONGEST_TROUBLE)
    except Exception:
        text = type(error).__name__
    if ours:
        return text
    file = name.rpartition(":")[0]
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return f"{text} in line {lines[-1]}" if lines else text


def _of_load(error: BaseException) -> str:
    """The type and text of an error while a file is loaded; a user's exception may have no text, or a long one."""
    kind = type(error).__name__
    try:
        return f"{kind}: {one_line(str(error), LONGEST_TROUBLE)}"
    except Exception:
        return kind


def _shown(value: object) -> str:
    return one_line(repr(value), 100)


def _from_file(name: str) -> Any:
    file, colon, attribute = name.rpartition(":")
    if name.endswith(".py"):
        file, colon, attribute = name, ":", ""
    if not colon or not file.endswith(".py"):
        raise BadAutomatic(f"no automatic strategy {name!r}: expected {choices([*SHIPPED, 'FILE.py:NAME'])}")
    source = trusted_source(file)
    module = ModuleType(f"serene_automatic_{Path(file).stem}")
    module.__file__ = file
    sys.modules[module.__name__] = module  # dataclasses look their annotations up there
    try:
        exec(compile(source, file, "exec"), vars(module))
    except Interrupted:
        raise
    except BaseException as error:  # it may even exit
        raise BadAutomatic(f"{file}: {_of_load(error)}") from None
    usable = [key for key, value in vars(module).items() if _usable(value, module.__name__)]
    if attribute not in usable:
        if usable and not attribute:
            raise BadAutomatic(f"{file} needs a NAME: expected {choices(f'{file}:{known}' for known in usable)}")
        raise BadAutomatic(f"{file} has no automatic strategy {attribute!r}; it has {choices(usable) or 'none'}")
    return getattr(module, attribute)


def _usable(value: object, module: str) -> bool:
    if getattr(value, "__module__", None) != module:
        return False
    return (inspect.isclass(value) and callable(getattr(value, "decide", None))) or inspect.isfunction(value)
