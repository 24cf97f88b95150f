"""``serene-switch`` as a process: ready line, ports, errors, signals."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import grpc
import numpy as np
import pytest
from finsy.proto import p4r, p4r_grpc

from serene.client.shm import SharedMemory
from serene.switch import Switch
from serene.switch.cli import main
from serene.switch.options import left_out, parse, parsers
from tests.ports import some_port, some_ports
from tests.switch.p4rt_controller import Controller, load_p4info, until
from tests.switch.p4rt_probe import JSON, P4INFO, Probe

PATIENCE_S = 120.0
COMMAND = [sys.executable, "-m", "serene.switch.cli"]


class Running:
    """A ``serene-switch`` that has said that it is ready."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen([*COMMAND, *arguments], stderr=subprocess.PIPE, text=True)
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        until(lambda: self.ready_line or self.process.poll() is not None, "the switch is ready", PATIENCE_S)
        assert self.process.poll() is None, self.lines

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line.rstrip())

    @property
    def ready_line(self) -> str:
        return next((line for line in self.lines if line.startswith("serene-switch: ")), "")

    @property
    def address(self) -> str:
        return self.ready_line.split()[3].rstrip(",")

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        code = self.process.wait(PATIENCE_S)
        self._reader.join()
        return code


@contextlib.contextmanager
def running(*arguments: str) -> Iterator[Running]:
    switch = Running(*arguments)
    try:
        yield switch
    finally:
        if switch.process.poll() is None:
            switch.process.kill()
            switch.process.wait()


