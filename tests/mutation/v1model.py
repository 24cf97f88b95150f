"""Mutants of the v1model programs: the JSON that p4c wrote, with one node replaced.

The nodes name the source file that they come from; that name is the part of the program to which a node belongs.
"""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Iterator
from functools import partial
from pathlib import PurePath
from typing import Any, NamedTuple

from tests.mutation.mutants import Mutant

Json = Any
Way = tuple[str | int, ...]  # from the root of a document to a node

RELATIONS = {"==": "!=", "!=": "==", "<": "<=", "<=": "<", ">": ">=", ">=": ">"}
CONNECTIVES = {"and": "or", "or": "and"}
ARITHMETIC = {"+": "-", "-": "+", "*": "+", "&": "|", "|": "&", "^": "|", "<<": ">>", ">>": "<<"}


class Change(NamedTuple):
    """One node of the document to be replaced."""

    part: str
    operator: str
    place: str
    way: Way
    instead: Json


def mutants(program: str, seed: int, name: str = "v1model", parts: str = "") -> Iterator[Mutant]:
    """Yields every mutant that differs from the program in one place. Where a change can be made in several ways
    (such as which bit of a mask to clear), ``seed`` decides. parts: restricts it to the parts of the program whose
    names contain this text."""
    document = json.loads(program)
    for change in _changes(document, random.Random(seed)):
        if _at(document, change.way) != change.instead and parts in change.part:
            yield Mutant(name, change.part, change.operator, change.place, partial(_changed, document, change))


def _at(document: Json, way: Way) -> Json:
    for step in way:
        document = document[step]
    return document


def _changed(document: Json, change: Change) -> str:
    changed = copy.deepcopy(document)
    _at(changed, change.way[:-1])[change.way[-1]] = change.instead
    return json.dumps(changed)


def _changes(document: Json, rng: random.Random) -> Iterator[Change]:
    yield from _parser(document, rng)
    for number, deparser in enumerate(document["deparsers"]):
        for index, header in enumerate(deparser["order"]):
            order = deparser["order"][:index] + deparser["order"][index + 1 :]
            yield Change("parser", "header not sent", f"emit({header})", ("deparsers", number, "order"), order)
    yield from _checksums(document, rng)
    for number, action in enumerate(document["actions"]):
        yield from _action(action, ("actions", number), rng)
    for number, pipeline in enumerate(document["pipelines"]):
        for index, conditional in enumerate(pipeline["conditionals"]):
            way: Way = ("pipelines", number, "conditionals", index)
            part, place = _source(conditional)
            negated = {**conditional, "true_next": conditional["false_next"], "false_next": conditional["true_next"]}
            yield Change(part, "condition negated", f"if ({place})", way, negated)
            yield from _expression(conditional["expression"], (*way, "expression"), part, f"if ({place})", rng)
        for index, table in enumerate(pipeline["tables"]):
            yield from _table(document, table, ("pipelines", number, "tables", index))


def _source(node: Json, part: str = "", place: str = "") -> tuple[str, str]:
    """The part of the program that a node belongs to, and its text there. Nodes that p4c generated have no source, and
    constants have the source of their declaration; for those the part follows from the names of their variables."""
    info = node.get("source_info") or {}
    path = PurePath(info.get("filename", ""))
    if path.parent.name == "v1model":
        part = path.stem
    elif not part:
        named = re.search(r'"([a-z]+)_\w+"\]', json.dumps(node))
        part = named[1] if named and named[1] != "metadata" else "serene"
    return part, info.get("source_fragment") or place or json.dumps(node)[:60]


# -- parser, checksums, tables -----------------------------------------------------------------------------------


