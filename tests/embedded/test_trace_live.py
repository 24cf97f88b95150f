"""Packets of a running switch are traced, logged and captured, without losing a packet or a register."""

from __future__ import annotations

import contextlib
import json
import queue
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import text_format
from scapy.utils import rdpcap

from serene.embedded import Switch, load_program
from serene.embedded.p4runtime import P4RuntimeServer
from serene.embedded.p4runtime.observers import MAX_WATCHERS, WAITING_STEPS, Watcher
from serene.embedded.trace import recording
from serene.embedded.trace.filter import BadFilter, parse
from serene.embedded.trace.proto import PacketTrace
from serene.embedded.trace.steps import Step, step_from_json
from serene.program import Program
from tests.controller.processes import serenectl
from tests.disks import disk, fill
from tests.embedded.conftest import Target
from tests.embedded.p4rt_controller import PATIENCE_S, Code, load_p4info, refused, until
from tests.embedded.p4rt_probe import JSON, PROGRAMS, Probe, Probing
from tests.embedded.running import DEVICE_ID, Hosts, Running, Tracing, Watch


@pytest.fixture
def switch() -> Switch:
    return Switch.load(JSON)


@pytest.fixture
def server(hosts: Hosts, switch: Switch) -> Iterator[P4RuntimeServer]:
    with P4RuntimeServer(hosts.ports, address="127.0.0.1:0", device_id=DEVICE_ID, program=switch) as running:
        yield running


def values(step: Step, header: str) -> dict[str, Any]:
    return next(each.values for each in step.all("header") if each.name == header)


def test_tracing_a_running_switch_keeps_its_state(hosts: Hosts, switch: Switch, server: P4RuntimeServer) -> None:
    hosts.send(a=2)
    register = next(iter(switch.program.registers))
    held = switch.register_read_all(register)
    watched = Watch(server.port, count=2)
    assert switch.register_read_all(register) == held and any(held)  # the same state
    for a in (1, 7):
        hosts.send(a=a)
    assert [values(watched.next(), "probe")["a"] for _ in range(2)] == [1, 7]
    assert watched.ended.wait(PATIENCE_S) and watched.error == ""
    until(lambda: switch._forwarding is switch._lib, "the untraced program serves the ports again")
    assert Probe.parse(hosts.send(a=3)).a == 3
    assert watched.packets.empty()
    watched.close()


def test_trace_filters_by_port_match_and_drop(hosts: Hosts, server: P4RuntimeServer) -> None:
    by_port, matched, dropped = (
        Watch(server.port, ports=[2], bytes=12),
        Watch(server.port, match="probe.a == 3 and ethernet.type == 0x88b5"),
        Watch(server.port, dropped=True),
    )
    hosts.send(1, a=1)
    hosts.send(2, a=2)
    hosts.send(1, a=3)
    hosts.emit(Probe(a=4, port=511).frame())
    step = by_port.next()
    assert (step.values["port"], values(step, "probe")["a"]) == (2, 2)
    assert [each.values["hex"] for each in step.all("bytes") if each.name == "in"] == [Probe().frame()[:12].hex()]
    assert values(matched.next(), "probe")["a"] == 3
    last = dropped.next()
    assert values(last, "probe")["a"] == 4 and last.outputs == []
    # One that all three want: nothing came between.
    hosts.emit(Probe(a=3, b=9, port=511).frame(), 2)
    for watched in (by_port, matched, dropped):
        assert values(watched.next(), "probe")["b"] == 9
        watched.close()


def test_trace_reports_a_packet_to_a_missing_port(hosts: Hosts, server: P4RuntimeServer) -> None:
    watched = Watch(server.port, dropped=True)
    hosts.emit(Probe(port=9).frame())
    step = watched.next()
    assert [drop.name for drop in step.all("drop")] == ["there is no port 9"] and step.outputs == []
    watched.close()


def test_trace_continues_with_a_new_program(hosts: Hosts, server: P4RuntimeServer) -> None:
    watched = Watch(server.port)
    with Probing(f"127.0.0.1:{server.port}", DEVICE_ID) as controller:
        controller.primary()
        controller.insert(controller.scoped(1, 5))
        hosts.send(a=1)
        (hit,) = [step.values for step in watched.next().all("table") if step.name.endswith("by_scoped")]
        assert hit["hit"] is True and hit["match"] == {"a": 1}
    watched.close()


