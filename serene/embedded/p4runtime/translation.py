"""Translated types (``@p4runtime_translation``): controllers write other values than the program uses.

A controller's strings become numbers before any other code sees a message, and numbers become strings after all other
code. If a number has another width in the P4Info, it is the same number in the program, if it fits. So all other code
uses only the program's numbers and widths, which are those of ``Translation.p4info``.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping

from finsy.proto import p4i, p4r, p4t

from serene.embedded.p4runtime.status import Failure, invalid
from serene.embedded.p4runtime.strings import NoNumberLeft, StringType
from serene.embedded.p4runtime.values import ControllerHeader, HeaderField, encode
from serene.embedded.program.ir import Program

log = logging.getLogger("serene.switch")

PORT_FIELDS = ("ingress_port", "egress_port", "egress_spec")  # of standard_metadata

Convert = Callable[[bytes, StringType, str], bytes]
Typed = p4i.MatchField | p4i.Action.Param | p4i.ControllerPacketMetadata.Metadata


class Translation:
    """The translated types of one P4Info. ``ports`` are the names of the switch's ports, with their numbers."""

    def __init__(self, p4info: p4i.P4Info, program: Program, ports: Mapping[str, int]) -> None:
        self.p4info = p4i.P4Info()
        self.p4info.CopyFrom(p4info)
        self._program = program
        self._port_names = ports
        self.strings: dict[str, StringType] = {}
        self._matches: dict[tuple[int, int], StringType] = {}  # by table or value set, and field
        self._params: dict[tuple[int, int], StringType] = {}  # by action and parameter
        self._port_types = self._find_port_types() if self._translated else set()
        self.port: StringType | None = None  # the string type that controllers use for ports, if there is one
        for table in self.p4info.tables:
            keys = program.tables[table.preamble.name].keys if table.preamble.name in program.tables else ()
            self._adapt(self._matches, table, table.match_fields, [key.width for key in keys])
        actions = {action.name: action for action in program.actions}
        for action in self.p4info.actions:
            held = actions.get(action.preamble.name)
            self._adapt(self._params, action, action.params, [each.width for each in held.parameters] if held else [])
        for value_set in self.p4info.value_sets:
            self._adapt_value_set(value_set)
        self.packet_in = self._header("packet_in")
        self.packet_out = self._header("packet_out")

    @property
    def _translated(self) -> dict[str, p4t.P4NewTypeTranslation]:
        return {
            name: spec.translated_type
            for name, spec in self.p4info.type_info.new_types.items()
            if spec.WhichOneof("representation") == "translated_type"
        }

    def _find_port_types(self) -> set[str]:
        """The types that the P4Info uses for ports: those of keys on standard_metadata's ports, and of packet-in and
        packet-out fields with the same names."""
        found = set()
        for table in self.p4info.tables:
            held = self._program.tables.get(table.preamble.name)
            for field, key in zip(table.match_fields, held.keys if held else (), strict=False):
                if key.target[0] == "standard_metadata" and key.target[1] in PORT_FIELDS:
                    found.add(field.type_name.name)
        for header in self.p4info.controller_packet_metadata:
            found |= {field.type_name.name for field in header.metadata if field.name in PORT_FIELDS}
        return found

    def _adapt(self, strings: dict[tuple[int, int], StringType], owner, fields, widths: list[int]) -> None:  # type: ignore[no-untyped-def]
        """Sets the widths of fields of translated types to the program's. The Schema refuses fields that do not fit."""
        if len(fields) != len(widths):
            return
        for field, width in zip(fields, widths, strict=True):
            if not field.bitwidth and not field.type_name.name:  # p4c gives no width for values of the type error
                field.bitwidth = width
            if self._of_program(field, width):
                type_ = self.string_type(field.type_name.name, width)
                if type_ is not None:
                    strings[owner.preamble.id, field.id] = type_

    def _of_program(self, field: Typed, width: int) -> bool:
        if field.type_name.name not in self._translated:
            return False
        field.bitwidth = width
        return True

    def _adapt_value_set(self, value_set: p4i.ValueSet) -> None:
        """Adapts a value set. Only its total width is known, so at most one of its fields can be translated."""
        total = self._program.value_sets.get(value_set.preamble.name, 0)
        translated = [field for field in value_set.match if field.type_name.name in self._translated]
        if len(translated) == 1 and total:
            left = total - sum(field.bitwidth for field in value_set.match if field is not translated[0])
            self._adapt(self._matches, value_set, translated, [max(left, 0)])

    def string_type(self, name: str, width: int) -> StringType | None:
        """The type with this name if controllers use strings for its values, else None."""
        spec = self._translated.get(name)
        if spec is None or spec.WhichOneof("sdn_type") != "sdn_string":
            return None
        if name not in self.strings:
            ports = self._port_names if name in self._port_types else None
            annotations = self.p4info.type_info.new_types[name].annotations
            self.strings[name] = StringType(name, width, ports, annotations)
            if ports is not None:
                self.port = self.strings[name]
        if self.strings[name].width != width:
            raise invalid(f"type {name!r} has {self.strings[name].width} bits in one place and {width} in another")
        return self.strings[name]

    def has_strings(self, table: p4i.Table) -> bool:
        """Whether this table's entries contain controllers' strings."""
        actions = {reference.id for reference in table.action_refs}
        return any(owner == table.preamble.id for owner, _ in self._matches) or any(
            owner in actions for owner, _ in self._params
        )

    # -- packet-in and packet-out ----------------------------------------------------------------------------

    def _header(self, name: str) -> ControllerHeader:
        for item in self.p4info.controller_packet_metadata:
            if item.preamble.name == name:
                if any(field.type_name.name in self._translated for field in item.metadata):
                    return self._program_header(name, item.metadata)
                return ControllerHeader(name, [HeaderField(f.id, f.name, f.bitwidth) for f in item.metadata])
        return ControllerHeader(name, [])

    def _program_header(self, name: str, fields) -> ControllerHeader:  # type: ignore[no-untyped-def]
        """A header in the program's form. The P4Info does not have the program's width of a translated field, and may
        lack the last fields, which only pad a byte. If no header of the program has one of the fields in its place, the
        program has no such header. Examples are SAI's program without its parts for BMv2, and tests' parsers."""
        layouts, unknown = set(), True
        for header in self._program.headers.values():
            pairs = zip(header.type.fields, fields, strict=False)
            unknown &= header.metadata or all(own.name != field.name for own, field in pairs)
            known = {field.name: field.width for field in header.type.fields}
            widths = [known.get(field.name, 0) for field in fields]
            same = all(
                f.type_name.name in self._translated or f.bitwidth == w for f, w in zip(fields, widths, strict=True)
            )
            first = [field.name for field in header.type.fields[: len(fields)]]
            if not header.metadata and same and first == [field.name for field in fields]:
                layouts.add((tuple(widths), header.type.bits))
        if unknown:
            log.warning("the program has no %s header: these packets carry no metadata", name)
            return ControllerHeader(name, [])
        if len(layouts) != 1:
            why = "several headers" if layouts else "no header"
            names = ", ".join(field.name for field in fields)
            raise invalid(
                f"the P4Info's {name} has translated types, and the program has {why} with its fields ({names})"
            )
        held, bits = layouts.pop()
        made = []
        for field, width in zip(fields, held, strict=True):
            self._of_program(field, width)
            made.append(HeaderField(field.id, field.name, width, self.string_type(field.type_name.name, width)))
        return ControllerHeader(name, made, bits)

    # -- messages --------------------------------------------------------------------------------------------

    def incoming(self, entity: p4r.Entity, again: Callable[[], Iterator[p4r.Entity]]) -> p4r.Entity:
        """A controller's entity with numbers for its strings. When all numbers are in use, strings are forgotten that
        no entity of ``again`` contains."""
        if not self.strings:
            return entity
        result = p4r.Entity()
        result.CopyFrom(entity)
        try:
            _visit(self, result, _to_number)
        except NoNumberLeft:
            self._forget_unused(again())
            result.CopyFrom(entity)
            _visit(self, result, _to_number)
        return result

    def outgoing(self, entity: p4r.Entity) -> p4r.Entity:
        """Replaces the program's numbers in an entity by strings, in place."""
        if self.strings:
            _visit(self, entity, _to_string)
        return entity

    def notify(
        self, deliver: Callable[[p4r.StreamMessageResponse], bool]
    ) -> Callable[[p4r.StreamMessageResponse], bool]:
        """Wraps ``deliver`` for notifications about entries: they get strings for numbers."""

        def translated(message: p4r.StreamMessageResponse) -> bool:
            for entry in message.idle_timeout_notification.table_entry:
                _visit_entry(self, entry, _to_string)
            return deliver(message)

        return translated if self.strings else deliver

    def _forget_unused(self, entities: Iterator[p4r.Entity]) -> None:
        used: defaultdict[str, set[int]] = defaultdict(set)

        def mark(data: bytes, type_: StringType, what: str) -> bytes:
            used[type_.name].add(int.from_bytes(data, "big"))
            return data

        for entity in entities:
            _visit(self, entity, mark)
        for name, type_ in self.strings.items():
            type_.keep(used[name])

    def take_over(self, old: Translation) -> None:
        """Keeps the numbers that strings had in the previous program, because copied registers may contain them."""
        for name, type_ in old.strings.items():
            if name in self.strings:
                try:
                    self.strings[name].take_over(type_)
                except Failure as failure:
                    raise invalid(f"strings of the old program: {failure.message}") from failure


