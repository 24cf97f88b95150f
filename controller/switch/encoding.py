"""Converts entries (`serene.entries`) to finsy's and back."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from functools import lru_cache
from typing import Any

import finsy as fy
from finsy import pbutil
from finsy.proto import p4i

from serene.entries import Cell, Digest, Entity, Entry, Group, Kind, Updates
from serene.program import Program

_WRITTEN = {Kind.INSERT: lambda made: +made, Kind.MODIFY: lambda made: ~made, Kind.DELETE: lambda made: -made}


def schema(program: Program) -> fy.P4Schema:
    """A program for finsy: the names of its P4Info, and the file for the switch. Each caller gets an object of its own,
    in which a connection notes the switch's version of P4Runtime."""
    return copy(_schema(program.p4info, program.config))


@lru_cache(maxsize=8)
def _schema(p4info: str, config: bytes) -> fy.P4Schema:
    """Cached, because a P4Info takes long to parse, and all leaves of a tree have the same."""
    return fy.P4Schema(pbutil.from_text(p4info, p4i.P4Info), config)


def encoded(entity: Entity) -> Any:
    """An entity of finsy, which has the names from the P4Info."""
    if isinstance(entity, Entry):
        action = fy.Action(entity.action, **entity.params) if entity.action else None
        return fy.P4TableEntry(entity.table, match=fy.Match(entity.match), action=action, metadata=entity.note)
    if isinstance(entity, Group):
        return fy.P4MulticastGroupEntry(entity.number, replicas=list(entity.replicas))
    if isinstance(entity, Cell):
        return fy.P4CounterEntry(entity.counter, index=entity.index, data=fy.P4CounterData())
    assert isinstance(entity, Digest)
    return fy.P4DigestEntry(entity.name, max_list_size=16, max_timeout_ns=10_000_000, ack_timeout_ns=1_000_000_000)


def encoded_updates(updates: Updates) -> list[Any]:
    return [_WRITTEN[update.kind](encoded(update.entity)) for update in updates]


def decoded(entries: Iterable[fy.P4TableEntry]) -> list[Entry]:
    """The entries that controllers have written, from entities read from a switch."""
    return [
        Entry(entry.table_id, dict(entry.match), entry.action.name, dict(entry.action.args), entry.metadata)
        for entry in entries
        if not entry.is_default_action and entry.match is not None and isinstance(entry.action, fy.Action)
    ]
