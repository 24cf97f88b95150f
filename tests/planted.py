"""Faults planted in rules, one by one, to check that random runs find them.

A planted fault is a line of the rules (tests/model.py), of the client or of the controller, written wrong. A hunt plays
random runs until one of them finds something wrong. `python -m tests.planted` hunts for all planted faults of the
protocol, and then for unknown ones for as long as one likes.
"""

from __future__ import annotations
import __future__

from serene.process.interrupts import end_quietly, ended

if __name__ == "__main__":
    end_quietly()

import importlib
import inspect
import re
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path

import pytest

from serene.arguments import Parser
from serene.controller.switch import takeover
from serene.errors import SereneError
from serene.experiments.correctness.virtual.checks import Violation
from serene.experiments.correctness.virtual.random_plans import random_plan
from serene.experiments.correctness.virtual.schedule import Schedule
from serene.experiments.shared.random_strategies import FAMILIES, alternating
from tests.model_switch import ModelSwitch

TABLE = Path(__file__).with_name("planted.txt")
OFTEN = 0.4  # the probability of rare events in a hunt


@dataclass(frozen=True)
class Line:
    """A piece of a function's source as it should be, and as the fault has it. owner: the class or module that the
    function belongs to."""

    owner: object
    function: str
    right: str
    wrong: str


@dataclass(frozen=True)
class Fault:
    """A fault to be found within so many random runs, from number ``first`` on: one that found it when this was
    written, which saves time. Later the same may take more runs."""

    rule: str
    lines: tuple[Line, ...]
    runs: int = 100
    first: int = 0


def fault(rule: str, owner: object, function: str, right: str, wrong: str, runs: int = 100, *, first: int = 0) -> Fault:
    return Fault(rule, (Line(owner, function, right, wrong),), runs, first)


def faults(section: str) -> list[Fault]:
    """Those in a section of planted.txt."""
    sections = dict(re.findall(r"^# (.+)\n((?:(?!# ).*\n)*)", TABLE.read_text(), re.MULTILINE))
    found = re.findall(r"^(\w.*)\n@ (\S+)(.*)\n((?:- .*\n)+)((?:\+.*\n)+)", sections[section], re.MULTILINE)
    if len(found) != sections[section].count("\n@ "):
        raise SereneError(f"{TABLE}: not all that is in section {section} can be read")
    return [
        Fault(rule, (Line(*_place(where), _source(right), _source(wrong)),), **_numbers(numbers))
        for rule, where, numbers, right, wrong in found
    ]


def _place(where: str) -> tuple[object, str]:
    """The class or module, and the function's name."""
    module, _, name = where.partition(":")
    *classes, function = name.split(".")
    return reduce(getattr, classes, importlib.import_module(module)), function


def _numbers(text: str) -> dict[str, int]:
    return {name: int(number) for name, number in (each.split("=") for each in text.split())}


def _source(lines: str) -> str:
    return "\n".join(line[2:] for line in lines.splitlines()).replace("\\n", "\n")


@contextmanager
def planted(line: Line) -> Iterator[None]:
    """Puts the fault into the function for the duration of the context."""
    original = inspect.getattr_static(line.owner, line.function)
    function = getattr(original, "__func__", None) or getattr(original, "fget", None) or original
    source = textwrap.dedent(inspect.getsource(function))
    if source.count(line.right) != 1:
        raise SereneError(f"{line.function}: {line.right!r} is there {source.count(line.right)} times, expected once")
    code = compile(
        source.replace(line.right, line.wrong),
        inspect.getfile(function),
        "exec",
        flags=__future__.annotations.compiler_flag,
    )
    module = sys.modules[function.__module__]
    made: dict[str, object] = {}
    exec(code, vars(module), made)
    setattr(line.owner, line.function, made[line.function])
    users = [user for user in (sys.modules["serene.controller.upkeep"],) if line.owner is takeover]
    for user in users:
        setattr(user, line.function, made[line.function])
    try:
        yield
    finally:
        setattr(line.owner, line.function, original)
        for user in users:
            setattr(user, line.function, original)


@dataclass(frozen=True)
class Found:
    """By which run (counted from 1) something was found, and what."""

    runs: int
    what: str


Play = Callable[[int], str | None]  # plays a run, by its number: what it finds wrong
Series = Callable[[], Play]  # of runs, one after another on the same switch


def hunt(series: Series, first: int, runs: int, *faults: Line) -> Found | None:
    """Plays up to ``runs`` random runs with the faults planted; the first that finds something, None if none does."""
    with ExitStack() as stack:
        for line in faults:
            stack.enter_context(planted(line))
        play = series()
        for number in range(runs):
            if (what := play(first + number)) is not None:
                return Found(number + 1, what)
    return None


def every_fault_is_found(series: Series, faults: Sequence[Fault]) -> Callable[[Fault], None]:
    """A test."""

    @pytest.mark.parametrize("fault", faults, ids=lambda fault: fault.rule)
    def test(fault: Fault) -> None:
        assert hunt(series, fault.first, fault.runs, *fault.lines) is not None

    return test


def play(switch: ModelSwitch, seed: int) -> str | None:
    plan = random_plan(seed, OFTEN)
    try:
        balance = Schedule(switch, plan, alternating(FAMILIES, seed, plan.workers)).run().balance
    except Violation as violation:
        if isinstance(violation.__cause__, (AttributeError, NameError)):
            raise  # the fault as it is planted is no program
        return str(violation)
    if balance.lost or balance.repeated:
        return f"exactly once: {balance.lost} contributions lost, {balance.repeated} repeated"
    if switch.unread:
        return f"exactly once: {switch.unread} packets contributed what may have passed for repeats"
    return None


def of_the_protocol() -> Play:
    return partial(play, ModelSwitch())


FAULTS = faults("protocol")


def main(series: Series, faults: Sequence[Fault]) -> int:
    """The command that plants these faults."""
    parser = Parser("Plays random runs with a rule broken on purpose each time, or with the rules intact.")
    parser.add_argument("--runs", type=int, default=2000, help="runs with the rules intact (default 2000)")
    parser.add_argument("--first", type=int, default=0, help="number of the first such run (default 0)")
    parser.add_argument("--only", default="", help="only the rules whose text contains this; none: intact rules only")
    options = parser.parse_args()
    missed = 0
    for planned in faults:
        if options.only in planned.rule:
            began = time.monotonic()
            found = hunt(series, planned.first, 10 * planned.runs, *planned.lines)
            missed += found is None or found.runs > planned.runs
            what = f"run {found.runs} of {planned.runs}: {found.what[:90]}" if found else "NOT FOUND"
            print(f"{planned.rule}: {what} ({time.monotonic() - began:.1f} s)", flush=True)
    found = hunt(series, options.first, options.runs)
    print(f"the intact rules, {options.runs} runs: {found.what if found else 'nothing'}")
    return int(missed > 0 or found is not None)


if __name__ == "__main__":
    raise SystemExit(ended(lambda: main(of_the_protocol, FAULTS)))
