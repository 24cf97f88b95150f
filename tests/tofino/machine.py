"""Runs a TNA program from its text: parsers, tables, register actions and deparsers, and between them the traffic
manager with unicast, multicast and the loop port.

Statements are executed in order, as P4 specifies, whatever stage the compiler puts them in. Programs that rely on more
than the hardware promises fail: metadata and headers that were never set hold noise, and a packet that reaches a
register twice is an error.
"""

from __future__ import annotations

import random
import zlib
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Any

from tests.tofino.code import CannotRun, code_of
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
    pack,
    wrap,
)

NO_PORT = 511
PARTIAL_HEADER = 2  # the parser error for a packet that ends within a header


class Machine:
    """port_metadata: how many bytes the chip puts between its own metadata and the packet."""

    def __init__(self, module: Module, cpu_port: int, loop_port: int, seed: int = 0, *, port_metadata: int = 8) -> None:
        self.module, self.code = module, code_of(module)
        self._port_metadata = bytes(port_metadata)
        self.noise = random.Random(seed)
        self.tables: dict[str, Table] = {}
        self.registers: dict[str, RegisterArray] = {}
        self.counters: Counter[tuple[str, int]] = Counter()
        self.groups: dict[int, list[tuple[int, int]]] = {}
        self.digests: list[list[int]] = []  # the values of each digest, in the order of its fields
        self.touched: set[str] = set()
        pipeline = next(item for item in module.main if item[3][1] == "Pipeline")
        self.blocks = [self._instantiate(argument[1][1], argument[1][1]) for argument in pipeline[4]]
        self.cpu_port, self.loop_port = cpu_port, loop_port

    # -- the control plane -----------------------------------------------------------------------------------

    def insert(self, table: str, match: Sequence[int], action: str, params: Sequence[int]) -> None:
        found = self.tables[table]
        assert len(match) == found.keys, f"{table} has {found.keys} keys"
        function, kinds = found.functions[action]
        found.added[tuple(match)] = function, [wrap(*each) for each in zip(params, kinds, strict=True)]

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
        state = "start"
        try:
            while state not in ("accept", "reject"):
                state = instance.functions[f"state_{state}"](self, instance.scope, scope)
        except EOFError:
            return PARTIAL_HEADER
        return 0

    def _deparse(self, instance: Instance, packet: Bits, headers: Record, rest: list[Record]) -> bytes:
        self._apply(instance, [packet, headers, *rest][: len(instance.block[2])])
        assert packet.out_bits % 8 == 0
        return packet.out.to_bytes(packet.out_bits // 8, "big") + packet.data[packet.at // 8 :]

    def _record(self, name: str, leaf: Callable[[Type], Any], valid: bool) -> Record:
        types = self.code.fields(name)
        values = {key: self._record(t[1], leaf, valid) if t[0] == "record" else leaf(t) for key, t in types.items()}
        return Record(name, types, values, valid if self.module.types[name][0] == "header" else True)

    def _zeros(self, name: str) -> Record:
        return self._record(name, lambda kind: 0, True)

    def _noise_record(self, name: str) -> Record:
        return self._record(name, lambda t: self.noise.getrandbits(t[1]) if t != BOOL else False, False)

    def _noise_for(self, instance: Instance, parameter: int) -> Record:
        return self._noise_record(self.code.type(instance.block[2][parameter][1])[1])

    # -- blocks ----------------------------------------------------------------------------------------------

    def _instantiate(self, name: str, path: str) -> Instance:
        block, functions = self.module.blocks[name], self.code.functions(name)
        scope: dict[str, Any] = {action: node for action, node in self.module.actions.items()}
        for item in block[3]:
            if item[0] == "action":
                scope[item[1]] = item
            elif item[0] == "table":
                _, local, full_name, keys, actions, *_ = item
                known = {scope[action][2].rpartition(".")[2]: action for action in actions}
                acting = {
                    public: (functions[f"a_{action}"], [self.code.type(kind) for _, kind, _ in scope[action][3]])
                    for public, action in known.items()
                }
                short = full_name.rpartition(".")[2]
                table = Table(short, len(keys), acting)
                assert short not in self.tables, f"two tables named {short}"
                scope[local] = self.tables[short] = table
            elif item[0] == "instance":
                scope[item[1]] = self._extern(item, scope, f"{path}.{item[1]}", functions)
            elif item[0] != "declare":
                raise CannotRun(str(item[:2]))
        return Instance(block, scope, functions)

    def _extern(self, item: Node, scope: dict[str, Any], path: str, functions: dict[str, Any]) -> Any:
        _, _, full_name, kind, arguments, _ = item
        short = full_name.rpartition(".")[2]
        if kind[1] in self.module.blocks:
            return self._instantiate(kind[1], path)
        if kind[1] == "Register":
            array = RegisterArray(short, self.code.type(kind[2]), self.code.number(arguments[0]))
            self.registers[short] = array
            return array
        if kind[1] == "RegisterAction":
            return ("register_action", scope[arguments[0][1]], item[5]["apply"], functions[f"r_{item[1]}"])
        if kind[1] == "Counter":
            return ("counter", short, self.code.number(arguments[0]))
        if kind[1] == "Hash":
            return ("hash", arguments[0][2], self.code.type(kind[2]))
        if kind[1] in ("Checksum", "Digest"):
            return (kind[1].lower(), [])
        raise CannotRun(f"extern {kind[1]}")

    def _bind(self, instance: Instance, arguments: Sequence[Any]) -> dict[str, Any]:
        """The scope of a call, with the arguments by parameter. They are not copied: the program passes only
        records."""
        scope = {name: argument for (_, _, name), argument in zip(instance.block[2], arguments, strict=True)}
        instance.functions["declare"](self, instance.scope, scope)
        return scope

    def _apply(self, instance: Instance, arguments: Sequence[Any]) -> None:
        instance.functions["apply"](self, instance.scope, self._bind(instance, arguments))

    # -- what the functions of the program call (code.py) ------------------------------------------------------

    def _added(
        self, entry: tuple[Callable[..., None], list[int]], declared: dict[str, Any], scope: dict[str, Any]
    ) -> None:
        function, arguments = entry
        function(self, declared, scope, *arguments)

    def _count(self, holder: Any, index: int) -> None:
        assert index < holder[2], holder[1]
        self.counters[holder[1], index] += 1

    def _hash(self, holder: Any, values: list[Value]) -> int:
        packed, width = pack(values)
        if holder[1] == "IDENTITY":
            return wrap(packed, holder[2])
        assert holder[1] == "CRC32"
        return zlib.crc32(packed.to_bytes(width // 8, "big"))

    def _tell(self, values: list[Value]) -> None:
        self.digests.append([value for value, _ in values])

    def _add(self, holder: Any, data: bytes) -> None:
        holder[1][:] = [data]

    def _verify(self, holder: Any) -> bool:
        """Whether the checksum is wrong, despite its name."""
        return internet_checksum(holder[1][0]) != 0

    def _checksum(self, values: list[Value]) -> int:
        packed, width = pack(values)
        return internet_checksum(packed.to_bytes(width // 8, "big"))

    def _execute(self, holder: Any, index: int, scope: dict[str, Any]) -> Any:
        """Runs a register action on one cell: one read, one write, and at most one word returned."""
        _, register, _, function = holder
        if register.name in self.touched:
            raise CannotRun(f"register {register.name}: a second access by one packet")
        self.touched.add(register.name)
        if index >= register.size:
            raise CannotRun(f"register {register.name}: no place {index}")
        record = register.cell[0] == "record"
        value = register.cells.get(index)
        if value is None:
            value = self._zeros(register.cell[1]) if record else 0
        register.cells[index], result = function(scope, value.copy() if record else value)
        return result