def _parser(document: Json, rng: random.Random) -> Iterator[Change]:
    for number, parser in enumerate(document["parsers"]):
        for index, state in enumerate(parser["parse_states"]):
            way: Way = ("parsers", number, "parse_states", index)
            name = state["name"]
            for at, operation in enumerate(state["parser_ops"]):
                rest = state["parser_ops"][:at] + state["parser_ops"][at + 1 :]
                place = f"{name}: {operation['op']} {operation['parameters'][0]['value']}"
                yield Change("parser", "primitive removed", place, (*way, "parser_ops"), rest)
                yield from _expression(
                    operation["parameters"], (*way, "parser_ops", at, "parameters"), "parser", place, rng
                )
            for at, transition in enumerate(state["transitions"]):
                if transition["type"] == "hexstr":
                    place, here = f"{name}: case {transition['value']}", (*way, "transitions", at)
                    yield _one_off("parser", place, transition["value"], (*here, "value"), rng)
                    others = [other["next_state"] for other in state["transitions"]]
                    for other in sorted({*others} - {transition["next_state"], None}, key=str):
                        yield Change("parser", "another state", f"{place} -> {other}", (*here, "next_state"), other)


def _checksums(document: Json, rng: random.Random) -> Iterator[Change]:
    for number, checksum in enumerate(document["checksums"]):
        part, _ = _source(checksum)
        what = "verify" if checksum["verify"] else "update"
        way: Way = ("checksums", number)
        yield Change(part, "checksum off", what, way, {**checksum, "verify": False, "update": False})
        yield from _expression(checksum.get("if_cond"), (*way, "if_cond"), part, f"{what}: its condition", rng)
    for number, calculation in enumerate(document["calculations"]):
        part, place = _source(calculation)
        for index, given in enumerate(calculation["input"]):
            rest = calculation["input"][:index] + calculation["input"][index + 1 :]
            place_ = f"{place.partition('(')[0]} without {'.'.join(map(str, given['value']))}"
            yield Change(part, "checksum's input", place_, ("calculations", number, "input"), rest)


def _table(document: Json, table: Json, way: Way) -> Iterator[Change]:
    part, place = _source(table)
    actions = {action["id"]: action for action in document["actions"]}
    if not table["key"]:
        return  # p4c's wrapping of a single action
    default = table["default_entry"]
    for action in table["action_ids"]:
        if action != default["action_id"] and not actions[action]["runtime_data"]:
            entry = {**default, "action_id": action}
            place_ = f"{place}: default {actions[action]['name'].rpartition('.')[2]}"
            yield Change(part, "another default", place_, (*way, "default_entry"), entry)
    sizes = {
        (header["name"], field[0]): field[1]
        for header in document["headers"]
        for kind in document["header_types"]
        if kind["name"] == header["header_type"]
        for field in kind["fields"]
    }
    for index, key in enumerate(table["key"]):
        header, field = key["target"]
        size = sizes.get((header, field))
        for (of, other), other_size in sizes.items():
            if of == header != "scalars" and other != field and size == other_size:
                place_ = f"{place}: key {header}.{field} -> {other}"
                yield Change(part, "another key", place_, (*way, "key", index, "target"), [header, other])


# -- actions and expressions -------------------------------------------------------------------------------------


def _action(action: Json, way: Way, rng: random.Random) -> Iterator[Change]:
    named = action["name"].split(".")
    part, place = named[1] if len(named) > 2 else "", named[-1]
    for index, primitive in enumerate(action["primitives"]):
        here = (*way, "primitives", index)
        part, place = _source(primitive, part, place)
        # Jumps count primitives, so nothing may move up: a jump to what follows stands in for what is removed.
        nothing = {"op": "_jump", "parameters": [{"type": "hexstr", "value": hex(index + 1)}]}
        operator = {"register_write": "write dropped", "register_read": "read dropped"}.get(primitive["op"])
        yield Change(part, operator or "primitive removed", f"{primitive['op']}: {place}", here, nothing)
        parameters = primitive["parameters"]
        if primitive["op"] == "_jump_if_zero":
            inner = parameters[0]["value"]["value"]  # an expression in an expression: b2d of a condition
            negated = {"type": "expression", "value": {"op": "not", "left": None, "right": inner["right"]}}
            there = (*here, "parameters", 0, "value", "value", "right")
            yield Change(part, "condition negated", f"if: {place}", there, negated)
        if primitive["op"] in ("_jump", "_jump_if_zero"):
            parameters = parameters[:-1]  # the last one is the jump's target
        yield from _expression(parameters, (*here, "parameters"), part, place, rng)


