"""The largest tree: 8 racks of 32 workers in one job, with ids that are unique within each rack."""

from __future__ import annotations

from collections import deque

import numpy as np

from serene import entries
from serene.client.protocol.protocol import Membership, Protocol
from serene.racks import MAX_RACKS, LeafPolicy
from serene.sim.hosts import Host, running_job
from serene.sim.switch import ProgramSwitch
from serene.strategy import PolicyFields
from serene.wire import ENCAPSULATION_BYTES, ReadMode
from serene.wire import ROOT as ROOT_ID
from tests.programs import LEAF, ROOT

HERE, ROUNDS, SLOTS, SESSION, UPLINK = 32, 3, 2, 7, 200
ALL = 2**HERE - 1


def leaf_of(rack: int) -> ProgramSwitch:
    """With 32 workers, under BSP of them all."""
    leaf = ProgramSwitch(LEAF)
    hosts = {worker: Host.of(worker) for worker in range(HERE)}
    # What workers are told has 8 bits for 256 of them.
    told = PolicyFields(ALL, ALL, 0, 0, ReadMode.SNAPSHOT)
    for entry in running_job(0, hosts, told, slots=SLOTS, vector_length=SLOTS * LEAF.lanes, session=SESSION):
        leaf.put(entry)
    leaf.put(entries.uplink(0, rack, 0, UPLINK))
    leaf.put(entries.prepared(0, SESSION, 1, LeafPolicy(told, enough=HERE, by_arrivals=False)))
    leaf.put(entries.member(0, ROOT_ID, entries.root_at(UPLINK, SESSION)))
    leaf.set_group(entries.leaf_group(0, hosts, UPLINK))
    return leaf


def root_of() -> ProgramSwitch:
    root = ProgramSwitch(ROOT)
    hosts = {rack: entries.leaf_at(rack, 0, SESSION) for rack in range(MAX_RACKS)}
    racks = 2**MAX_RACKS - 1
    policy = PolicyFields(racks, racks, 0, 0, ReadMode.SNAPSHOT)
    for entry in running_job(0, hosts, policy, slots=SLOTS, vector_length=1, session=SESSION):
        root.put(entry)
    root.set_group(entries.root_group(0, enumerate([rack + 1 for rack in range(MAX_RACKS)])))
    return root


def test_largest_tree_of_256_workers_reads_the_sum_of_all() -> None:
    lanes = LEAF.lanes
    leaves, root = [leaf_of(rack) for rack in range(MAX_RACKS)], root_of()
    membership = Membership(SESSION, 1, SLOTS * lanes, SLOTS, lanes, 2**20, 2**23, MAX_RACKS * HERE)
    workers = {(rack, worker): Protocol(0, worker, membership) for rack in range(MAX_RACKS) for worker in range(HERE)}
    numbers = np.random.default_rng(1)
    packets_up = 0
    for _ in range(ROUNDS):
        total = np.zeros((SLOTS, lanes), np.int32)
        under_way: deque[tuple[int, int, bytes]] = deque()  # rack (-1: the root), port, frame
        for (rack, worker), protocol in workers.items():
            values = numbers.integers(-(2**31), 2**31, (SLOTS, lanes)).astype(np.int32)
            total += values
            protocol.push(values, 0.0)
            host = Host.of(worker)
            for payload in protocol.packets(0.0):
                under_way.append((rack, host.port, host.frame_head(len(payload)) + payload.tobytes()))
        while under_way:
            rack, port, frame = under_way.popleft()
            for out, data in (root if rack < 0 else leaves[rack]).switch.process(port, frame):
                if rack < 0:
                    under_way.append((out - 1, UPLINK, data))
                elif out == UPLINK:
                    packets_up += 1
                    under_way.append((-1, rack + 1, data))
                else:
                    payload = np.frombuffer(data, np.uint8, offset=ENCAPSULATION_BYTES)
                    workers[rack, out - 1].receive(payload[None, :], 0.0)
        for protocol in workers.values():
            read = protocol.finish()
            assert np.array_equal(read.difference, total)
            assert (read.contributions == MAX_RACKS * HERE).all()
    asked = SLOTS * (MAX_RACKS - 1)  # when the first UP began the epoch at the root
    assert packets_up == ROUNDS * SLOTS * MAX_RACKS + asked  # one a rack, slot and round
    for switch in (*leaves, root):
        assert switch.dropped() == {}
        switch.close()


def test_leaf_tables_have_room_for_eight_full_jobs() -> None:
    leaf = ProgramSwitch(LEAF)
    for job in range(8):
        for worker in range(HERE):
            leaf.admit(worker, Host.of(worker), job)
        leaf.put(entries.member(job, ROOT_ID, entries.root_at(UPLINK, SESSION)))
        leaf.put(entries.uplink(job, 0, 0, UPLINK))
        for epoch in range(1, 9):
            policy = LeafPolicy(PolicyFields(ALL, ALL, 0, HERE, ReadMode.SNAPSHOT), HERE, by_arrivals=False)
            leaf.put(entries.prepared(job, SESSION, epoch, policy))
    leaf.delete(entries.not_prepared(7, SESSION, 8))
    leaf.close()
