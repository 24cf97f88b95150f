"""Random expressions, computed by the generated C and by Python's integers.

Each program assigns 120 expressions over fields of many widths, signed ones included; each is then run with random
packets. BMv2 computes without bounds and cuts on assignment: so does the oracle.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from serene.embedded import Switch
from tests.embedded import small
from tests.embedded.packets import pack, unpack
from tests.embedded.small import Node, constant, operation

FIELDS = {  # name -> bits, signed
    "a": (1, False), "b": (7, False), "c": (8, True), "d": (32, False), "e": (32, True), "f": (64, False),
    "g": (64, True), "h": (65, False), "i": (128, False), "j": (131, False), "k": (512, False), "l": (2048, False),
}  # fmt: skip
RESULTS = (1, 8, 16, 31, 32, 48, 64, 65, 128, 200, 512, 2048)
OPERATORS = (*"+-*&|^~?&+", "<<", ">>", "b2d", "two_comp_mod", "usat_cast", "sat_cast")
PER_PROGRAM = 120
LARGEST = 2500  # bits of an intermediate value


class Maker:
    """Draws random expressions, and computes their values."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def number(self, depth: int) -> tuple[Node, int]:
        """An expression and an upper bound of its bits."""
        rng = self.rng
        if depth == 0 or rng.random() < 0.1:
            if rng.random() < 0.3:
                value = rng.choice(
                    [0, 1, 0xFF, 0x7FFFFFFF, 0x80000000, rng.getrandbits(rng.choice([3, 16, 32, 64, 100, 600]))]
                )
                return constant(value), max(value.bit_length(), 1)
            name = rng.choice(list(FIELDS))
            return {"type": "field", "value": ["given", name]}, FIELDS[name][0] + 1
        op = rng.choice(OPERATORS)
        if op == "b2d":
            return operation(op, None, self.truth(depth - 1)), 1
        left, m = self.number(depth - 1)
        if op in ("<<", ">>"):
            by = rng.choice([0, 1, 5, 31, 32, 63, 64, 65, 200])
            if rng.random() < 0.3:
                return (
                    (operation(op, left, {"type": "field", "value": ["given", "b"]}), m + 128)
                    if m < 1000
                    else (left, m)
                )
            return (operation(op, left, constant(by)), m + by) if m + by < LARGEST else (left, m)
        if op == "~":
            return operation(op, None, left), m + 1
        if op == "two_comp_mod":
            width = rng.choice([1, 8, 32, 64, 65, 300])
            return operation(op, left, constant(width)), width
        if op in ("usat_cast", "sat_cast"):
            width = rng.choice([2, 8, 31, 48])
            return (operation(op, left, constant(width)), width) if m <= 60 else (left, m)
        right, n = self.number(depth - 1)
        if op == "?":
            return operation(op, left, right, cond=self.truth(depth - 1)), max(m, n)
        if op == "*" and m + n > 700:
            op = "&"
        return operation(op, left, right), {"*": m + n, "+": max(m, n) + 1, "-": max(m, n) + 1}.get(op, max(m, n) + 1)

    def truth(self, depth: int) -> Node:
        rng = self.rng
        op = rng.choice(["==", "!=", "<", "<=", ">", ">=", "and", "or", "not", "d2b"]) if depth > 0 else "d2b"
        if op == "d2b":
            return operation(op, None, self.number(max(depth - 1, 0))[0])
        if op == "not":
            return operation(op, None, self.truth(depth - 1))
        if op in ("and", "or"):
            return operation(op, self.truth(depth - 1), self.truth(depth - 1))
        return operation(op, self.number(depth - 1)[0], self.number(depth - 1)[0])


def worth(node: Node, given: dict[str, int]) -> Any:
    """The oracle."""
    if node["type"] == "field":
        return given[node["value"][1]]
    if node["type"] == "hexstr":
        return int(node["value"], 16)
    value = node["value"]
    op, left, right = value["op"], value["left"], value["right"]
    if op == "and":
        return worth(left, given) and worth(right, given)
    if op == "or":
        return worth(left, given) or worth(right, given)
    if op == "?":
        return worth(left if worth(value["cond"], given) else right, given)
    y = worth(right, given)
    if left is None:
        unary: dict[str, Callable[[Any], Any]] = {
            "b2d": int, "d2b": bool, "not": lambda v: not v, "~": lambda v: ~v
        }  # fmt: skip
        return unary[op](y)
    x = worth(left, given)
    if op == "two_comp_mod":
        return (x + (1 << (y - 1))) % (1 << y) - (1 << (y - 1))
    if op == "usat_cast":
        return min(max(x, 0), (1 << y) - 1)
    if op == "sat_cast":
        return min(max(x, -(1 << (y - 1))), (1 << (y - 1)) - 1)
    binary = {
        "+": int.__add__, "-": int.__sub__, "*": int.__mul__, "&": int.__and__, "|": int.__or__, "^": int.__xor__,
        "<<": int.__lshift__, ">>": int.__rshift__, "==": int.__eq__, "!=": int.__ne__, "<": int.__lt__,
        "<=": int.__le__, ">": int.__gt__, ">=": int.__ge__,
    }  # fmt: skip
    return binary[op](x, y)


def program(expressions: list[Node], widths: list[int]) -> bytes:
    """BMv2 JSON that parses ``given``, assigns every expression to a field of ``result``, and sends that."""

    def padded(fields: list[list[Any]]) -> list[list[Any]]:
        padding = -sum(bits for _, bits, _ in fields) % 8
        return fields + ([["padding", padding, False]] if padding else [])

    steps = [
        small.primitive("add_header", {"type": "header", "value": "result"}),  # clears it: first of all, then
        *(small.primitive("assign", small.field("result", f"r{at}"), each) for at, each in enumerate(expressions)),
        small.primitive("remove_header", {"type": "header", "value": "given"}),
        small.send_to(1),
    ]
    made = small.program(steps)
    small.with_header(made, "given", padded([[name, bits, signed] for name, (bits, signed) in FIELDS.items()]))
    small.with_header(made, "result", padded([[f"r{index}", bits, False] for index, bits in enumerate(widths)]))
    made["parsers"][0]["parse_states"] = [small.state("start", small.extract("given"))]
    made["deparsers"][0]["order"] = ["given", "result"]
    return small.encoded(made)


@pytest.mark.parametrize("seed", range(6))
def test_engine_expressions_match_python_evaluation(seed: int) -> None:
    maker = Maker(seed)
    rng = maker.rng
    expressions = [maker.number(rng.randint(1, 5))[0] for _ in range(PER_PROGRAM)]
    widths = [rng.choice(RESULTS) for _ in expressions]
    with Switch.load(program(expressions, widths), compiler_flags=("-O1",)) as switch:
        for _ in range(25):
            given = {}
            for name, (bits, signed) in FIELDS.items():
                raw = rng.choice(
                    [rng.getrandbits(bits), 0, (1 << bits) - 1, 1 << (bits - 1), rng.getrandbits(min(bits, 4))]
                )
                given[name] = raw - (1 << bits) if signed and raw >> (bits - 1) else raw
            packet = pack([(given[name], bits) for name, (bits, _) in FIELDS.items()])
            ((port, out),) = switch.process(3, packet + b"payload")
            assert (port, out[-7:]) == (1, b"payload")
            for expression, width, found in zip(expressions, widths, unpack(out[:-7], widths), strict=True):
                assert found == worth(expression, given) & ((1 << width) - 1), (expression, given)
