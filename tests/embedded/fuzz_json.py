"""Mutated programs: each is refused with a SereneError that names a place, or loads and takes any packets.

Anything else ends the run: another exception, C that does not compile, a sanitizer's finding, a packet whose
processing does not end.
"""

from __future__ import annotations

import copy
import json
import random
from collections import Counter
from typing import Any

from serene.embedded import CompileFailed, Switch
from serene.embedded.codegen.actions import PRIMITIVES
from serene.embedded.codegen.calculations import ALGORITHMS
from serene.embedded.codegen.generate import generate
from serene.embedded.program.loading import load_program
from serene.errors import SereneError
from tests.embedded.packets import shapes, trial
from tests.embedded.sanitizers import FLAGS, PROGRAMS

QUICK = ("-O0",)
PACKETS = 60  # packets sent to each program that is run
RUN = 0.15  # the share of loadable programs that are compiled and run: compiling takes most of the time
NUMBERS = (-1, 0, 1, 2, 7, 8, 63, 64, 65, 127, 128, 129, 255, 256, 2047, 2048, 2049, 65535, 65536, 2**31 - 1, 2**31,
           2**32, 2**63, 2**64, 10**30)  # fmt: skip
HEXES = ("0x0", "0x1", "-0x1", "0xff", "0x100", "0x7fffffff", "0xffffffff", "0x10000000000000000", "0x" + "f" * 600, "",
         "zz")  # fmt: skip
WORDS = (
    *PRIMITIVES, *ALGORITHMS, "+", "-", "*", "/", "%", "<<", ">>", "&", "|", "^", "~", "?", "==", "<", "and", "or",
    "not", "d2b", "b2d", "two_comp_mod", "usat_cast", "sat_cast", "access_field", "valid_union",
    "dereference_header_stack",
    "size", "last_stack_index", "extract", "extract_VL", "set", "verify", "shift", "advance", "primitive", "field",
    "hexstr", "header", "header_stack", "expression", "bool", "local", "runtime_data", "lookahead", "stack_field",
    "exact", "lpm", "ternary", "range", "optional", "valid", "standard_metadata", "$valid$", "", "*", "x" * 1000,
    "*/ int x; /*", "ingress", "egress", "__HIT__", "__MISS__", "payload", "default", "parse_vset", "simple",
    "indirect",
)  # fmt: skip

Place = tuple[Any, Any]  # a list or dict, and an index or key of it


def places(node: Any) -> list[Place]:
    found: list[Place] = []
    todo = [node]
    while todo:
        inner = todo.pop()
        items = inner.items() if isinstance(inner, dict) else enumerate(inner)
        for key, value in items:
            if key != "source_info":
                found.append((inner, key))
                if isinstance(value, dict | list):
                    todo.append(value)
    return found


def mutate(rng: random.Random, program: dict[str, Any]) -> dict[str, Any]:
    program = copy.deepcopy(program)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        every = places(program)
        inner, key = rng.choice(every)
        value = inner[key]
        kind = rng.random()
        if kind < 0.1:
            del inner[key]
        elif kind < 0.25:  # something of the same type from elsewhere
            others = [other[at] for other, at in every if type(other[at]) is type(value)]
            inner[key] = copy.deepcopy(rng.choice(others))
        elif kind < 0.35:  # anything from anywhere
            other, at = rng.choice(every)
            inner[key] = copy.deepcopy(other[at])
        elif kind < 0.42 and isinstance(inner, list):
            inner.insert(rng.randrange(len(inner) + 1), copy.deepcopy(rng.choice(inner)))
        elif kind < 0.5 and isinstance(inner, list) and len(inner) > 1:
            rng.shuffle(inner)
        elif isinstance(value, bool) or value is None:
            inner[key] = rng.choice((True, False, None, 1, "true"))
        elif isinstance(value, int):
            inner[key] = rng.choice((*NUMBERS, value + 1, value - 1, value * 2, str(value), float(value)))
        elif isinstance(value, str) and value[:2] == "0x":
            inner[key] = rng.choice((*HEXES, hex(int(value, 16) + 1), hex(int(value, 16) * 2)))
        elif isinstance(value, str):
            strings = [other[at] for other, at in every if isinstance(other[at], str)]
            inner[key] = rng.choice((rng.choice(WORDS), rng.choice(strings), rng.choice(strings)))
        else:
            inner[key] = rng.choice((None, 0, "", [], {}, [[]], [value], {"type": "field", "value": value}))
    return program


def bases() -> list[dict[str, Any]]:
    return [json.loads(PROGRAMS[name][0].read_bytes()) for name in ("shapes", "probe")]


def fuzz(count: int, seed: int, *, sanitize: bool) -> Counter[str]:
    """Tries ``count`` programs, and counts the outcomes."""
    given, counts = bases(), Counter[str]()
    for number in range(count):
        rng = random.Random(f"json {seed} {number}")
        data = json.dumps(mutate(rng, rng.choice(given))).encode()
        counts["programs"] += 1
        try:
            counts[attempt(rng, data, sanitize=sanitize)] += 1
        except BaseException:
            print(f"program {number} of seed {seed}")
            raise
    return counts


def attempt(rng: random.Random, data: bytes, *, sanitize: bool) -> str:
    """Tries one program; the outcome is "refused", "read" (and not run) or "run"."""
    try:
        generate(load_program(data))
        if rng.random() >= RUN:
            return "read"
        switch = Switch.load(data, cpu_port=3, compiler_flags=(*FLAGS, "-O0") if sanitize else QUICK)
    except CompileFailed:
        raise
    except SereneError as error:
        assert len(str(error)) > 10
        return "refused"
    with switch:
        for group in (1, 2, 3):
            switch.multicast_set(group, [(port, port) for port in range(4)])
            switch.clone_session_set(group, [(1, 1), (2, 1)])
        switch.process_many(trial(rng, shapes(), PACKETS))
        switch.process_many([(port, rng.randbytes(rng.choice((1, 14, 64, 1500, 9000, 65536)))) for port in range(4)])
        switch.poll_digests()
    return "run"
