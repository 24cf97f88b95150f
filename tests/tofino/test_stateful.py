"""The compiled stateful instructions of each register action, evaluated here, compared with the P4 text.

The compiler takes some expressions that it cannot compile for others, without a word (a negation within a comparison is
one). So the instructions in each build's serene.stateful are evaluated here, on random words, next to the action.

Of the hardware this assumes: a comparison is of the exact sum of its operands with 0; an arithmetic unit whose
condition is false passes its word of memory on; an output whose condition is false is 0; `predicate` is, with
pred_shift 28, whether the condition holds, and else a bit of four, lo first. (On Tofino 2 a bit of sixteen; the two
comparisons that no instruction makes are taken to be false.)
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.tofino import plane
from tests.tofino.machine import Machine
from tests.tofino.plane import Build, chosen
from tests.tofino.values import Record

WORD = 2**32
COMPARISONS = "equ|neq|grt|geq|lss|leq"


@dataclass
class Stateful:
    """A register's instructions, and which fields they work on."""

    register: str
    operands: dict[str, str] = field(default_factory=dict)  # phv_lo, phv_hi -> field
    actions: dict[str, list[str]] = field(default_factory=dict)
    one_bit: bool = False  # what `predicate` puts out


def read(build: Build) -> list[Stateful]:
    found: list[Stateful] = []
    first_of_hi = {"tofino": 96, "tofino2": 32}[build.chip]  # bits of an exact group
    for line in (build.directory / "serene.stateful").read_text().splitlines():
        text = line.strip()
        if text.startswith("p4:"):
            found.append(Stateful(re.findall(r"name: ([\w.]+)", text)[0].rpartition(".")[2]))
        elif text.startswith("exact group"):
            for bit, name in re.findall(r"(\d+): ([\w.]+?)(?:\.\d+-\d+)?(?=[,} ])", text.partition("{")[2]):
                unit = "phv_lo" if int(bit) < first_of_hi else "phv_hi"
                assert found[-1].operands.setdefault(unit, name) == name
        elif text.startswith("pred_shift"):
            found[-1].one_bit = text.endswith("28")
        elif text.startswith("- "):
            list(found[-1].actions.values())[-1].append(as_on_tofino_1(text[2:]))
        elif re.fullmatch(r"\w+:", text) and text != "actions:":
            found[-1].actions[text[:-1]] = []
    return found


def as_on_tofino_1(instruction: str) -> str:
    """Tofino 2 has four comparisons, which it numbers, and several words of output. The program needs no more than
    Tofino 1 has, where they are called lo and hi, and the output has no name."""
    named = instruction.replace("cmp0", "cmplo").replace("cmp1", "cmphi").replace("word0, ", "")
    return re.sub(rf"^({COMPARISONS})(\.\w)? cmp(lo|hi),", r"\1\2 \3,", named)


def signed(value: int) -> int:
    return value - WORD if value >> 31 else value


def run(
    instructions: list[str], memory: dict[str, int], phv: dict[str, int], one_bit: bool
) -> tuple[dict[str, int], int, dict[str, bool]]:
    """The words of memory afterwards, what is put out, and the comparisons' results."""
    compared: dict[str, bool] = {}
    written: dict[str, int] = dict(memory)
    output = 0
    values = {**memory, **phv}

    def value(name: str) -> int:
        return values[name] if name in values else int(name)

    def holds(condition: str) -> bool:
        expression = re.sub(r"cmp(lo|hi)", lambda found: str(compared[found[1]]), condition)
        return bool(eval(expression.replace("!", " not ").replace("&", " and ").replace("|", " or ")))

    for instruction in instructions:
        opcode, _, rest = instruction.partition(" ")
        operands = [part.strip() for part in rest.split(",")]
        kind, _, sort = opcode.partition(".")
        if kind in COMPARISONS.split("|"):
            exact = signed if sort == "s" else int
            total = sum(
                -exact(value(name[1:])) if name[0] == "-" and name[1:] in values else exact(value(name))
                for name in operands[1:]
            )
            compared[operands[0]] = {
                "equ": total % WORD == 0, "neq": total % WORD != 0, "grt": total > 0, "geq": total >= 0,
                "lss": total < 0, "leq": total <= 0,
            }[kind]  # fmt: skip
            continue
        condition = operands.pop(0) if "cmp" in operands[0] else ""
        if condition and not holds(condition):
            continue
        if kind == "output":
            if operands == ["predicate"]:
                output = 1 if one_bit else 1 << (compared["lo"] + 2 * compared["hi"])
            else:
                source, _, name = operands[0].partition("_")
                output = {"mem": memory, "alu": written}[source][name]
            continue
        destination, arguments = operands[0], [value(name) for name in operands[1:]]
        results: dict[str, Callable[..., int]] = {
            "alu_a": lambda a: a,
            "add": lambda a, b: a + b,
            "sub": lambda a, b: a - b,
            "or": lambda a, b: a | b,
            "andcb": lambda a, b: a & ~b,
        }
        written[destination] = results[kind](*arguments) % WORD
    return written, output, compared