def _to_number(data: bytes, type_: StringType, what: str) -> bytes:
    return encode(type_.number(data, what))


def _to_string(data: bytes, type_: StringType, what: str) -> bytes:
    return type_.string(int.from_bytes(data, "big"))


def _visit(of: Translation, entity: p4r.Entity, convert: Convert) -> None:
    """Converts every value of a string type in an entity, in place."""
    kind = entity.WhichOneof("entity")
    if kind == "table_entry":
        _visit_entry(of, entity.table_entry, convert)
    elif kind in ("direct_counter_entry", "direct_meter_entry"):
        _visit_entry(of, getattr(entity, kind).table_entry, convert)
    elif kind == "action_profile_member":
        _visit_action(of, entity.action_profile_member.action, convert)
    elif kind == "value_set_entry":
        for member in entity.value_set_entry.members:
            _visit_match(of, entity.value_set_entry.value_set_id, member.match, convert)
    elif kind == "packet_replication_engine_entry" and of.port is not None:
        item = entity.packet_replication_engine_entry
        for replica in (*item.multicast_group_entry.replicas, *item.clone_session_entry.replicas):
            if replica.WhichOneof("port_kind") == "port":
                replica.port = convert(replica.port, of.port, "a replica's port")


def _visit_entry(of: Translation, entry: p4r.TableEntry, convert: Convert) -> None:
    _visit_match(of, entry.table_id, entry.match, convert)
    kind = entry.action.WhichOneof("type")
    if kind == "action":
        _visit_action(of, entry.action.action, convert)
    elif kind == "action_profile_action_set":
        for chosen in entry.action.action_profile_action_set.action_profile_actions:
            _visit_action(of, chosen.action, convert)


def _visit_match(of: Translation, owner: int, match, convert: Convert) -> None:  # type: ignore[no-untyped-def]
    for field in match:
        type_ = of._matches.get((owner, field.field_id))
        if type_ is None:
            continue
        kind, what = field.WhichOneof("field_match_type"), f"match field {field.field_id} of type {type_.name!r}"
        if kind in ("exact", "optional"):
            item = getattr(field, kind)
            item.value = convert(item.value, type_, what)
        elif kind is not None and convert is _to_number:
            raise invalid(f"{what}: strings are matched as exact or optional, not as {kind}")


def _visit_action(of: Translation, action: p4r.Action, convert: Convert) -> None:
    for param in action.params:
        type_ = of._params.get((action.action_id, param.param_id))
        if type_ is not None:
            what = f"parameter {param.param_id} of type {type_.name!r}"
            param.value = convert(param.value, type_, what)
