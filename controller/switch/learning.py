"""MAC learning for ordinary traffic: the ports of addresses, from the data plane's digests.

The switch's tables have room for CAPACITY addresses. When they are full, the oldest address of the port with most
addresses is removed. So a host that invents addresses pushes out its own, not its neighbours'.
"""

from __future__ import annotations

from collections import deque

from serene import entries
from serene.controller.switch.plan_entries import Installed
from serene.entries import Updates

CAPACITY = 1024  # of the tables known_source and forward
WAITING_PER_PORT = 64  # seen addresses that are not learned yet; others are seen again later
BATCH = 32  # addresses in one write, so that an admission never waits long for it
ACKS = 1024  # lists of digests that wait to be acknowledged


class Learning:
    """Learned addresses, waiting addresses, and the updates that write them to the switch."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self.port_of: dict[str, int] = {}
        self._capacity = capacity
        self._behind: dict[int, dict[str, None]] = {}  # the addresses of each port, oldest first
        self._waiting: dict[int, dict[str, None]] = {}
        self._acks: deque[object] = deque(maxlen=ACKS)

    def seen(self, mac: str, port: int) -> None:
        """Records that a frame from this address arrived at this port."""
        if int(mac[:2], 16) & 1 or self.port_of.get(mac) == port:  # no host has a group address
            return
        waiting = self._waiting.setdefault(port, {})
        if len(waiting) < WAITING_PER_PORT:
            waiting[mac] = None

    def to_acknowledge(self, ack: object) -> None:
        """Stores the acknowledgement of a list of digests."""
        self._acks.append(ack)

    @property
    def anything(self) -> bool:
        """Whether `next` has anything to write."""
        return bool(self._acks) or any(self._waiting.values())

    def forget_waiting(self) -> None:
        """Drops waiting addresses: they were seen over a lost connection."""
        self._waiting.clear()
        self._acks.clear()

    def next(self) -> tuple[Updates, list[object]]:
        """The updates for the next addresses, one of each port in turn; and the waiting acknowledgements."""
        updates: Updates = []
        taken = 0
        while taken < BATCH and any(self._waiting.values()):
            for port, waiting in list(self._waiting.items()):
                if not waiting:
                    del self._waiting[port]
                    continue
                mac = next(iter(waiting))
                del waiting[mac]
                updates += self._learn(mac, port)
                taken += 1
        acks = list(self._acks)
        self._acks.clear()
        return updates, acks

    def _learn(self, mac: str, port: int) -> Updates:
        before = self.port_of.get(mac)
        if before == port:
            return []
        if before is not None:
            del self._behind[before][mac]
            self._put(mac, port)
            return [
                -entries.known_source(mac, before),
                +entries.known_source(mac, port),
                ~entries.forward(mac, port),
            ]
        room: Updates = []
        if len(self.port_of) >= self._capacity:
            fullest = max(self._behind.values(), key=len)
            room = self._drop(next(iter(fullest)))
        self._put(mac, port)
        return [*room, +entries.known_source(mac, port), +entries.forward(mac, port)]

    def _put(self, mac: str, port: int) -> None:
        self.port_of[mac] = port
        self._behind.setdefault(port, {})[mac] = None

    def _drop(self, mac: str) -> Updates:
        port = self.port_of.pop(mac)
        del self._behind[port][mac]
        return [-entries.known_source(mac, port), -entries.forward(mac, port)]

    def take_over(self, found: Installed) -> Updates:
        """Takes the switch's entries over as learned addresses. Returns updates that remove addresses with only one of
        two entries."""
        self.port_of.clear()
        self._behind.clear()
        whole = {mac: port for mac, port in found.forwarded.items() if (mac, port) in found.known}
        for mac, port in whole.items():
            self._put(mac, port)
        return [
            *(-entries.forward(mac, port) for mac, port in found.forwarded.items() if mac not in whole),
            *(-entries.known_source(mac, port) for mac, port in found.known if whole.get(mac) != port),
        ]
