"""Idle timeouts: notifies the controller of entries that no packet has hit for their timeout."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from finsy.proto import p4r

from serene.embedded.engine import Switch
from serene.embedded.p4runtime.digests import Deliver
from serene.embedded.p4runtime.parts import parts_of


@dataclass
class _Entry:
    notified: p4r.TableEntry  # the entry in a notification
    last_hit_ns: int  # time of the last hit, or of the insertion
    due_ns: int  # 0: never


class IdleTimeouts:
    """One program's entries with idle timeouts. Controllers change them while the switch's own thread polls them. A hit
    is detected at the next poll, so the interval of polls is the precision of times."""

    def __init__(self, switch: Switch, deliver: Deliver) -> None:
        self._switch = switch
        self._deliver = deliver
        self._entries: dict[str, dict[int, _Entry]] = {}  # by table and handle
        self._lock = threading.Lock()

    def set(self, table: str, handle: int, entry: p4r.TableEntry, *, new: bool) -> None:
        """Records an inserted or modified entry, whose timeout starts again."""
        now = time.monotonic_ns()
        notified = p4r.TableEntry()
        notified.CopyFrom(entry)
        notified.ClearField("action")
        with self._lock:
            entries = self._entries.setdefault(table, {})
            last_hit = now if new or handle not in entries else entries[handle].last_hit_ns
            entries[handle] = _Entry(
                notified, last_hit, now + notified.idle_timeout_ns if notified.idle_timeout_ns else 0
            )

    def forget(self, table: str, handle: int) -> None:
        with self._lock:
            self._entries.get(table, {}).pop(handle, None)

    def timeout_ns(self, table: str, handle: int) -> int:
        """An entry's timeout; 0: never."""
        with self._lock:
            entry = self._entries.get(table, {}).get(handle)
            return int(entry.notified.idle_timeout_ns) if entry is not None else 0

    def look(self, table: str) -> None:
        """Polls which entries were hit. It reads a whole table, so poll once for many entries."""
        with self._lock:
            self._look(table)

    def since_last_hit_ns(self, table: str, handle: int) -> int:
        """Nanoseconds since the last hit, as of the last poll."""
        with self._lock:
            return time.monotonic_ns() - self._entries[table][handle].last_hit_ns

    def send_due(self) -> None:
        """Notifies the controller of entries that were idle for their timeout, which then starts again."""
        with self._lock:
            for table, entries in self._entries.items():
                if not any(entry.due_ns for entry in entries.values()):
                    continue
                self._look(table)
                now = time.monotonic_ns()
                due = [entry for entry in entries.values() if entry.due_ns and entry.due_ns <= now]
                for entry in due:
                    entry.due_ns = now + entry.notified.idle_timeout_ns
                for message in _notifications(entry.notified for entry in due):
                    self._deliver(message)

    def _look(self, table: str) -> None:
        now = time.monotonic_ns()
        entries = self._entries.get(table, {})
        for handle in self._switch.table_touched(table):
            if handle in entries:
                entry = entries[handle]
                entry.last_hit_ns = now
                if entry.due_ns:
                    entry.due_ns = now + entry.notified.idle_timeout_ns


def _notifications(entries: Iterable[p4r.TableEntry]) -> Iterator[p4r.StreamMessageResponse]:
    now = time.time_ns()
    for part in parts_of(entries):
        notification = p4r.IdleTimeoutNotification(table_entry=part, timestamp=now)
        yield p4r.StreamMessageResponse(idle_timeout_notification=notification)
