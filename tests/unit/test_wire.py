"""Packets: the NumPy path, scapy's layers and the P4 headers agree."""

from __future__ import annotations

import json
import re
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from serene import wire
from serene.layers import Membership, Serene, Values
from serene.program import BUILD, TREE, VARIANTS, Program
from serene.racks import MAX_RACKS

u8, u32 = st.integers(0, 2**8 - 1), st.integers(0, 2**32 - 1)
headers = st.fixed_dictionaries(
    {"job": u8, "worker": u8, "session": u32, "epoch": u32, "round": u32, "seq": u32, "total": u32, "seen": u32,
     "sync_mask": u32, "staleness": u8, "quorum": u8, "read_mode": st.sampled_from([0, 1])}
)  # fmt: skip


@given(headers, st.integers(1, 5), st.integers(1, 40), st.randoms(use_true_random=False))
def test_batch_payloads_equal_scapys_bytes(header: dict[str, int], slots: int, lanes: int, random: Random) -> None:
    fields: dict[str, Any] = dict(header)  # scapy's layers have other keyword arguments, too
    values = np.array([[random.randint(-(2**31), 2**31 - 1) for _ in range(lanes)] for _ in range(slots)], np.int32)
    for op in (wire.Op.PUSH, wire.Op.PULL, wire.Op.UP, wire.Op.DOWN, wire.Op.GRANT):
        rows = wire.push_payloads(values, op=op, **header)
        for slot, row in enumerate(rows):
            assert row.tobytes() == bytes(
                Serene(op=op.name, slot=slot, **fields) / Values(values=values[slot].tolist())
            )


@given(u32, u32, u32, st.integers(0, 2**16 - 1), u8)
def test_membership_payload_equals_scapys_bytes(length: int, slots: int, scale: int, lanes: int, workers: int) -> None:
    fields: dict[str, Any] = dict(vector_length=length, slots=slots, scale=scale, lanes=lanes, workers=workers)
    built = wire.control_payload(wire.Op.WELCOME, wire.membership(**fields), job=1)
    assert built == bytes(Serene(op="WELCOME", job=1) / Membership(**fields))


def test_frames_equal_scapys_bytes() -> None:
    payload = wire.control_payload(wire.Op.LEAVE, b"{}", worker=3)
    ours = wire.encapsulation(
        len(payload),
        source=("02:00:00:00:00:01", "10.0.0.1", 5000),
        destination=("02:00:00:00:fe:fe", "10.0.0.254", 24142),
    )
    theirs = (
        Ether(src="02:00:00:00:00:01", dst="02:00:00:00:fe:fe")
        / IP(src="10.0.0.1", dst="10.0.0.254", id=0)
        / UDP(sport=5000, dport=24142, chksum=0)
        / payload
    )
    assert ours + payload == bytes(theirs)


def test_scapy_dissects_both_directions() -> None:
    values = [*range(-448, 448)]  # as many as a jumbo frame has
    for sport, dport in ((24142, 5000), (5000, 24142)):
        packet = Ether(
            bytes(Ether() / IP() / UDP(sport=sport, dport=dport) / Serene(op="ANSWER", slot=9) / Values(values=values))
        )
        assert packet[Serene].slot == 9
        assert packet[Values].values == values


@pytest.mark.parametrize("variant", (*VARIANTS, *TREE))
def test_wire_header_fields_match_the_p4_program(variant: str) -> None:
    types = {
        item["name"]: item["fields"] for item in json.loads((BUILD / f"{variant}.json").read_text())["header_types"]
    }
    for name, fields in (("serene_t", wire.SERENE_FIELDS), ("membership_t", wire.MEMBERSHIP_FIELDS)):
        assert [(field, bits) for field, bits, _ in types[name]] == [(field, 8 * size) for field, size in fields]


def test_wire_constants_match_the_p4_sources() -> None:
    sources = Program.load().config_path.parent.parent
    sizes, types = ((sources / "include" / name).read_text() for name in ("sizes.p4", "types.p4"))
    constants = {name: int(value) for name, value in re.findall(r"const bit<\d+> (\w+) = (\d+);", sizes)}
    assert constants["SERENE_UDP_PORT"] == wire.SERENE_UDP_PORT
    assert constants["PROTOCOL_VERSION"] == wire.PROTOCOL_VERSION
    assert constants["UNBOUNDED"] == wire.UNBOUNDED
    assert (constants["ROOT"], constants["LEAVES"]) == (wire.ROOT, MAX_RACKS)
    assert {name: int(value, 16) for name, value in re.findall(r"(\w+) = (0x\w\w)", types)} == {
        op.name: op.value for op in wire.Op
    }
    assert {mode.name: mode.value for mode in wire.ReadMode} == {
        name: int(value) for name, value in re.findall(r"(LATEST|SNAPSHOT) = (\d)", types)
    }
