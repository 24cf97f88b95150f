"""A hostile host, which is in no job. It knows everything that workers know, and sends forged frames from its own
port."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from ipaddress import IPv4Address
from typing import Any

import numpy as np

from serene.experiments.correctness.virtual.worker import Incarnation, World
from serene.sim.hosts import Host
from serene.wire import (
    SERENE_UDP_PORT,
    SWITCH_IP,
    SWITCH_MAC,
    Op,
    control_payload,
    encapsulation,
    mac_bytes,
    membership,
)

PORT = 60  # the switch's, that the host is at
SELF = Host(PORT, "02:00:00:00:00:66", "10.0.0.66")
SWITCH = (SWITCH_MAC, SWITCH_IP, SERENE_UDP_PORT)
MOST = 30  # frames in a run


class Hostile:
    """The hostile host of a run. every_s: mean time between two attacks, MOST in all."""

    def __init__(self, run: World, every_s: float) -> None:
        self._run = run
        self._every_s = every_s
        self._rng = random.Random(f"hostile/{run.plan.seed}")
        self._seen: list[bytes] = []  # frames of workers
        self._left = MOST
        self._kinds: list[Callable[[Incarnation], list[bytes]]] = [
            self.forged_answers, self.forged_nudges, self.forged_refusals, self.forged_welcomes, self.forged_goodbyes,
            self.spoofed_contributions, self.spoofed_goodbyes, self.spoofed_hellos, self.replays, self.forged_addresses,
        ]  # fmt: skip

    def start(self) -> None:
        self._run.time.at(self._rng.expovariate(1 / self._every_s), self._attack)

    def overhears(self, frame: bytes) -> None:
        """Keeps a worker's frame, to replay it."""
        if len(self._seen) < 1000:
            self._seen.append(frame)

    def _attack(self) -> None:
        run = self._run
        victims = [place.present for place in run.places if place.incarnations and place.present.ledger is run.ledger]
        if victims:
            kind = self._rng.choice(self._kinds)
            for frame in kind(self._rng.choice(victims)):
                self._run.time.after(0.0).to_switch.append((PORT, frame))
                self._run.happened[f"hostile: {kind.__name__.replace('_', ' ')}"] += 1
        self._left -= 1
        if self._left:
            self.start()

    # -- as the switch ---------------------------------------------------------------------------------------

    def _as_the_switch(self, victim: Incarnation, payload: bytes) -> list[bytes]:
        """A frame that pretends to be the switch's, by its MAC and IP address, one of them, or only the UDP port, and
        sometimes with a VLAN tag."""
        to = (victim.host.mac, victim.host.ip, victim.host.udp_port)
        source = self._rng.choice(
            [
                SWITCH,
                (SELF.mac, SWITCH_IP, SERENE_UDP_PORT),
                (SWITCH_MAC, SELF.ip, SERENE_UDP_PORT),
                (SELF.mac, SELF.ip, SERENE_UDP_PORT),
            ]
        )
        frame = encapsulation(len(payload), source=source, destination=to) + payload
        if self._rng.random() < 0.2:
            frame = frame[:12] + b"\x81\x00\x00\x01" + frame[12:]
        return [frame]

    def _header(self, victim: Incarnation, **fields: int) -> dict[str, Any]:
        """Fields of a header that the switch could send to this worker now; ``fields`` replace them."""
        protocol = victim.protocol
        common: dict[str, Any] = {
            "job": self._run.job,
            "worker": victim.place.number,
            "session": protocol.membership.session,
        }
        return {**common, "epoch": protocol.epoch, "round": protocol.round + 1, **fields}

    def forged_answers(self, victim: Incarnation) -> list[bytes]:
        lanes = self._run.lanes
        values = np.full(lanes, 12345, ">i4").tobytes()
        frames = []
        for slot in range(self._run.plan.slots):
            seq = self._rng.choice([0, victim.protocol.seq])
            epoch = victim.protocol.epoch + self._rng.choice([0, 0, 5])
            header = self._header(victim, slot=slot, seq=seq, epoch=epoch, total=10**6, members=3)
            frames += self._as_the_switch(victim, control_payload(Op.ANSWER, values, **header))
        return frames

    def forged_nudges(self, victim: Incarnation) -> list[bytes]:
        header = self._header(victim, epoch=victim.protocol.epoch + self._rng.choice([0, 5]))
        return self._as_the_switch(victim, control_payload(Op.NUDGE, **header))

    def forged_refusals(self, victim: Incarnation) -> list[bytes]:
        header = self._header(victim, incarnation=victim.client.incarnation)
        return self._as_the_switch(victim, control_payload(Op.REFUSED, b"go away", **header))

    def forged_welcomes(self, victim: Incarnation) -> list[bytes]:
        known = victim.protocol.membership
        sizes = {
            "vector_length": known.vector_length,
            "slots": known.slots,
            "scale": known.scale,
            "limit": known.limit,
            "lanes": known.lanes,
            "workers": known.workers,
        }
        header = self._header(victim, session=known.session + 1, epoch=1, incarnation=victim.client.incarnation)
        return self._as_the_switch(victim, control_payload(Op.WELCOME, membership(**sizes), **header))

    def forged_goodbyes(self, victim: Incarnation) -> list[bytes]:
        header = self._header(victim, incarnation=victim.client.incarnation)
        return self._as_the_switch(victim, control_payload(Op.BYE, b'{"job_over": true}', **header))

    def forged_addresses(self, victim: Incarnation) -> list[bytes]:
        """An ARP reply that claims that the switch's address is here."""
        switch, worker = IPv4Address(SWITCH_IP).packed, IPv4Address(victim.host.ip).packed
        target = mac_bytes(victim.host.mac)
        arp = b"\x00\x01\x08\x00\x06\x04\x00\x02" + mac_bytes(SELF.mac) + switch + target + worker
        return [target + mac_bytes(SELF.mac) + b"\x08\x06" + arp]

    # -- as a worker -----------------------------------------------------------------------------------------

    def _as_a_worker(self, victim: Incarnation, payload: bytes) -> list[bytes]:
        """A frame that pretends to be a worker's, with its addresses, the hostile host's own, or a mixture. Only the
        port that it comes in at gives it away."""
        host = self._rng.choice([victim.host, SELF, replace(victim.host, mac=SELF.mac)])
        return [host.frame_head(len(payload)) + payload]

    def spoofed_contributions(self, victim: Incarnation) -> list[bytes]:
        values = np.full(self._run.lanes, 54321, ">i4").tobytes()
        protocol = victim.protocol
        header = self._header(victim, round=protocol.round, seq=protocol.seq + 1, incarnation=victim.client.incarnation)
        op = self._rng.choice([Op.PUSH, Op.PUSH, Op.PULL])
        return self._as_a_worker(victim, control_payload(op, values, **header))

    def spoofed_goodbyes(self, victim: Incarnation) -> list[bytes]:
        header = self._header(victim, incarnation=victim.client.incarnation)
        return self._as_a_worker(victim, control_payload(Op.LEAVE, b'{"contributions_sent": 0}', **header))

    def spoofed_hellos(self, victim: Incarnation) -> list[bytes]:
        incarnation = self._rng.choice([victim.client.incarnation, 4711])
        header = self._header(victim, incarnation=incarnation)
        body = membership(vector_length=victim.protocol.membership.vector_length)
        return self._as_a_worker(victim, control_payload(Op.HELLO, body, **header))

    def replays(self, victim: Incarnation) -> list[bytes]:
        """A worker's own frame, unchanged."""
        return [self._rng.choice(self._seen)] if self._seen else []
