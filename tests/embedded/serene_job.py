"""A running job of Serene's own program, for tests that send it arbitrary packets: its entries, and packets of each
kind."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from serene import entries
from serene.embedded import Exact
from serene.entries import Entry, number
from serene.sim.hosts import Host, running_job
from serene.strategy import PolicyFields
from serene.wire import SWITCH_IP, Op, ReadMode
from tests.embedded.stf import Target
from tests.frames import frame, request

WORKERS = 3
SESSION = 7
SLOTS = 4


def start_job(target: Target, *, staleness: int = 1, quorum: int = WORKERS, read_mode: int = 0) -> None:
    """Puts a job of three workers at ports 1 to 3 into the switch, under SSP(1) by default."""
    tables = {name.rpartition(".")[2]: table for name, table in target.program.tables.items()}

    def add(table: str, match: Sequence[int], action: str, params: Sequence[int]) -> None:
        actions = {name.rpartition(".")[2]: each for name, each in tables[table].actions.items()}
        target.add(tables[table], [Exact(value) for value in match], actions[action], params, 0)

    def put(entry: Entry) -> None:
        add(*entry.key, entry.action, list(entry.params.values()))

    hosts = {worker: Host.of(worker) for worker in range(WORKERS)}
    for group in (entries.flood_group(host.port for host in hosts.values()), entries.job_group(0, hosts)):
        target.group(group.number, group.replicas)
    everybody = (1 << WORKERS) - 1
    fields = PolicyFields(everybody, everybody, staleness, quorum, ReadMode(read_mode))
    running = running_job(0, hosts, fields, slots=SLOTS, vector_length=320 * SLOTS, session=SESSION)
    for entry in (*running, *entries.own_addresses()):
        put(entry)


def seeds(lanes: int) -> list[tuple[int, bytes]]:
    """(port, frame) pairs: every kind of request from every worker in several rounds, ARP, and ordinary traffic."""
    rng = np.random.default_rng(1)
    packets: list[tuple[int, bytes]] = []
    for worker in range(WORKERS):
        for op in (Op.HELLO, Op.PUSH, Op.PULL, Op.REPORT, Op.LEAVE):
            for round in range(3):
                values = rng.integers(-(2**31), 2**31, lanes)
                payload = request(
                    op, worker, values=values, lanes=lanes, session=SESSION, round=round, seq=round + 1,
                    slot=int(rng.integers(SLOTS)),
                )  # fmt: skip
                packets.append((worker + 1, frame(payload, worker)))
    question = bytes.fromhex("ffffffffffff0200000000ee08060001080006040001") + bytes.fromhex("0200000000ee0a000063")
    packets.append((1, question + bytes(6) + number(SWITCH_IP).to_bytes(4, "big")))
    packets.append((2, bytes.fromhex("0200000000010200000000ee88b5") + b"ordinary traffic" * 4))
    return packets
