"""Wireshark's view of Serene's packets: tshark reads a capture with the dissector that we generate."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw
from scapy.utils import wrpcap

from serene.layers import Membership, Serene, Values
from serene.wire import MEMBERSHIP_FIELDS, SERENE_FIELDS, SERENE_UDP_PORT, Op, ReadMode
from tests.commands import output

NOBODY = 65534


@pytest.fixture(scope="module")
def script() -> str:
    return output(sys.executable, "-m", "serene.dissector")


def test_dissector_declares_each_header_field_once(script: str) -> None:
    for name, size in (*SERENE_FIELDS, *MEMBERSHIP_FIELDS):
        assert script.count(f'ProtoField.uint{8 * size}("serene.{name}"') == 1
    assert f":add({SERENE_UDP_PORT}, serene)" in script


def dissected(script: str, packets: list[Packet], folder: Path, *columns: str) -> list[list[str]]:
    """tshark's columns, a row a packet. Not as root, under whom Wireshark runs no scripts."""
    (folder / "serene.lua").write_text(script)
    wrpcap(str(folder / "capture.pcap"), packets)
    folder.chmod(0o755)
    command = ["tshark", "-X", "lua_script:serene.lua", "-r", "capture.pcap", "-T", "fields", "-E", "separator=;"]
    done = subprocess.run(
        [*command, *(word for column in columns for word in ("-e", column))], cwd=folder, capture_output=True,
        text=True, check=True, timeout=120, user=NOBODY if os.geteuid() == 0 else None,
        env=os.environ | {"HOME": str(folder)},
    )  # fmt: skip
    return [line.split(";") for line in done.stdout.splitlines()]


@pytest.mark.skipif(shutil.which("tshark") is None, reason="needs tshark (Debian's package tshark)")
def test_tshark_dissects_packets_built_by_scapy(script: str) -> None:
    with tempfile.TemporaryDirectory() as name:  # pytest's own are closed to others
        folder = Path(name)
        head = Ether() / IP() / UDP(sport=40000, dport=SERENE_UDP_PORT)
        numbers = {
            name: 2 ** (8 * size) - 9 for name, size in SERENE_FIELDS if name not in ("version", "op", "read_mode")
        }
        push = Serene(op=Op.PUSH.value, read_mode=ReadMode.SNAPSHOT.value, **numbers) / Values(
            values=[7, -8, 2**31 - 1]
        )
        joining: dict[str, Any] = {name: number + 3 for number, (name, _) in enumerate(MEMBERSHIP_FIELDS)}
        hello = Serene(op=Op.HELLO.value, worker=3) / Membership(**joining)
        report = Serene(op=Op.REPORT.value) / Raw(b"{}")
        answer = Ether() / IP() / UDP(sport=SERENE_UDP_PORT, dport=40000) / Serene(op=Op.ANSWER.value)
        packets = [head / push, head / hello, head / report, answer, head / Raw(b"short")]

        names = [name for name, _ in SERENE_FIELDS]
        rows = dissected(script, packets, folder, *(f"serene.{name}" for name in names), "serene.value", "serene.body")
        found = dict(zip([*names, "value", "body"], rows[0], strict=True))
        assert {name: int(found[name]) for name in numbers} == numbers
        assert (found["op"], found["read_mode"], found["value"]) == (str(Op.PUSH.value), "1", "7,-8,2147483647")
        assert [row[1] for row in rows[:4]] == [str(op.value) for op in (Op.PUSH, Op.HELLO, Op.REPORT, Op.ANSWER)]
        assert (rows[2][-1], rows[4][1]) == ("7b7d", "")

        (_, joined, *_) = dissected(script, packets, folder, *(f"serene.{name}" for name, _ in MEMBERSHIP_FIELDS))
        assert list(map(int, joined)) == list(joining.values())
        lines = dissected(script, packets, folder, "_ws.col.Protocol", "_ws.col.Info")
        assert lines[1] == ["Serene", "HELLO job 0 worker 3 seq 0 slot 0"]
        assert lines[4][0] == "UDP"