def failed(*arguments: str, **environment: str) -> tuple[int, str]:
    """Exit code and standard error of a ``serene-switch`` that does not start."""
    done = subprocess.run(
        [*COMMAND, *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        env=os.environ | environment,
        check=False,
    )
    assert "Traceback" not in done.stderr and done.stdout == ""
    return done.returncode, done.stderr


GRPC = ["--", "--grpc-server-addr", "127.0.0.1:0"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_it_says_when_it_is_ready_and_stops_when_told_to(number: int) -> None:
    udp = some_port(socket.SOCK_DGRAM)
    with running("--no-p4", "--device-id", "3", "-i", f"1@udp:{udp}", "-i", "2@lo", *GRPC) as switch:
        assert switch.ready_line == f"serene-switch: P4Runtime on {switch.address}, device 3, ports 1@udp:{udp} 2@lo"
        host, port = switch.address.split(":")
        with socket.create_connection((host, int(port)), timeout=PATIENCE_S):
            pass
        assert switch.stop(number) == 0
        assert switch.lines == [switch.ready_line]


def test_it_stops_whichever_thread_the_signal_comes_to() -> None:
    with running("--no-p4", "--device-id", "7", *GRPC) as switch:
        pid = switch.process.pid
        threads = {int(name) for name in os.listdir(f"/proc/{pid}/task")} - {pid}
        assert ctypes.CDLL(None, use_errno=True).tgkill(pid, max(threads), signal.SIGTERM) == 0
        assert switch.process.wait(PATIENCE_S) == 0


def test_it_stops_with_a_controller_connected() -> None:
    with running("--no-p4", "--device-id", "7", *GRPC) as switch:
        controller = Controller(switch.address, 7, load_p4info(P4INFO))
        stream = controller.become_primary()
        controller.set_pipeline("VERIFY_AND_COMMIT", JSON.read_bytes())
        assert switch.stop() == 0
        assert stream.done.wait(PATIENCE_S)
        controller.close()


def test_simple_switch_grpcs_flags_are_taken() -> None:
    """Also in its forms without blanks; Thrift, which is not here, is mentioned."""
    udp, thrift = some_port(socket.SOCK_DGRAM), some_port()
    arguments = ["--no-p4", "--device-id=7", f"-i1@udp:{udp}", "--thrift-port", str(thrift), "-L", "info"]
    with running(*arguments, *GRPC, "--cpu-port", "255", "--drop-port=510") as switch:
        assert any("Thrift" in line for line in switch.lines)
        with socket.create_connection(("127.0.0.1", thrift), timeout=PATIENCE_S) as client:
            assert client.recv(1) == b""  # p4-utils waits for the port to be open; who speaks Thrift sees an end
        controller = Controller(switch.address, 7, load_p4info(P4INFO))
        stream = controller.become_primary()
        controller.set_pipeline("VERIFY_AND_COMMIT", JSON.read_bytes())
        controller.packet_out(stream, Probe(b=4).frame())
        assert Probe.parse(stream.receive("packet").payload).b == 4
        controller.close()


def help_of_simple_switch_grpc() -> tuple[list[tuple[str, bool]], list[tuple[str, bool]]]:
    """Its options before and after the ``--``, and whether each takes a value."""
    done = subprocess.run(["simple_switch_grpc", "--help"], capture_output=True, text=True, timeout=60, check=False)
    own, _, target = (done.stdout + done.stderr).partition("Target options:")
    found = [re.findall(r"^  (?:-\w \[ )?(--[\w-]+)(?: \])?( \[?=?\(?arg| arg)?", part, re.M) for part in (own, target)]
    return tuple([(name, bool(value)) for name, value in part] for part in found)  # type: ignore[return-value]


@pytest.mark.bmv2
@pytest.mark.skipif(shutil.which("simple_switch_grpc") is None, reason="needs simple_switch_grpc")
def test_every_option_of_simple_switch_grpc_is_taken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What it does not do here is said, a line for each."""
    own, target = help_of_simple_switch_grpc()
    assert "--interface" in dict(own) and "--cpu-port" in dict(target)  # how many there are depends on its build
    values = {
        "--interface": "1@lo", "--pcap": str(tmp_path), "--log-level": "info", "--log-file": str(tmp_path / "log"),
        "--grpc-server-addr": "0.0.0.0:9559", "--cpu-port": "255", "--drop-port": "510",
    }  # fmt: skip
    once = {"--help", "--version", "--json-version"}  # these print and end

    def given(options: list[tuple[str, bool]]) -> list[str]:
        return [
            word for name, takes in options if name not in once for word in [name, *[values.get(name, "5")] * takes]
        ]

    options, further = parse([*given(own), "--", *given(target)])
    said = "\n".join(left_out(options, further))
    done = {
        "--interface", "--pcap", "--device-id", "--log-console", "--log-file", "--log-level", "--log-flush",
        "--log-file-max-size", "--log-file-max-files", "--dump-packet-data", "--no-p4", "--grpc-server-addr",
        "--grpc-server-ssl", "--grpc-server-cacert", "--grpc-server-cert", "--grpc-server-key",
        "--grpc-server-with-client-auth", "--cpu-port", "--drop-port",
    }  # fmt: skip
    for name, _ in (*own, *target):
        assert name in once | done or f"{name}: " in said, name
    for name in ("--version", "--json-version", "--help"):
        done_ = subprocess.run([*COMMAND, name], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        assert done_.returncode == 0 and done_.stdout


def test_what_is_logged_goes_where_it_is_wanted(tmp_path: Path) -> None:
    arguments = ["--no-p4", "--nanolog", "ipc:///tmp/x.ipc", "--log-file", str(tmp_path / "log"), "-L", "info"]
    with running(*arguments, *GRPC, "--priority-queues", "8") as switch:
        assert switch.lines == [switch.ready_line]
        text = (tmp_path / "log.txt").read_text()
        assert "--nanolog: there is no nanomsg log" in text and "--priority-queues: there are no queues" in text


def test_tls(tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl, to make certificates")
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "1",
    ]
    command += ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    subprocess.run([*command, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    tls = ["--grpc-server-ssl", "--grpc-server-cert", str(certificate), "--grpc-server-key", str(key)]
    tls += ["--grpc-server-cacert", str(certificate), "--grpc-server-with-client-auth"]
    with running("--no-p4", *GRPC, *tls) as switch:
        port = switch.address.rpartition(":")[2]
        ours = (certificate.read_bytes(), key.read_bytes(), certificate.read_bytes())
        with grpc.secure_channel(f"localhost:{port}", grpc.ssl_channel_credentials(*ours)) as channel:
            stub = p4r_grpc.P4RuntimeStub(channel)
            assert stub.Capabilities(p4r.CapabilitiesRequest(), timeout=PATIENCE_S).p4runtime_api_version
        for credentials in (grpc.ssl_channel_credentials(ours[0]), None):  # without a certificate, and in the clear
            address = f"localhost:{port}"
            other = grpc.secure_channel(address, credentials) if credentials else grpc.insecure_channel(address)
            with other as channel, pytest.raises(grpc.RpcError):
                p4r_grpc.P4RuntimeStub(channel).Capabilities(p4r.CapabilitiesRequest(), timeout=PATIENCE_S)


def test_a_program_on_the_command_line_forwards_at_once() -> None:
    sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
    for end in sockets:
        end.bind(("127.0.0.1", 0))
        end.settimeout(PATIENCE_S)
    local = some_ports(2, socket.SOCK_DGRAM)
    ports = [f"{i + 1}@udp:{local[i]}:{sockets[i].getsockname()[1]}" for i in range(2)]
    with running(str(JSON), "-i", ports[0], "-i", ports[1], *GRPC):
        sockets[0].sendto(Probe(port=2, b=2).frame(), ("127.0.0.1", local[0]))
        found = Probe.parse(sockets[1].recv(2048))
        assert (found.b, found.by_keyless, found.by_constant) == (2, 31, 12)
    for end in sockets:
        end.close()


def test_shared_memory_ports_on_the_command_line(tmp_path: Path) -> None:
    """Also when a controller pushes a program anew: the process at the port goes on."""
    ports = [f"-i{number}@shm:{tmp_path}/port{number}" for number in (1, 2)]
    with running("--no-p4", "--device-id", "7", *ports, *GRPC, "--cpu-port", "255") as switch:
        assert switch.ready_line.endswith(f"ports 1@shm:{tmp_path}/port1 2@shm:{tmp_path}/port2")
        controller = Controller(switch.address, 7, load_p4info(P4INFO))
        controller.become_primary()
        controller.set_pipeline("VERIFY_AND_COMMIT", JSON.read_bytes())
        ends = [SharedMemory(tmp_path / f"port{number}") for number in (1, 2)]
        for value in (1, 2):
            controller.set_pipeline("VERIFY_AND_COMMIT", JSON.read_bytes())
            controller.insert(controller.entry("by_scoped", {"a": 1}, "found_scoped", value))
            found: list[bytes] = []

            def passed() -> bool:
                ends[0].send_rows(np.frombuffer(Probe(a=1, port=2).frame(), np.uint8)[None, :])
                rows, lengths = ends[1].receive_rows(0.1)
                found.extend(row[:length].tobytes() for row, length in zip(rows, lengths, strict=True))  # noqa: B023
                return bool(found)  # noqa: B023

            until(passed, "a frame passes")
            assert Probe.parse(found[-1]).by_scoped == value
        controller.close()
        for end in ends:
            end.close()
        switch.process.terminate()
        assert switch.process.wait(timeout=PATIENCE_S) == 0
    assert not list(tmp_path.iterdir())


def test_a_path_that_cannot_be_a_port(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path, words in (("missing/port", "in a folder to write to"), ("file", "not a socket")):
        code, message = failed("--no-p4", "-i", f"1@shm:{tmp_path}/{path}", *GRPC)
        assert code == 1 and words in message and "Traceback" not in message


def test_ports_stay_when_programs_change() -> None:
    """UDP ports, one of which learns its peer from the first frame."""
    ends = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
    for end in ends:
        end.bind(("127.0.0.1", 0))
        end.settimeout(PATIENCE_S)
    local = some_ports(2, socket.SOCK_DGRAM)
    ports = [f"1@udp:{local[0]}", f"2@udp:{local[1]}:{ends[1].getsockname()[1]}"]
    with running("--no-p4", "--device-id", "7", "-i", ports[0], "-i", ports[1], *GRPC, "--cpu-port", "255") as switch:
        controller = Controller(switch.address, 7, load_p4info(P4INFO))
        stream = controller.become_primary()
        for value in (1, 2):
            controller.set_pipeline("VERIFY_AND_COMMIT", JSON.read_bytes())
            controller.insert(controller.entry("by_scoped", {"a": 1}, "found_scoped", value))
            ends[0].sendto(Probe(a=1, port=2).frame(), ("127.0.0.1", local[0]))
            assert Probe.parse(ends[1].recv(2048)).by_scoped == value
            ends[1].sendto(Probe(a=1, port=1).frame(), ("127.0.0.1", local[1]))
            assert Probe.parse(ends[0].recv(2048)).by_scoped == value
            ends[0].sendto(Probe(a=1, port=255).frame(), ("127.0.0.1", local[0]))
            assert stream.receive("packet").metadata[0].value == b"\x01"
        controller.close()
    for end in ends:
        end.close()


# -- bad input ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "--no-p4"),
        ([str(JSON), "--no-p4"], "not both"),
        (["--no-p4", "-i", "eth0"], "PORT@INTERFACE"),
        (["--no-p4", "-i", "x@eth0"], "PORT@INTERFACE"),
        (["--no-p4", "-i", "1@"], "PORT@INTERFACE"),
        (["--no-p4", "-i", "512@lo"], "0 to 511"),
        (["--no-p4", "-i", "-1@lo"], "PORT@INTERFACE"),
        (["--no-p4", "-i", "1@udp:"], "udp:LOCAL"),
        (["--no-p4", "-i", "1@udp:70000"], "udp:LOCAL"),
        (["--no-p4", "-i", "1@udp:1:2:3"], "udp:LOCAL"),
        (["--no-p4", "-i", "1@shm:"], "PORT@shm:/PATH"),
        (["--no-p4", "-i", "1@shm:port1"], "PORT@shm:/PATH"),
        (["--no-p4", "-i", "1@shm:/" + "x" * 107], "at most 107 bytes"),
        (["--no-p4", "-i", "1@shm:/run/one", "-i", "2@shm:/run/one"], "path /run/one is given twice"),
        (["--no-p4", "-i", "1@lo", "-i", "1@udp:5000"], "port 1 is given twice"),
        (["--no-p4", "-i", "1@udp:5000", "-i", "2@udp:5000"], "UDP port 5000 is given twice"),
        (["--no-p4", "-i", "255@lo", "--", "--cpu-port", "255"], "port 255 is the CPU port"),
        (["--no-p4", "-i", "511@lo"], "port 511 is the drop port"),
        (["--no-p4", "--device-id", "-1"], "--device-id -1"),
        (["--no-p4", "--device-id", "one"], "--device-id"),
        (["--no-p4", "--log-level", "loud"], "'trace'"),
        (["--no-p4", "--", "--cpu-port", "0"], "--cpu-port 0"),
        (["--no-p4", "--", "--cpu-port", "700"], "expected 1 to 511"),
        (["--no-p4", "--", "--cpu-port", "511"], "both 511"),
        (["--no-p4", "--", "--speed", "9"], "--speed"),
        (["--no-p4", "--", "--grpc-server-addr", "nonsense"], "'nonsense': expected HOST:PORT"),
        (["--no-p4", "--", "--grpc-server-addr", ":9559"], "HOST:PORT"),
        (["--no-p4", "--", "--grpc-server-addr", "127.0.0.1:99999"], "65535"),
        (["--no-p4", "--fast"], "--fast"),
        (["--no-p4", "--pcap", "/nowhere"], "--pcap /nowhere: expected a directory"),
        (["--no-p4", "--thrift-port", "0"], "--thrift-port 0: expected 1 to 65535"),
        (["--no-p4", "--log-file-max-files", "0"], "expected 1 or more"),
        (["--no-p4", "--dump-packet-data", "-1"], "--dump-packet-data -1: expected 0 to"),
        (["--no-p4", "--log-file", "/nowhere/log"], "cannot write /nowhere/log.txt"),
        (["--no-p4", "--", "--grpc-server-ssl"], "--grpc-server-cert FILE"),
        (["--no-p4", "--", "--grpc-server-key", "k"], "certificates without --grpc-server-ssl"),
        (
            ["--no-p4", "--", "--grpc-server-ssl", "--grpc-server-cert", "/c", "--grpc-server-key", "/k"],
            "cannot read /",
        ),
    ],
)
def test_bad_usage(
    arguments: list[str], words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["serene-switch", *arguments])
    with pytest.raises(SystemExit) as ended:
        sys.exit(main())
    message = capsys.readouterr().err
    assert ended.value.code == 2
    assert message.startswith("error: ") and words in message


def test_an_interface_that_is_not_there() -> None:
    code, message = failed("--no-p4", "-i", "1@nowhere0", *GRPC)
    assert code == 1
    assert message.startswith("error: ") and "'nowhere0'" in message
    assert os.geteuid() != 0 or "lo" in message  # the choices


def test_no_permission_for_interfaces() -> None:
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("needs root and setpriv, to give CAP_NET_RAW away")
    done = subprocess.run(
        ["setpriv", "--bounding-set=-net_raw", *COMMAND, "--no-p4", "-i", "1@lo", *GRPC],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == "error: no permission to open 'lo': run as root, or use udp: ports\n"


def test_addresses_in_use() -> None:
    with socket.socket() as tcp, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        tcp.bind(("127.0.0.1", 0))
        tcp.listen()
        udp.bind(("127.0.0.1", 0))
        address, port = f"127.0.0.1:{tcp.getsockname()[1]}", udp.getsockname()[1]
        code, message = failed("--no-p4", "--", "--grpc-server-addr", address)
        assert (code, message.splitlines()[-1][:7]) == (1, "error: ") and address in message
        code, message = failed("--no-p4", "-i", f"1@udp:{port}", *GRPC)
        assert code == 1 and message.startswith("error: ") and str(port) in message


def test_an_address_of_another_machine() -> None:
    code, message = failed("--no-p4", "--", "--grpc-server-addr", "192.0.2.1:9559")
    assert code == 1 and "error: cannot listen on 192.0.2.1:9559" in message


def test_programs_that_are_none(tmp_path: Path) -> None:
    code, message = failed(str(tmp_path / "missing.json"), *GRPC)
    assert code == 1 and message.startswith("error: ") and "missing.json" in message
    (tmp_path / "other.json").write_text('{"a": 1}')
    code, message = failed(str(tmp_path / "other.json"), *GRPC)
    assert code == 1 and "not BMv2's JSON" in message
    code, message = failed(str(P4INFO), *GRPC)
    assert code == 1 and "not JSON" in message


def test_no_compiler(tmp_path: Path) -> None:
    code, message = failed(str(JSON), *GRPC, PATH=str(tmp_path), CC="", XDG_CACHE_HOME=str(tmp_path))
    assert code == 1 and message.startswith("error: ") and "C compiler" in message


def test_interrupted_while_it_compiles(tmp_path: Path) -> None:
    """Nothing half-made is left in the cache, and no traceback on the screen."""
    Switch.load(JSON).close()  # it compiles at all
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        scratch.chmod(0o755)  # the compiler runs as somebody else
        process = subprocess.Popen(
            [*COMMAND, str(JSON), *GRPC],
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"XDG_CACHE_HOME": str(tmp_path), "TMPDIR": name},
        )
        until(lambda: any(scratch.glob("*/wide.h")), "it compiles", PATIENCE_S)
        process.send_signal(signal.SIGINT)
        _, message = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 130
        assert message == ""
        assert not any(scratch.iterdir())
    assert not any(path.is_file() for path in tmp_path.rglob("*"))  # it may have been stopped before it made the folder


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_the_command_line(tmp_path: Path) -> None:
    shown = subprocess.run([*COMMAND, "--show-completion"], capture_output=True, text=True, check=True)
    (tmp_path / "script").write_text(shown.stdout)
    for name in ("program.json", "other.txt", "key.pem"):
        (tmp_path / name).touch()
    (tmp_path / "folder").mkdir()

    def completed(*words: str) -> set[str]:
        given = " ".join(f"'{word}'" for word in ("serene-switch", *words))
        command = f"source ./script; COMP_WORDS=({given}) COMP_CWORD={len(words)}; _serene_switch"
        done = subprocess.run(
            ["bash", "-euc", command + '; printf "%s\\n" "${COMPREPLY[@]}"'],
            capture_output=True, text=True, check=True, cwd=tmp_path,
        )  # fmt: skip
        return set(done.stdout.split())

    assert completed("--log-f") == {"--log-file", "--log-flush", "--log-file-max-size", "--log-file-max-files"}
    assert completed("-L", "w") == completed("--log-level", "wa") == {"warn"}
    assert completed("pro") == {"program.json"} and completed("") == {"program.json", "folder"}
    assert completed("--no-p4", "--", "--grpc-server-c") == {"--grpc-server-cacert", "--grpc-server-cert"}
    assert completed("--no-p4", "--grpc") == completed("--device-id", "") == set()
    assert completed("--", "--grpc-server-key", "k") == {"key.pem"}
    assert completed("--pcap", "") == {"folder"}
    own, further = parsers()
    assert completed("--") >= {name for name in own._option_string_actions if name.startswith("--")}
    assert completed("--", "--") == {name for name in further._option_string_actions if name.startswith("--")}


def test_help_names_the_flags() -> None:
    done = subprocess.run([*COMMAND, "--help"], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0
    for flag in ("--interface", "--no-p4", "--device-id", "--log-level", "--grpc-server-addr", "--cpu-port", "udp:"):
        assert flag in done.stdout
