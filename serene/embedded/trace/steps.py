"""Converts a traced program's records (runtime/trace.h) to a tree of steps for each packet.

Steps have the names in the program's JSON. Of numbers wider than 128 bits, only the most significant 128 bits are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from serene.embedded.codegen.trace import MOST_WIDE_BITS, SIGNED, word_count
from serene.embedded.control.loaded import integer
from serene.embedded.program.ir import Action, Field, Key, Program, Table, limbs_of, messages

Value = int | str | bool | list[int] | dict[str, "Value"]

# As in runtime/trace.h, in this order.
(
    END, PACKET, INGRESS, EGRESS, PARSER, ACTION, COPIES,
    STATE, SELECT, HEADER, PARSER_ERROR, CHECKSUM, TABLE, MEMBER, CONDITION, REGISTER_READ, REGISTER_WRITE, COUNTER,
    METER, REQUEST, EMIT, OUTPUT, DROP, BYTES, LOG, DIGEST,
) = range(26)  # fmt: skip
REQUESTS = ("drop", "exit", "clone", "digest", "resubmit", "recirculate", "truncate")
COPY_KINDS = ("multicast group", "clone session (ingress)", "clone session (egress)")
CHECKSUMS = ("right", "wrong", "updated")
COLOURS = ("green", "yellow", "red")
INSTANCE_TYPES = {
    0: "normal", 1: "ingress clone", 2: "egress clone", 4: "recirculated", 5: "replicated", 6: "resubmitted",
}  # fmt: skip
DROPPED_INGRESS, DROPPED_EGRESS, DROPPED_NO_GROUP, DROPPED_CUT_OFF, DROPPED_NO_PORT = range(5)


@dataclass
class Step:
    """One step of a packet's processing, with the steps inside it."""

    kind: str
    name: str = ""
    values: dict[str, Value] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)

    def json(self) -> dict[str, Any]:
        """The step as JSON: {kind, name, ...values, steps}; empty members are left out."""
        name = {"name": self.name} if self.name else {}
        steps = {"steps": [step.json() for step in self.steps]} if self.steps else {}
        return {"kind": self.kind, **name, **self.values, **steps}

    def all(self, *kinds: str) -> Iterator[Step]:
        """The steps of these kinds, in the order in which they happened."""
        for step in self.steps:
            if step.kind in kinds:
                yield step
            yield from step.all(*kinds)

    def count(self) -> int:
        """The number of steps, including this one."""
        return 1 + sum(step.count() for step in self.steps)

    @property
    def outputs(self) -> list[tuple[int, int]]:
        """(port, length) of each packet that left, in order."""
        return [(int(str(s.values["port"])), int(str(s.values["length"]))) for s in self.all("output")]


def step_from_json(fields: Mapping[str, Any]) -> Step:
    """The inverse of ``Step.json``."""
    values = {name: value for name, value in fields.items() if name not in ("kind", "name", "steps")}
    return Step(
        fields["kind"], fields.get("name", ""), values, [step_from_json(inner) for inner in fields.get("steps", ())]
    )