ACTIONS = [(build, stateful, action) for build in chosen() for stateful in read(build) for action in stateful.actions]


def test_every_register_action_has_stateful_instructions(build: Build) -> None:
    ingress = plane.machine(build).blocks[1].scope
    actions = {name for name, item in ingress.items() if isinstance(item, tuple) and item[0] == "register_action"}
    assert {action for of, _, action in ACTIONS if of.chip == build.chip} == actions
    assert len(actions) > 140


@pytest.fixture(scope="module")
def machine(build: Build) -> Machine:
    return plane.machine(build)


@pytest.mark.parametrize(
    ("build", "stateful", "action"),
    ACTIONS,
    ids=[f"{build.chip}-{action}" for build, _, action in ACTIONS],
    indirect=["build"],
)
def test_tofino_stateful_instructions_match_p4_action(machine: Machine, stateful: Stateful, action: str) -> None:
    rng = random.Random(action)
    ingress = machine.blocks[1]
    headers, meta = (machine._noise_for(ingress, parameter) for parameter in (0, 1))
    scope = machine._bind(ingress, [headers, meta, None, None, None, None])
    holder: Any = ingress.scope[action]
    register = holder[1]
    assert register.name == stateful.register
    few = [0, 1, 2, 3, 255, 256, 2**31 - 1, 2**31, WORD - 2, WORD - 1]
    compared: dict[str, set[bool]] = {}  # each comparison's results
    did = False
    for _ in range(400):
        words = [rng.choice(few) if rng.random() < 0.8 else rng.randrange(WORD) for _ in range(4)]
        if rng.random() < 0.5:
            words[2] = words[0]
        if rng.random() < 0.3:
            words[3] = (words[1] + rng.choice([-1, 0, 1])) % WORD
        phv = dict(zip(("phv_lo", "phv_hi"), words[2:], strict=True))
        for unit, name in stateful.operands.items():
            place(headers, meta, name, phv[unit])
        memory = dict(zip(("lo", "hi"), words[:2], strict=True))
        register.cells[0] = cell(machine, register, memory)
        machine.touched.clear()
        expected_output = machine._execute(holder, 0, scope)
        expected = words_of(register.cells[0])
        written, output, results = run(stateful.actions[action], memory, phv, stateful.one_bit)
        for unit, result in results.items():
            compared.setdefault(unit, set()).add(result)
        assert [written[unit] for unit in ("lo", "hi")][: len(expected)] == expected, (memory, phv)
        if len(holder[2][0]) > 1:
            assert output == expected_output % WORD, (memory, phv)
        did = did or output != 0 or expected != words[: len(expected)]
    assert did, "no words were drawn for which it does anything"
    assert all(results == {False, True} for results in compared.values()), compared


def place(headers: Record, meta: Record, name: str, word: int) -> None:
    record, *path = {"hdr": headers, "meta": meta}[name.split(".")[0]], *name.split(".")[1:]
    for part in path[:-1]:
        record = record.fields[part]
    record.fields[path[-1]] = word


def cell(machine: Machine, register: Any, memory: dict[str, int]) -> Any:
    if register.cell[0] != "record":
        return memory["lo"]
    record = machine._zeros(register.cell[1])
    for (name, kind), word in zip(record.types.items(), memory.values(), strict=True):
        record.fields[name] = signed(word) if kind[0] == "int" else word
    return record


def words_of(value: Any) -> list[int]:
    return [word % WORD for word in value.fields.values()] if isinstance(value, Record) else [value % WORD]
