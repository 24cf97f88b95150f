"""Digest lists: the digests that a controller has enabled, their batches, and unacknowledged lists."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import islice

from finsy.proto import p4d, p4i, p4r

from serene.embedded.p4runtime.datatypes import Types
from serene.embedded.p4runtime.parts import parts_of
from serene.embedded.p4runtime.status import Code, Failure, invalid, not_found

LIST_VALUES = 1024  # largest number of digests in a list; a full list is sent before its timeout and its requested size
UNACKNOWLEDGED_LISTS = 256  # unacknowledged lists of one digest; values of older lists may be sent again

Values = tuple[tuple[int, ...], tuple[tuple[int, bool], ...]]  # numbers, and which of their headers are valid
Deliver = Callable[[p4r.StreamMessageResponse], bool]  # returns whether a controller was connected and had room


@dataclass
class _Stream:
    """The state of one digest that a controller has enabled."""

    entry: p4r.DigestEntry
    waiting: dict[Values, None] = field(default_factory=dict)  # an ordered set
    first_at: float = 0.0
    unacknowledged: dict[int, tuple[float, frozenset[Values]]] = field(default_factory=dict)  # by list id
    configured_at: float = field(default_factory=lambda: time.monotonic())

    def forgotten_at(self, sent_at: float) -> float:
        """The time from which values of an unacknowledged list may be sent again. As in BMv2: it checks every
        ``ack_timeout_ns`` after the digest was configured, and sends them again from the second check on. P4Runtime
        (DigestEntry) specifies one ``ack_timeout_ns``."""
        timeout_s: float = self.entry.config.ack_timeout_ns / 1e9
        return self.configured_at + (int((sent_at - self.configured_at) / timeout_s) + 2) * timeout_s


class DigestLists:
    """The digests of one program. Controllers configure them, while the switch's own thread adds digests."""

    def __init__(self, p4info: p4i.P4Info, deliver: Deliver, types: Types | None = None) -> None:
        self._infos = {item.preamble.id: item for item in p4info.digests}
        self._ids = {item.preamble.name: id_ for id_, item in self._infos.items()}
        self._types = types or Types(p4info)
        self._deliver = deliver
        self._streams: dict[int, _Stream] = {}
        self._next_list_id = 1
        self._lock = threading.Lock()

    # -- for controllers -------------------------------------------------------------------------------------

    def insert(self, entry: p4r.DigestEntry) -> None:
        with self._lock:
            if entry.digest_id in self._streams:
                raise Failure(Code.ALREADY_EXISTS, f"digest {self._name(entry.digest_id)!r} is already enabled")
            self._streams[entry.digest_id] = _Stream(_checked(entry, self._name(entry.digest_id)))

    def modify(self, entry: p4r.DigestEntry) -> None:
        with self._lock:
            stream = self._stream(entry.digest_id)
            stream.entry, stream.configured_at = _checked(entry, self._name(entry.digest_id)), time.monotonic()

    def delete(self, digest_id: int) -> None:
        with self._lock:
            self._stream(digest_id)
            del self._streams[digest_id]

    def entries(self) -> list[p4r.DigestEntry]:
        with self._lock:
            return [stream.entry for stream in self._streams.values()]

    def acknowledge(self, ack: p4r.DigestListAck) -> None:
        if ack.digest_id not in self._infos:
            raise invalid(f"there is no digest {ack.digest_id} to acknowledge")
        with self._lock:
            if ack.digest_id in self._streams:
                self._streams[ack.digest_id].unacknowledged.pop(ack.list_id, None)

    def _name(self, digest_id: int) -> str:
        return str(self._infos[digest_id].preamble.name)

    def _stream(self, digest_id: int) -> _Stream:
        if digest_id not in self._streams:
            raise not_found(f"digest {self._name(digest_id)!r} is not enabled: insert its digest entry first")
        return self._streams[digest_id]

    # -- for the switch --------------------------------------------------------------------------------------

    def add(self, name: str, numbers: tuple[int, ...], valid: Mapping[int, bool] | None = None) -> None:
        """Adds a digest from the data plane, or drops it if no controller has enabled it. valid: whether a header is
        valid, by the number of its first value."""
        digest_id, values = self._ids.get(name, 0), (numbers, tuple((valid or {}).items()))
        with self._lock:
            stream = self._streams.get(digest_id)
            if stream is None:
                return
            now = time.monotonic()
            _forget_overdue(stream, now)
            if values in stream.waiting or any(values in known for _, known in stream.unacknowledged.values()):
                return
            if not stream.waiting:
                stream.first_at = now
            stream.waiting[values] = None
            config = stream.entry.config
            most = min(config.max_list_size or LIST_VALUES, LIST_VALUES)
            if not config.max_timeout_ns or len(stream.waiting) >= most:
                self._send(digest_id, stream)

    def send_due(self) -> float | None:
        """Sends the lists that are due. Returns the seconds until the next one is due; None if there is none."""
        with self._lock:
            now = time.monotonic()
            left = None
            for digest_id, stream in self._streams.items():
                if not stream.waiting:
                    continue
                until = stream.first_at + stream.entry.config.max_timeout_ns / 1e9 - now
                if until <= 0:
                    self._send(digest_id, stream)
                elif left is None or until < left:
                    left = until
            return left

    def _send(self, digest_id: int, stream: _Stream) -> None:
        spec = self._infos[digest_id].type_spec
        waiting = iter(stream.waiting)
        for data in parts_of(self._value(spec, values) for values in stream.waiting):
            digest_list = p4r.DigestList(
                digest_id=digest_id, list_id=self._next_list_id, timestamp=time.time_ns(), data=data
            )
            values = frozenset(islice(waiting, len(data)))
            if self._deliver(p4r.StreamMessageResponse(digest=digest_list)) and stream.entry.config.ack_timeout_ns:
                stream.unacknowledged[self._next_list_id] = (stream.forgotten_at(time.monotonic()), values)
                if len(stream.unacknowledged) > UNACKNOWLEDGED_LISTS:
                    del stream.unacknowledged[next(iter(stream.unacknowledged))]
            self._next_list_id += 1
        stream.waiting.clear()

    def _value(self, spec, values: Values) -> p4d.P4Data:  # type: ignore[no-untyped-def]
        return self._types.structured(spec, values[0], dict(values[1]))


def _forget_overdue(stream: _Stream, now: float) -> None:
    for list_id, (until, _) in list(stream.unacknowledged.items()):
        if until <= now:
            del stream.unacknowledged[list_id]


def _checked(entry: p4r.DigestEntry, name: str) -> p4r.DigestEntry:
    config = entry.config
    if min(config.max_timeout_ns, config.max_list_size, config.ack_timeout_ns) < 0:
        raise invalid(f"digest {name!r}: its timeouts and list size are at least 0")
    result = p4r.DigestEntry()
    result.CopyFrom(entry)
    return result