class TraceReader:
    """Reads one program's records."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._headers = list(program.headers.values())
        self._tables = {table.id: table for table in program.tables.values()}
        self._actions = {action.id: action for action in program.actions}
        self._states = [state["name"] for state in program.json["parsers"][0]["parse_states"]]
        self._errors = {number: name for name, number in program.json.get("errors") or ()}
        self._messages = messages(program.json)
        self._checksums: Sequence[Mapping[str, Any]] = program.json.get("checksums") or ()
        ordered = [program.pipelines[name] for name in ("ingress", "egress")]
        self._conditions = [conditional for pipeline in ordered for conditional in pipeline.conditionals]
        self._sources = _condition_sources(program)
        self._arrays = {
            kind: {array.id: array for array in arrays.values()}
            for kind, arrays in (
                ("register", program.registers),
                ("counter", program.counters),
                ("meter", program.meters),
                ("profile", program.action_profiles),
            )
        }
        self._leaf: dict[int, Callable[[int, list[int]], Step]] = {
            STATE: lambda id_, _: Step("state", self._states[id_]),
            SELECT: lambda id_, words: Step("select", self._states[id_], {"key": words}),
            HEADER: self._header,
            PARSER_ERROR: lambda id_, _: Step("parser error", str(self._errors.get(id_, id_))),
            CHECKSUM: self._checksum,
            TABLE: self._table,
            MEMBER: self._member,
            CONDITION: self._condition,
            REGISTER_READ: lambda id_, words: self._register("register read", id_, words),
            REGISTER_WRITE: lambda id_, words: self._register("register write", id_, words),
            COUNTER: lambda id_, words: Step("counter", self._arrays["counter"][id_].name, {"index": words[0]}),
            METER: self._meter,
            REQUEST: lambda id_, words: Step("request", REQUESTS[id_], {"number": words[0]} if words else {}),
            EMIT: lambda id_, _: Step("emit", self._headers[id_].name),
            OUTPUT: lambda id_, words: Step("output", "", {"port": id_, "length": words[0], "instance": words[1]}),
            LOG: lambda id_, words: Step("log", _formatted(self._messages[id_], words)),
            DIGEST: self._digest,
            BYTES: lambda id_, words: Step("bytes", ("in", "out")[id_], {"hex": _bytes(words)}),
        }

    def packets(self, words: Sequence[int]) -> Iterator[Step]:
        """A step of kind "packet" for each record."""
        at = 0
        while at < len(words):
            size, cut = words[at], bool(words[at + 1])
            yield self._packet(words[at + 2 : at + 2 + size], cut)
            at += 2 + size

    def _packet(self, words: Sequence[int], cut: bool) -> Step:
        root = Step("packet")
        open_steps, at = [root], 0
        while at < len(words):
            head = int(words[at])
            kind, count, id_ = head & 0xFF, head >> 8 & 0xFFFFFF, head >> 32
            own = [int(word) for word in words[at + 1 : at + 1 + count]]
            at += 1 + count
            if kind == PACKET:
                root.values = {"port": id_, "length": own[0], "time_ns": own[1]}
            elif kind == END:
                open_steps.pop()
            elif kind == DROP:
                open_steps[-1].steps.append(Step("drop", _reason(id_, own, open_steps)))
            else:
                step = self._leaf[kind](id_, own) if kind in self._leaf else self._branch(kind, id_, own)
                open_steps[-1].steps.append(step)
                if kind not in self._leaf:
                    open_steps.append(step)
        if cut:
            root.values["cut"] = True
        return root

    def _branch(self, kind: int, id_: int, words: list[int]) -> Step:
        if kind == PARSER:
            return Step("parser")
        if kind == ACTION:
            action = self._actions[id_]
            return Step("action", action.name, _named(_parameters(action), words))
        if kind == COPIES:
            return Step("copies", COPY_KINDS[id_], {"number": words[0], "replicas": words[1]})
        if kind == INGRESS:
            return Step("ingress", "", {"port": id_, "type": INSTANCE_TYPES.get(words[0], str(words[0]))})
        of = INSTANCE_TYPES.get(words[1], str(words[1]))
        return Step("egress", "", {"port": id_, "instance": words[0], "type": of})

    def _header(self, id_: int, words: list[int]) -> Step:
        header = self._headers[id_]
        return Step("header", header.name, _fields(header.type.fields, words))

    def _checksum(self, id_: int, words: list[int]) -> Step:
        target = self._checksums[id_]["target"]
        return Step("checksum", ".".join(target), {"result": CHECKSUMS[words[0]], "value": words[1]})

    def _table(self, id_: int, words: list[int]) -> Step:
        table = self._tables[id_]
        hit = words[0] != (1 << 64) - 1
        limbs, key = table.key_limbs, words[2:]
        values: dict[str, Value] = {"hit": hit}
        if table.keys:
            values["key"] = {one.name: value for one, value in _key_values(table, key[:limbs])}
        if hit:
            values["entry"] = words[0]
            entry = zip(_key_values(table, key[limbs : 2 * limbs]), _key_values(table, key[2 * limbs :]), strict=True)
            values["match"] = {one.name: _match(one, value, keep) for (one, value), (_, keep) in entry}
            if table.kind == "ternary":
                values["priority"] = words[1]
        return Step("table", table.name, values)

    def _member(self, id_: int, words: list[int]) -> Step:
        what = "group" if words[0] else "member"
        return Step("action profile", self._arrays["profile"][id_].name, {what: words[1], "hash": words[2]})

    def _condition(self, id_: int, words: list[int]) -> Step:
        conditional = self._conditions[id_]
        source = self._sources.get(conditional.name)
        return Step("condition", conditional.name, {"is": bool(words[0]), **({"source": source} if source else {})})

    def _register(self, kind: str, id_: int, words: list[int]) -> Step:
        array = self._program.registers[self._arrays["register"][id_].name]
        value: Value = _number(words[1:], array.width) if len(words) > 1 else "outside"
        return Step(kind, array.name, {"index": words[0], "value": value})

    def _digest(self, id_: int, words: list[int]) -> Step:
        """A digest's values in order. Their names are left out, because p4c generates them."""
        name, fields = self._program.digests[id_]
        values, at = [], 0
        for place in fields:
            limbs = limbs_of(self._program.field(*place).width)
            values.append(integer(words[at : at + limbs]))
            at += limbs
        return Step("digest", name, {"values": values})

    def _meter(self, id_: int, words: list[int]) -> Step:
        colour = COLOURS[words[1]] if words[1] < len(COLOURS) else str(words[1])
        return Step("meter", self._arrays["meter"][id_].name, {"index": words[0], "colour": colour})


