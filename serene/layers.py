"""Serene's packets as scapy layers, to build unusual packets in tests and to read captures.

>>> from serene.layers import Serene
>>> Ether() / IP() / UDP(dport=24142) / Serene(op="PUSH", worker=2) / Values(values=[1] * 320)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from scapy.fields import ByteEnumField, ByteField, FieldListField, IntField, ShortField, SignedIntField
from scapy.layers.inet import UDP
from scapy.packet import Packet, bind_layers

from serene.wire import MEMBERSHIP_FIELDS, PROTOCOL_VERSION, SERENE_FIELDS, SERENE_UDP_PORT, Op, ReadMode

_BY_SIZE = {1: ByteField, 2: ShortField, 4: IntField}
_SPECIAL = {
    "version": ByteField("version", PROTOCOL_VERSION),
    "op": ByteEnumField("op", Op.PUSH, {op.value: op.name for op in Op}),
    "read_mode": ByteEnumField("read_mode", 0, {mode.value: mode.name for mode in ReadMode}),
}


def _fields(fields: Sequence[tuple[str, int]]) -> list[Any]:
    return [_SPECIAL.get(name) or _BY_SIZE[size](name, 0) for name, size in fields]


class Serene(Packet):
    """The header of every packet."""

    name = "Serene"
    fields_desc = _fields(SERENE_FIELDS)


class Membership(Packet):
    """Follows HELLO and WELCOME."""

    name = "Serene membership"
    fields_desc = _fields(MEMBERSHIP_FIELDS)


MOST_VALUES = 4096  # scapy's default is 100


class Values(Packet):
    """The values after the header in PUSH, PULL and ANSWER, and between switches in UP, DOWN and GRANT. The packet's
    length determines their number."""

    name = "Serene values"
    fields_desc: ClassVar[list[Any]] = [FieldListField("values", [], SignedIntField("", 0), max_count=MOST_VALUES)]


bind_layers(UDP, Serene, dport=SERENE_UDP_PORT)
bind_layers(UDP, Serene, sport=SERENE_UDP_PORT)
for _op in (Op.HELLO, Op.WELCOME):
    bind_layers(Serene, Membership, op=_op.value)
for _op in (Op.PUSH, Op.PULL, Op.ANSWER, Op.UP, Op.DOWN, Op.GRANT):
    bind_layers(Serene, Values, op=_op.value)
UDP.payload_guess = sorted(UDP.payload_guess, key=lambda guess: guess[1] is not Serene)
