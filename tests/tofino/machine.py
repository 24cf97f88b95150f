"""Runs a TNA program from its text: parsers, tables, register actions and deparsers, and between them the traffic
manager with unicast, multicast and the loop port.

Statements are executed in order, as P4 specifies, whatever stage the compiler puts them in. Programs that rely on more
than the hardware promises fail: metadata and headers that were never set hold noise, and a packet that reaches a
register twice is an error.
"""

from __future__ import annotations

import contextlib
import random
import zlib
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Any

from tests.tofino.p4text import Module, Node
from tests.tofino.values import (
    BOOL,
    Bits,
    Instance,
    Record,
    RegisterArray,
    Table,
    Type,
    Value,
    bytes_of,
    internet_checksum,
    matches,
    operate,
    pack,
    wrap,
)

NO_PORT = 511
PARTIAL_HEADER = 2  # the parser error for a packet that ends within a header


class CannotRun(Exception):
    """The program uses something that this machine does not implement, or that hardware could not do."""


class Return(Exception):
    """The statement ``return``."""


class Machine:
    """port_metadata: how many bytes the chip puts between its own metadata and the packet."""

    def __init__(self, module: Module, cpu_port: int, loop_port: int, seed: int = 0, *, port_metadata: int = 8) -> None:
        self.module = module
        self._port_metadata = bytes(port_metadata)
        self.noise = random.Random(seed)
        self.tables: dict[str, Table] = {}
        self.registers: dict[str, RegisterArray] = {}
        self.counters: Counter[tuple[str, int]] = Counter()
        self.groups: dict[int, list[tuple[int, int]]] = {}
        self.digests: list[list[int]] = []  # the values of each digest, in the order of its fields
        self.touched: set[str] = set()
        self._types: dict[Node, Type] = {}  # these caches save a fifth of the time
        self._fields: dict[str, dict[str, Type]] = {}  # the fields of headers and structs
        self._members: dict[Node, Value] = {}  # the members of enumerations
        self._keys: dict[Node, tuple[str, list[int]]] = {}  # the keys of entries and of parsers' selects
        self.constants = {name: (self._constant(kind, value)) for name, (kind, value) in module.constants.items()}
        pipeline = next(item for item in module.main if item[3][1] == "Pipeline")
        self.blocks = [self._instantiate(argument[1][1], argument[1][1]) for argument in pipeline[4]]
        self.cpu_port, self.loop_port = cpu_port, loop_port

    # -- the control plane -----------------------------------------------------------------------------------

    def insert(self, table: str, match: Sequence[int], action: str, params: Sequence[int]) -> None:
        found = self.tables[table]
        assert len(match) == len(found.keys), f"{table} has {len(found.keys)} keys"
        found.added[tuple(match)] = (found.actions[action], params)

    def delete(self, table: str, match: Sequence[int]) -> None:
        del self.tables[table].added[tuple(match)]

    # -- packets ---------------------------------------------------------------------------------------------

    def process(self, port: int, frame: bytes) -> list[tuple[int, bytes]]:
        """Processes a frame, and returns the (port, frame) pairs that leave the switch because of it, also after
        looping back."""
        out: list[tuple[int, bytes]] = []
        arriving = deque([(port, frame)])
        while arriving:
            for to_port, data in self.one_pass(*arriving.popleft()):
                if to_port == self.loop_port:
                    arriving.append((to_port, data))
                else:
                    out.append((to_port, data))
        return out

    def one_pass(self, port: int, frame: bytes) -> list[tuple[int, bytes]]:
        """Takes a frame once through ingress, the traffic manager and egress."""
        self.touched.clear()
        ingress_parser, ingress, ingress_deparser, egress_parser, egress, egress_deparser = self.blocks
        intrinsic = self._zeros("ingress_intrinsic_metadata_t")
        intrinsic.fields["ingress_port"] = port
        headers, meta = self._noise_for(ingress_parser, 1), self._noise_for(ingress_parser, 2)
        packet = Bits(bytes_of(intrinsic) + self._port_metadata + frame)
        from_parser = self._zeros("ingress_intrinsic_metadata_from_parser_t")
        from_parser.fields["parser_err"] = self._parse(ingress_parser, packet, headers, meta, intrinsic)
        for_deparser = self._zeros("ingress_intrinsic_metadata_for_deparser_t")
        for_tm = self._zeros("ingress_intrinsic_metadata_for_tm_t")
        for_tm.fields["ucast_egress_port"] = NO_PORT
        self._apply(ingress, [headers, meta, intrinsic, from_parser, for_deparser, for_tm])
        data = self._deparse(ingress_deparser, packet, headers, [meta, for_deparser, intrinsic])
        if for_deparser.fields["drop_ctl"] & 1:
            return []
        group, unicast = for_tm.fields["mcast_grp_a"], for_tm.fields["ucast_egress_port"]
        copies = list(self.groups.get(group, [])) if group else []
        if unicast != NO_PORT:
            copies.append((unicast, 0))
        if for_tm.fields["bypass_egress"]:
            return [(to_port, data) for to_port, _ in copies]

        out = []
        for to_port, replica in copies:
            intrinsic = self._zeros("egress_intrinsic_metadata_t")
            intrinsic.fields["egress_port"], intrinsic.fields["egress_rid"] = to_port, replica
            headers, meta = self._noise_for(egress_parser, 1), self._noise_for(egress_parser, 2)
            packet = Bits(bytes_of(intrinsic) + data)
            if self._parse(egress_parser, packet, headers, meta, intrinsic):
                continue  # the egress parser drops what it cannot parse
            from_parser = self._zeros("egress_intrinsic_metadata_from_parser_t")
            for_deparser = self._zeros("egress_intrinsic_metadata_for_deparser_t")
            for_port = self._zeros("egress_intrinsic_metadata_for_output_port_t")
            self._apply(egress, [headers, meta, intrinsic, from_parser, for_deparser, for_port])
            if not for_deparser.fields["drop_ctl"] & 1:
                out.append((to_port, self._deparse(egress_deparser, packet, headers, [meta, for_deparser])))
        return out

    def _parse(self, instance: Instance, packet: Bits, headers: Record, meta: Record, intrinsic: Record) -> int:
        scope = self._bind(instance, [packet, headers, meta, intrinsic])
        states, state = instance.block[4], "start"
        try:
            while state not in ("accept", "reject"):
                state = self._state(states[state], scope)
        except EOFError:
            return PARTIAL_HEADER
        return 0

    def _state(self, statements: list[Node], scope: dict[str, Any]) -> str:
        for statement in statements:
            if statement[0] == "transition":
                return str(statement[1])
            if statement[0] == "select":
                values = [self._eval(key, scope) for key in statement[1]]
                for keyset, target in statement[2]:
                    items = keyset[1] if keyset[0] == "tuple" else [keyset] * len(values)
                    if all(self._fits(item, value[0]) for item, value in zip(items, values, strict=True)):
                        return str(target)
                return "reject"
            self._do(statement, scope)
        return "reject"

    def _deparse(self, instance: Instance, packet: Bits, headers: Record, rest: list[Record]) -> bytes:
        self._apply(instance, [packet, headers, *rest][: len(instance.block[2])])
        assert packet.out_bits % 8 == 0
        return packet.out.to_bytes(packet.out_bits // 8, "big") + packet.data[packet.at // 8 :]

    # -- types and values ------------------------------------------------------------------------------------

    def _type(self, node: Node) -> Type:
        if node not in self._types:
            self._types[node] = self._resolve(node)
        return self._types[node]

    def _resolve(self, node: Node) -> Type:
        if node[0] in ("bit", "int"):
            return (node[0], self._eval(node[1], {})[0])
        if node[1] in ("bool", "void"):
            return BOOL
        known = self.module.types.get(node[1])
        if known is None:
            raise CannotRun(f"type {node[1]}")
        if known[0] == "alias":
            return self._type(known[1])
        if known[0] == "enum":
            return self._type(known[1]) if known[1] else ("bit", 8)
        return ("record", node[1])

    def _constant(self, kind: Node, value: Node) -> Value:
        self.constants = getattr(self, "constants", {})
        if kind[1] not in ("ParserError_t",):
            self.constants[kind[1]] = (0, None)  # so that a constant may refer to earlier ones
        resolved = self._type(kind)
        return wrap(int(self._eval(value, {})[0]), resolved), resolved

    def _record(self, name: str, leaf: Callable[[Type], Any], valid: bool) -> Record:
        kind, fields = self.module.types[name]
        if name not in self._fields:
            self._fields[name] = {field: self._type(field_type) for field, field_type in fields}
        types = self._fields[name]
        values = {key: self._record(t[1], leaf, valid) if t[0] == "record" else leaf(t) for key, t in types.items()}
        return Record(name, types, values, valid if kind == "header" else True)

    def _zeros(self, name: str) -> Record:
        return self._record(name, lambda kind: 0, True)

    def _noise_for(self, instance: Instance, parameter: int) -> Record:
        kind = self._type(instance.block[2][parameter][1])
        return self._record(kind[1], lambda t: self.noise.getrandbits(t[1]) if t != BOOL else False, False)

    # -- blocks ----------------------------------------------------------------------------------------------

    def _instantiate(self, name: str, path: str) -> Instance:
        block = self.module.blocks[name]
        scope: dict[str, Any] = {action: node for action, node in self.module.actions.items()}
        for item in block[3]:
            if item[0] == "action":
                scope[item[1]] = item
            elif item[0] == "table":
                _, local, full_name, keys, actions, entries, default = item
                known = {scope[action][2].rpartition(".")[2]: action for action in actions}
                short = full_name.rpartition(".")[2]
                table = Table(short, [key[0] for key in keys], [key[1] for key in keys], known, entries, default)
                assert short not in self.tables, f"two tables named {short}"
                scope[local] = self.tables[short] = table
            elif item[0] == "instance":
                scope[item[1]] = self._extern(item, scope, f"{path}.{item[1]}")
            elif item[0] == "declare":
                scope[item[2]] = item
            else:
                raise CannotRun(str(item[:2]))
        return Instance(block, scope)

    def _extern(self, item: Node, scope: dict[str, Any], path: str) -> Any:
        _, _, full_name, kind, arguments, functions = item
        short = full_name.rpartition(".")[2]
        if kind[1] in self.module.blocks:
            return self._instantiate(kind[1], path)
        if kind[1] == "Register":
            array = RegisterArray(short, self._type(kind[2]), self._eval(arguments[0], scope)[0])
            self.registers[short] = array
            return array
        if kind[1] == "RegisterAction":
            return ("register_action", scope[arguments[0][1]], functions["apply"], self._type(kind[4]))
        if kind[1] == "Counter":
            return ("counter", short, self._eval(arguments[0], scope)[0])
        if kind[1] == "Hash":
            return ("hash", arguments[0][2], self._type(kind[2]))
        if kind[1] in ("Checksum", "Digest"):
            return (kind[1].lower(), [])
        raise CannotRun(f"extern {kind[1]}")

    def _bind(self, instance: Instance, arguments: Sequence[Any]) -> dict[str, Any]:
        """The scope of a call, with the arguments by parameter. They are not copied: the program passes only
        records."""
        scope = dict(instance.scope)
        for (_, _, name), argument in zip(instance.block[2], arguments, strict=True):
            scope[name] = argument
        for item in instance.block[3]:
            if item[0] == "declare":
                self._do(item, scope)
        return scope

    def _apply(self, instance: Instance, arguments: Sequence[Any]) -> None:
        scope = self._bind(instance, arguments)
        with contextlib.suppress(Return):
            self._run(instance.block[4], scope)

    def _run(self, statements: list[Node], scope: dict[str, Any]) -> None:
        for statement in statements:
            self._do(statement, scope)

    def _do(self, statement: Node, scope: dict[str, Any]) -> None:
        kind = statement[0]
        if kind == "assign":
            self._assign(statement[1], self._eval(statement[2], scope), scope)
        elif kind == "do":
            self._eval(statement[1], scope)
        elif kind == "if":
            self._do(statement[2] if self._eval(statement[1], scope)[0] else statement[3], scope)
        elif kind == "block":
            self._run(statement[1], scope)
        elif kind == "declare":
            declared = self._type(statement[1])
            if declared[0] == "record":
                scope[statement[2]] = self._record(declared[1], lambda t: self.noise.getrandbits(t[1]), False)
            else:
                value = 0 if statement[3] is None else self._eval(statement[3], scope)[0]
                scope[statement[2]] = [wrap(value, declared), declared]
        elif kind == "return":
            raise Return
        else:
            raise CannotRun(str(statement))

    def _assign(self, target: Node, value: Value, scope: dict[str, Any]) -> None:
        if target[0] == "member":
            record = self._eval(target[1], scope)[0]
            record.fields[target[2]] = wrap(value[0], record.types[target[2]])
        elif target[0] == "name":
            cell = scope[target[1]]
            if isinstance(cell, Record):
                cell.fields.update(value[0].fields)
            else:
                cell[0] = wrap(value[0], cell[1])
        elif target[0] == "slice":
            high, low = (self._eval(node, scope)[0] for node in target[2:])
            old, kind = self._eval(target[1], scope)
            mask = ((1 << (high - low + 1)) - 1) << low
            self._assign(target[1], (old & ~mask | value[0] << low & mask, kind), scope)
        else:
            raise CannotRun(str(target))

    # -- expressions -----------------------------------------------------------------------------------------

    def _eval(self, node: Node, scope: dict[str, Any]) -> Value:
        kind = node[0]
        if kind == "member":
            return self._member(node, scope)
        if kind == "name":
            found = scope.get(node[1])
            if found is None:
                return self.constants[node[1]]
            if isinstance(found, list):
                return found[0], found[1]
            return found, None
        if kind == "number":
            sort = None if node[2] is None else ("int" if node[2][1] else "bit", node[2][0])
            return wrap(node[1], sort), sort
        if kind == "binary":
            return self._binary(node, scope)
        if kind == "call":
            return self._call(node, scope)
        if kind == "cast":
            sort = self._type(node[1])
            value = self._eval(node[2], scope)[0]
            if sort[0] == "record":  # a list of fields
                return value, None
            return (bool(value), BOOL) if sort == BOOL else (wrap(int(value), sort), sort)
        if kind == "slice":
            value, _ = self._eval(node[1], scope)
            high, low = (self._eval(item, scope)[0] for item in node[2:])
            return value >> low & ((1 << (high - low + 1)) - 1), ("bit", high - low + 1)
        if kind == "unary":
            value, sort = self._eval(node[2], scope)
            if node[1] == "!":
                return not value, BOOL
            return wrap(~value if node[1] == "~" else -value, sort), sort
        if kind == "choice":
            return self._eval(node[2] if self._eval(node[1], scope)[0] else node[3], scope)
        if kind == "bool":
            return node[1], BOOL
        if kind == "tuple":
            return [self._eval(item, scope) for item in node[1]], None
        raise CannotRun(str(node))

    def _member(self, node: Node, scope: dict[str, Any]) -> Value:
        if node[1][0] == "name" and node[1][1] not in scope and node[1][1] in self.module.types:
            if node not in self._members:
                values, kind = self.module.types[node[1][1]][2], self._type(("named", node[1][1]))
                self._members[node] = wrap(self._eval(values[node[2]], {})[0], kind), kind
            return self._members[node]
        holder = self._eval(node[1], scope)[0]
        if isinstance(holder, Record):
            return holder.fields[node[2]], holder.types[node[2]]
        if isinstance(holder, bool) and node[2] == "hit":
            return holder, BOOL
        raise CannotRun(str(node))

    def _binary(self, node: Node, scope: dict[str, Any]) -> Value:
        op, left = node[1], self._eval(node[2], scope)
        if op == "&&":
            return bool(left[0] and self._eval(node[3], scope)[0]), BOOL
        if op == "||":
            return bool(left[0] or self._eval(node[3], scope)[0]), BOOL
        return operate(op, left, self._eval(node[3], scope))

    # -- calls -----------------------------------------------------------------------------------------------

    def _call(self, node: Node, scope: dict[str, Any]) -> Value:
        target, arguments = node[1], node[2]
        if target[0] == "name":
            self._action(scope[target[1]], [self._eval(item, scope) for item in arguments], scope)
            return None, None
        method = target[2]
        if target[1] == ("name", "this"):
            answers = [bool(self._eval(item, scope)[0]) for item in arguments]
            return 1 << sum(answer << place for place, answer in enumerate(answers)), ("bit", 4)
        holder = self._eval(target[1], scope)[0]
        if isinstance(holder, Record):
            if method == "isValid":
                return holder.valid, BOOL
            holder.valid = method == "setValid"
            return None, None
        if isinstance(holder, Table):
            return self._look_up(holder, scope), None
        if isinstance(holder, Instance):
            self._apply(holder, [self._eval(item, scope)[0] for item in arguments])
            return None, None
        if isinstance(holder, Bits):
            return self._packet(holder, method, arguments, scope)
        return self._extern_call(holder, method, arguments, scope)

    def _action(self, action: Node, arguments: list[Value], scope: dict[str, Any]) -> None:
        inner = dict(scope)
        for (_, kind, name), argument in zip(action[3], arguments, strict=True):
            resolved = self._type(kind)
            inner[name] = [wrap(argument[0], resolved), resolved]
        self._run(action[4], inner)

    def _fits(self, item: Node, value: int) -> bool:
        known = self._keys.get(item)
        if known is None:
            parts = item[1:] if item[0] in ("mask", "range") else [] if item[0] == "any" else [item]
            known = self._keys[item] = item[0], [int(self._eval(part, {})[0]) for part in parts]
        return matches(*known, int(value))

    def _look_up(self, table: Table, scope: dict[str, Any]) -> bool:
        values = [int(self._eval(key, scope)[0]) for key in table.keys]
        added = table.added.get(tuple(values))
        if added is not None:
            self._action(scope[added[0]], [(value, None) for value in added[1]], scope)
            return True
        for keyset, call in table.entries:
            if all(self._fits(item, value) for item, value in zip(keyset, values, strict=True)):
                self._call(call, scope)
                return True
        if table.default is not None:
            self._call(table.default, scope)
        return False

    def _packet(self, packet: Bits, method: str, arguments: list[Node], scope: dict[str, Any]) -> Value:
        if method == "advance":
            packet.take(self._eval(arguments[0], scope)[0])
            return None, None
        header = self._eval(arguments[0], scope)[0]
        if method == "extract":
            whole = sum(kind[1] for kind in header.types.values())
            value = packet.take(whole)
            for name, kind in header.types.items():
                whole -= kind[1]
                header.fields[name] = value >> whole & ((1 << kind[1]) - 1)
            header.valid = True
        elif method == "emit":
            if header.valid:
                for name, kind in header.types.items():
                    packet.put(header.fields[name], kind[1])
        else:
            raise CannotRun(method)
        return None, None

    def _extern_call(self, holder: Any, method: str, arguments: list[Node], scope: dict[str, Any]) -> Value:
        kind = holder[0]
        if kind == "register_action":
            return self._execute(holder, self._eval(arguments[0], scope)[0], scope), holder[3]
        if kind == "counter":
            index = self._eval(arguments[0], scope)[0]
            assert index < holder[2], holder[1]
            self.counters[holder[1], index] += 1
            return None, None
        if kind == "hash":
            packed, width = pack(self._eval(arguments[0], scope)[0])
            if holder[1] == "IDENTITY":
                return wrap(packed, holder[2]), holder[2]
            assert holder[1] == "CRC32"
            return zlib.crc32(packed.to_bytes(width // 8, "big")), holder[2]
        if kind == "checksum":
            return self._checksum(holder, method, arguments, scope)
        if kind == "digest":
            self.digests.append([value for value, _ in self._eval(arguments[0], scope)[0]])
            return None, None
        raise CannotRun(kind)

    def _checksum(self, holder: Any, method: str, arguments: list[Node], scope: dict[str, Any]) -> Value:
        if method == "add":
            holder[1][:] = [bytes_of(self._eval(arguments[0], scope)[0])]
            return None, None
        if method == "verify":  # returns whether the checksum is wrong, despite its name
            return internet_checksum(holder[1][0]) != 0, BOOL
        packed, width = pack(self._eval(arguments[0], scope)[0])
        return internet_checksum(packed.to_bytes(width // 8, "big")), ("bit", 16)

    def _execute(self, holder: Any, index: int, scope: dict[str, Any]) -> Any:
        """Runs a register action on one cell: one read, one write, and at most one word returned."""
        _, register, (parameters, body), returned = holder
        if register.name in self.touched:
            raise CannotRun(f"register {register.name}: a second access by one packet")
        self.touched.add(register.name)
        if index >= register.size:
            raise CannotRun(f"register {register.name}: no place {index}")
        record = register.cell[0] == "record"
        value = register.cells.get(index)
        if value is None:
            value = self._zeros(register.cell[1]) if record else 0
        inner = dict(scope)
        cell: Any = value.copy() if record else [value, register.cell]
        inner[parameters[0][2]] = cell
        result: list[Any] = [0, returned]
        if len(parameters) > 1:
            inner[parameters[1][2]] = result
        self._run(body, inner)
        register.cells[index] = cell if record else cell[0]
        return result[0]