def _tested_variable(expression: Any) -> str | None:
    """The variable that an expression tests, if it does nothing else. p4c has no P4 text for its own variables
    (hasReturned, hasExited)."""
    match expression:
        case {
            "type": "expression",
            "value": {"op": "d2b", "left": None, "right": {"type": "field", "value": [_, str(name)]}},
        }:
            return name
    return None


def _condition_sources(program: Program) -> dict[str, str]:
    """The P4 text of each condition, by name; for p4c's own conditions, the variable."""
    found = {}
    for pipeline in program.json["pipelines"]:
        for item in pipeline.get("conditionals") or ():
            source = (item.get("source_info") or {}).get("source_fragment") or _tested_variable(item["expression"])
            if source:
                found[item["name"]] = source
    return found


def _reason(why: int, words: Sequence[int], open_steps: Sequence[Step]) -> str:
    """The reason of a drop as text. The packet was marked to be dropped by the last action of the pass that did so.
    Actions inside copies belong to the packet's clones and do not count."""
    if why == DROPPED_NO_GROUP:
        return "its multicast group has no replicas"
    if why == DROPPED_NO_PORT:
        return f"there is no port {words[0]}"
    if why == DROPPED_CUT_OFF:
        return "it caused too many passes, copies or steps"
    here = open_steps[-1]
    asked = [
        action.name
        for action in here.steps
        if action.kind == "action" and any(step.kind == "request" and step.name == "drop" for step in action.steps)
    ]
    if asked:
        return f"marked to drop by {asked[-1]} in {here.kind}"
    return f"its egress port is the drop port after {here.kind}"


def _parameters(action: Action) -> list[Field]:
    return list(action.parameters)


def _named(parameters: Sequence[Field], words: list[int]) -> dict[str, Value]:
    """An action's parameters by name. Each has whole limbs in the entry's data."""
    values: dict[str, Value] = {}
    at = 0
    for parameter in parameters:
        size = limbs_of(parameter.width)
        values[parameter.name] = integer(words[at : at + size])
        at += size
    return values


def _fields(fields: Sequence[Field], words: list[int]) -> dict[str, Value]:
    values: dict[str, Value] = {}
    at = 0
    for one in fields:
        size = word_count(one)
        if one.most_bytes:
            values[one.name] = f"{words[at]} bytes"
        else:
            values[one.name] = _number(words[at : at + size], one.width)
        at += size
    return values


def _number(words: Sequence[int], width: int) -> Value:
    if width <= MOST_WIDE_BITS:
        return integer(words)
    return f"0x{integer(words):032x}... ({width} bits)"


def _key_values(table: Table, words: Sequence[int]) -> list[tuple[Key, int]]:
    result, at = [], 0
    for key in table.keys:
        size = limbs_of(key.width)
        result.append((key, integer(words[at : at + size])))
        at += size
    return result


def _match(key: Key, value: int, keep: int) -> Value:
    if key.match_type == "lpm":
        return f"{value:#x}/{keep.bit_count()}"
    if key.match_type == "range":
        return f"{value}..{keep}"
    if key.match_type in ("ternary", "optional"):
        return f"{value:#x} &&& {keep:#x}" if keep else "anything"
    return value


def _formatted(message: str, words: Sequence[int]) -> str:
    """A log_msg's text with its values inserted. Each value is (bits, two words)."""
    text, *rest = message.split("{}")
    for place, following in enumerate(rest):
        bits, *value = words[3 * place : 3 * place + 3] or (0,)
        signed, width = divmod(bits, SIGNED)
        number = _number(value, width)
        if signed and isinstance(number, int) and number >> (width - 1) & 1:
            number -= 1 << width
        text += (str(number) if width else "{}") + following
    return text


def _bytes(words: Sequence[int]) -> str:
    data = b"".join(word.to_bytes(8, "little") for word in words[1:])
    return data[: words[0]].hex()