def test_new_and_ending_watchers_lose_no_traces_of_others(hosts: Hosts, server: P4RuntimeServer) -> None:
    """Packets that were traced, and not read yet, when another watcher came or went."""
    watcher = Watcher()
    server.observe(watcher)
    observers, count = server._device.observers, 0
    for _ in range(30):
        other = Watcher()
        with server._lock:
            observers._stop_reading()  # as when a watcher comes: a packet comes just then
            hosts.send(a=1)
            observers.add(other)
            observers._stop_reading()
            hosts.send(a=1)
            observers.remove(other)
        count += 2
    got: list[Step] = []

    def all_traced() -> bool:
        got.extend(watcher.take(0.1).packets)
        return len(got) >= count

    until(all_traced, "every packet is traced")
    assert len(got) == count


def test_watcher_sees_packets_forwarded_during_program_swap(
    hosts: Hosts, switch: Switch, server: P4RuntimeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    watcher = Watcher()
    server.observe(watcher)
    observers = server._device.observers
    stop_reading = observers._stop_reading
    arrived = []

    def late() -> None:
        """Packets that come between the reader's end and the program's, if there is such a time."""
        stop_reading()
        hosts.sockets[1].settimeout(0.5)
        hosts.emit(Probe(port=2).frame())
        with contextlib.suppress(TimeoutError):
            arrived.append(hosts.sockets[1].recv(2048))

    monkeypatch.setattr(observers, "_stop_reading", late)
    with server._lock:
        server._device._stop_running()
    assert len(watcher.take(0).packets) == len(arrived)


def test_bad_trace_requests_are_refused(server: P4RuntimeServer) -> None:
    for wanted, words in (
        ({"match": "udp.port == 1"}, "no header 'udp'; expected "),
        ({"match": "probe.zz == 1"}, "'zz' matches no field; expected a, b"),
        ({"match": "probe.by == 1"}, "'by' matches by_exact, by_lpm"),
        ({"match": "probe.a"}, "expected HEADER.FIELD OPERATOR NUMBER"),
        ({"match": "probe.a == x"}, "expected a number, an IP address or a MAC address"),
        ({"match": " and ".join(["probe.a == 1"] * 33)}, "32 at most"),
        ({"ports": "all"}, "ports: "),
        ({"count": -1}, "count: "),
        ({"speed": 1}, "speed: "),
    ):
        watched = Watch(server.port, **wanted)
        assert words in watched.error
        watched.close()


def test_number_of_watchers_is_bounded(server: P4RuntimeServer) -> None:
    watched = [Watch(server.port) for _ in range(MAX_WATCHERS)]
    assert "clients already watch, the maximum" in Watch(server.port).error
    watched.pop().close()

    def another() -> bool:
        watched.append(Watch(server.port))
        return not watched[-1].error

    until(another, "a place is free", PATIENCE_S)
    for each in watched:
        each.close()


def test_packets_lost_by_a_slow_watcher_are_counted() -> None:
    watcher, packet = Watcher(frozenset({1})), Step("packet", "", {"port": 1}, [Step("state")] * 9)
    for _ in range(WAITING_STEPS // 10 + 5):
        watcher.offer(packet)
    watcher.offer(Step("packet", "", {"port": 2}))
    batch = watcher.take(0)
    assert (len(batch.packets), batch.lost) == (WAITING_STEPS // 10, 5)
    assert watcher.take(0).packets == [] and watcher.take(0).lost == 0


def test_watch_without_program_or_tracing_is_refused(target: Target) -> None:
    watched = Watch(int(target.address.rpartition(":")[2]))
    assert watched.error.startswith(
        "no program is running" if target.name == "embedded" else "this switch cannot trace"
    )
    watched.close()


def test_trace_filter_matches_addresses() -> None:
    program = load_program(Program.load("serene").config_path)
    header = Step("header", "ipv4", {"destination": 0x0A000002, "ttl": 64})
    packet = Step("packet", steps=[Step("ingress", steps=[Step("parser", steps=[header])])])
    assert parse("ipv4.dst == 10.0.0.2 && ipv4.ttl >= 64", program).wants(packet)
    assert not parse("ipv4.dst == 10.0.0.3", program).wants(packet)
    assert not parse("udp.dst == 24142", program).wants(packet)  # it has none
    (comparison,) = parse("ethernet.dst != 02:00:00:00:00:01", program).comparisons
    assert (comparison.field, comparison.number) == ("destination", 0x020000000001)
    with pytest.raises(BadFilter, match="join comparisons with 'and'"):
        parse("udp.dst == 24142 or udp.dst == 1", program)


@pytest.mark.parametrize("form", ["", "--json", "--format=proto"])
def test_serenectl_trace_prints_matching_packets(
    hosts: Hosts, server: P4RuntimeServer, tmp_path: Path, form: str
) -> None:
    wanted = ["--port", "0-1,255", "--match", "probe.a == 2", "--count", "1", *filter(None, [form])]
    running = Tracing(tmp_path, server.port, *wanted)
    for a in (1, 2):
        hosts.send(2, a=a)
        hosts.send(1, a=a)
    out = running.printed()
    if form == "--format=proto":
        (message,) = (text_format.Parse(line, PacketTrace()) for line in out)
        assert (message.input.ingress_port, message.root.transmit.egress_port) == (1, 2)
    elif form:
        packet = step_from_json(json.loads("".join(out)))
        assert packet.values["port"] == 1 and values(packet, "probe")["a"] == 2
        assert packet.json() == json.loads("".join(out))
    else:
        assert out[0].startswith("packet on port 1, ") and "leaves by port 2, " in out[-1]


def test_serenectl_trace_reports_invalid_arguments(server: P4RuntimeServer) -> None:
    for arguments, code, words in (
        (["--match", "x.y == 1"], 1, "no header 'x'; expected "),
        (["--port", "0-512"], 2, "expected port numbers from 0 to 511"),
        (["--switch", "nowhere"], 2, "expected HOST:PORT"),
        (["--json", "--format", "proto", "--count", "1"], 2, "--json with --format proto: expected one of them"),
        (["--switch", "127.0.0.1:9"], 1, "127.0.0.1:9: "),
    ):
        done = serenectl("trace", "--switch", f"127.0.0.1:{server.port}", *arguments)
        assert done.returncode == code
        assert done.stderr.startswith("error: ") and words in done.stderr and len(done.stderr.splitlines()) == 1


# -- the process ----------------------------------------------------------------------------------------------


def test_pcap_capture_continues_with_the_next_program(hosts: Hosts, switch: Switch, tmp_path: Path) -> None:
    with P4RuntimeServer(hosts.ports, address="127.0.0.1:0", device_id=DEVICE_ID, captures=tmp_path) as server:
        for a in (1, 2, 3):
            server.run(Switch.load(JSON))
            hosts.send(a=a)
        came = tmp_path / f"udp{hosts.local[0]}_in.pcap"
        frames = [Probe(a=a, port=2).frame() for a in (1, 2, 3)]
        until(lambda: [bytes(packet) for packet in rdpcap(str(came))] == frames, "all are captured")


def test_full_disk_ends_a_capture_after_a_whole_packet(
    hosts: Hosts, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        disk(tmp_path / "disk", "64k") as place,
        P4RuntimeServer(hosts.ports, address="127.0.0.1:0", program=Switch.load(JSON), captures=place),
    ):

        def ended() -> bool:
            for _ in range(100):
                hosts.send(a=1)
            return "are not captured any more: No space left" in caplog.text

        until(ended, "the disk is full, and it is reported")
        assert Probe.parse(hosts.send(a=3)).a == 3  # the switch continues
        size = 16 + len(Probe().frame())
        assert all((path.stat().st_size - 24) % size == 0 for path in place.iterdir())
        (came,) = place.glob(f"udp{hosts.local[0]}_in.pcap")
        assert {bytes(packet) for packet in rdpcap(str(came))} == {Probe(a=1, port=2).frame()}


def test_capture_that_cannot_begin_does_not_stop_the_switch(
    hosts: Hosts, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with P4RuntimeServer(hosts.ports, address="127.0.0.1:0", captures=tmp_path / "gone") as server:
        server.run(Switch.load(JSON))
        assert Probe.parse(hosts.send(a=3)).a == 3
    assert "No such file or directory: packets of port 1@udp:" in caplog.text


@pytest.mark.parametrize("how", ["--trace", "--log-console"])
def test_every_packet_is_logged_and_captured(hosts: Hosts, tmp_path: Path, how: str) -> None:
    (place := tmp_path / "captures").mkdir()
    with Running(tmp_path, str(JSON), *hosts.arguments, how, "--pcap", str(place)) as running:
        arrived, back = [hosts.send(1, a=a) for a in (1, 2)], hosts.send(2, a=3)
        lines = running.ended()
    for port, to, count in ((1, 2, 2), (2, 1, 1)):
        assert sum(f"packet on port {port}, " in line for line in lines) == count
        assert sum(f"leaves by port {to}, " in line for line in lines) == count
    assert any("table ProbeIngress.by_exact {a=2, b=0}: miss" in line for line in lines)
    assert how == "--trace" or all(" serene.switch" in line for line in lines)
    one, two = (f"udp{local}" for local in hosts.local)
    assert {path.name: [bytes(packet) for packet in rdpcap(str(path))] for path in place.iterdir()} == {
        f"{one}_in.pcap": [Probe(a=a, port=2).frame() for a in (1, 2)],
        f"{two}_out.pcap": arrived,
        f"{two}_in.pcap": [Probe(a=3, port=1).frame()],
        f"{one}_out.pcap": [back],
    }


def test_dump_packet_data_logs_only_bytes(hosts: Hosts, tmp_path: Path) -> None:
    options = ["--log-console", "-L", "info", "--dump-packet-data", "6"]
    with Running(tmp_path, str(JSON), *hosts.arguments, *options) as running:
        hosts.send(a=1)
        out = "\n".join(running.ended())
    assert out.count(f"bytes in: {Probe().frame()[:6].hex()}") == 1 and out.count("bytes out: ") == 1
    assert "table" not in out


# -- watchers of a switch whose programs change --------------------------------------------------------------------


OTHER = PROGRAMS / "shapes.json"


@pytest.fixture
def primary(server: P4RuntimeServer) -> Iterator[Probing]:
    with Probing(f"127.0.0.1:{server.port}", DEVICE_ID) as controller:
        controller.become_primary()
        yield controller


def test_watch_ends_if_the_new_program_lacks_its_header(server: P4RuntimeServer, primary: Probing) -> None:
    one, every = Watch(server.port, match="probe.a == 1"), Watch(server.port)
    primary.push(OTHER.read_bytes(), load_p4info(OTHER.with_suffix(".p4info.txtpb")))
    assert one.ended.wait(PATIENCE_S), "it would wait for ever"
    assert one.error.startswith("the program was replaced, and the new one lacks what was requested: no header")
    assert not every.ended.is_set()
    every.close()


def test_tracing_is_compiled_without_holding_the_server_lock(
    server: P4RuntimeServer, primary: Probing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The watcher comes when the program is saved, and is traced once it is committed."""
    prepare = recording.Tracing.prepare_tracing
    compiled: queue.SimpleQueue[bool] = queue.SimpleQueue()

    def lock_is_free() -> bool:
        """For others than this thread."""
        with ThreadPoolExecutor(1) as other:
            free = other.submit(server._lock.acquire, timeout=2).result()
            if free:
                other.submit(server._lock.release).result()
        return free

    def noted(self: recording.Tracing) -> None:
        if not self.can_trace:
            compiled.put(lock_is_free())
        prepare(self)

    primary.push(action="VERIFY_AND_SAVE")
    watched = Watch(server.port)
    monkeypatch.setattr(recording.Tracing, "prepare_tracing", noted)
    primary.push_nothing("COMMIT")
    assert compiled.get(timeout=PATIENCE_S), "the lock was held"
    assert compiled.empty()
    watched.close()


def test_trace_watcher_reports_count_of_untraced_packets(server: P4RuntimeServer, tmp_path: Path) -> None:
    watching = Tracing(tmp_path, server.port)
    try:
        (watcher,) = server._device.observers._watchers
        watcher.offer(None, lost=3)
        until(lambda: watching.lines[1:] == ["3 packets were not traced: they arrived too fast"], "it is reported")
    finally:
        watching.kill()


@pytest.mark.parametrize(
    ("place", "code", "words"),
    [("full", Code.RESOURCE_EXHAUSTED, "No space left on device"), ("a file", Code.INTERNAL, "Not a directory")],
)
def test_failed_compilation_blames_the_machine_not_the_program(
    fresh: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, code: Code, words: str
) -> None:
    with disk(tmp_path / "small", "64k") as small, fresh.controller() as controller:
        fill(small)
        (tmp_path / "file").touch()
        monkeypatch.setenv("XDG_CACHE_HOME", str(small if place == "full" else tmp_path / "file"))
        controller.become_primary()
        message = refused(code, controller.push, action="VERIFY")
        assert words in message and "XDG_CACHE_HOME=/PATH chooses another place" in message