def _expression(node: Json, way: Way, part: str, place: str, rng: random.Random) -> Iterator[Change]:
    """Yields the changes of one expression; ``way`` puts the changed expression in its place."""
    if isinstance(node, list):
        for index, item in enumerate(node):
            yield from _expression(item, (*way, index), part, place, rng)
    if not isinstance(node, dict):
        return
    if node.get("type") == "hexstr":
        yield _one_off(part, place, node["value"], (*way, "value"), rng)
    elif node.get("type") == "bool":
        yield Change(part, "constant", f"{place}: {node['value']}", (*way, "value"), not node["value"])
    elif (
        node.get("type") == "expression" and isinstance(node["value"], dict) and node["value"].get("op") in ("not", "~")
    ):
        yield Change(part, "negation dropped", place, way, node["value"]["right"])
    if isinstance(node.get("op"), str):
        for operator, swaps in (("relation", RELATIONS), ("and/or", CONNECTIVES), ("arithmetic", ARITHMETIC)):
            if node["op"] in swaps and not _truncates(node):
                swapped = swaps[node["op"]]
                yield Change(
                    part, operator, f"{place}: {_text(node)}: {node['op']} -> {swapped}", (*way, "op"), swapped
                )
        if node["op"] == "&" and (node.get("right") or {}).get("type") == "hexstr":
            mask = int(node["right"]["value"], 16)
            bits = [bit for bit in range(mask.bit_length()) if mask >> bit & 1]
            if bits:
                # p4c's own masks truncate to a width whose upper bits few values use: change their lowest bit.
                less = mask & ~(1 << (bits[0] if _truncates(node) else rng.choice(bits)))
                there = (*way, "right", "value")
                yield Change(
                    part, "mask", f"{place}: {_text(node)}: & {_short(mask)} -> {_short(less)}", there, hex(less)
                )
                yield from _expression(node["left"], (*way, "left"), part, place, rng)
                return
    for name in ("value", "left", "right", "cond"):
        if isinstance(node.get(name), (dict, list)):
            yield from _expression(node[name], (*way, name), part, place, rng)


def _text(node: Json) -> str:
    """An expression written in P4, shortened."""
    if not isinstance(node, dict):
        return str(node)
    if "op" in node:
        sides = [_text(node[side]) for side in ("left", "right") if node.get(side) is not None]
        text = f"{node['op']} {sides[0]}" if len(sides) == 1 else f"({sides[0]} {node['op']} {sides[-1]})"
        text = text.removeprefix("d2b ").removeprefix("b2d ")
    elif isinstance(node.get("value"), list):
        text = ".".join(map(str, node["value"][-2 if node["value"][-1] == "$valid$" else -1 :]))
        text = re.sub(r"^metadata_t\._(\w+?)\d+$", r"meta.\1", text)  # p4c numbers what it flattens
    elif node.get("type") == "hexstr":
        text = _short(int(node["value"], 16))
    else:
        text = _text(node.get("value"))
    return text if len(text) < 90 else f"{text[:40]} ... {text[-40:]}"


def _truncates(node: Json) -> bool:
    """Whether this expression only truncates a result to its width, which p4c inserts by itself."""
    right = node.get("right") or {}
    if node["op"] != "&" or right.get("type") != "hexstr":
        return False
    mask = int(right["value"], 16)
    return mask & (mask + 1) == 0


def _one_off(part: str, place: str, value: str, way: Way, rng: random.Random) -> Change:
    number, digits = int(value, 16), len(value) - 2
    most = 16**digits - 1
    changed = number + rng.choice([step for step in (-1, 1) if 0 <= number + step <= most])
    return Change(part, "constant", f"{place}: {_short(number)} -> {_short(changed)}", way, f"0x{changed:0{digits}x}")


def _short(number: int) -> str:
    text = hex(number) if number > 255 else str(number)
    return text if len(text) < 20 else f"{text[:8]}...{text[-8:]}"
