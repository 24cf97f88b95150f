"""``serene-switch`` as a process: ready line, ports, options, errors, signals."""

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
from pathlib import Path

import numpy as np
import pytest

from serene.client.transport.shm import SharedMemory
from serene.embedded import Switch
from serene.embedded.command.cli import main
from serene.embedded.command.options import left_out, parse, parsers
from tests.embedded.p4rt_controller import PATIENCE_S, until
from tests.embedded.p4rt_probe import JSON, P4INFO, Probe
from tests.embedded.running import Hosts, Running
from tests.ports import some_port
from tests.support.golden import rows

COMMAND = [sys.executable, "-m", "serene.embedded.command.cli"]


def test_switch_prints_ready_line_and_stops_when_any_thread_gets_a_signal(tmp_path: Path) -> None:
    """tests/unit/test_interrupts.py sends the other signals."""
    udp = some_port(socket.SOCK_DGRAM)
    with Running(tmp_path, "--no-p4", "-i", f"1@udp:{udp}", "-i", "2@lo") as switch:
        assert switch.ready_line == f"serene-switch: P4Runtime on {switch.address}, device 7, ports 1@udp:{udp} 2@lo"
        with switch.controller() as controller:
            stream, pid = controller.primary().messages, switch.process.pid
            threads = {int(name) for name in os.listdir(f"/proc/{pid}/task")} - {pid}
            assert ctypes.CDLL(None, use_errno=True).tgkill(pid, max(threads), signal.SIGTERM) == 0
            assert switch.process.wait(PATIENCE_S) == 0
            assert switch.lines == [switch.ready_line]
            assert stream.done.wait(PATIENCE_S)


def test_simple_switch_grpc_flags_are_accepted(tmp_path: Path) -> None:
    """Also in forms without blanks. Thrift, which does not exist here, is mentioned."""
    udp, thrift = some_port(socket.SOCK_DGRAM), some_port()
    arguments = ["--no-p4", "--device-id=7", f"-i1@udp:{udp}", "--thrift-port", str(thrift), "-L", "info"]
    with Running(tmp_path, *arguments, further=("--drop-port=510",)) as switch:
        assert any("Thrift" in line for line in switch.lines)
        with socket.create_connection(("127.0.0.1", thrift), timeout=PATIENCE_S) as client:
            assert client.recv(1) == b""  # p4-utils waits for the port to be open; who speaks Thrift sees an end
        with switch.controller() as controller:
            assert controller.primary().send(Probe(b=4)).b == 4


def help_of_simple_switch_grpc() -> tuple[list[tuple[str, bool]], list[tuple[str, bool]]]:
    """Its options before and after the ``--``, and whether each takes a value."""
    done = subprocess.run(["simple_switch_grpc", "--help"], capture_output=True, text=True, timeout=60, check=False)
    own, _, target = (done.stdout + done.stderr).partition("Target options:")
    found = [re.findall(r"^  (?:-\w \[ )?(--[\w-]+)(?: \])?( \[?=?\(?arg| arg)?", part, re.M) for part in (own, target)]
    return tuple([(name, bool(value)) for name, value in part] for part in found)  # type: ignore[return-value]


@pytest.mark.bmv2
@pytest.mark.skipif(shutil.which("simple_switch_grpc") is None, reason="needs simple_switch_grpc")
def test_every_option_of_simple_switch_grpc_is_accepted(tmp_path: Path) -> None:
    """An option without effect here is reported, one line each."""
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
    messages = "\n".join(left_out(options, further))
    done = {
        "--interface", "--pcap", "--device-id", "--log-console", "--log-file", "--log-level", "--log-flush",
        "--log-file-max-size", "--log-file-max-files", "--dump-packet-data", "--no-p4", "--grpc-server-addr",
        "--grpc-server-ssl", "--grpc-server-cacert", "--grpc-server-cert", "--grpc-server-key",
        "--grpc-server-with-client-auth", "--cpu-port", "--drop-port",
    }  # fmt: skip
    for name, _ in (*own, *target):
        assert name in once | done or f"{name}: " in messages, name


def test_switch_cli_logs_to_the_given_log_file(tmp_path: Path) -> None:
    arguments = ["--no-p4", "--nanolog", "ipc:///tmp/x.ipc", "--log-file", str(tmp_path / "log"), "-L", "info"]
    with Running(tmp_path, *arguments, further=("--priority-queues", "8")) as switch:
        assert switch.lines == [switch.ready_line]
        text = (tmp_path / "log.txt").read_text()
        assert "--nanolog: there is no nanomsg log" in text and "--priority-queues: there are no queues" in text


def test_ports_survive_a_change_of_program(tmp_path: Path, hosts: Hosts) -> None:
    """The processes at them continue. One UDP port learns its peer from the first frame; ports 3 and 4 are shared
    memory."""
    places = [tmp_path / "ports" / f"port{number}" for number in (3, 4)]
    places[0].parent.mkdir()
    shared = [f"-i{number}@shm:{path}" for number, path in enumerate(places, 3)]
    ports = [f"-i1@udp:{hosts.local[0]}", hosts.arguments[1], *shared]
    with Running(tmp_path, "--no-p4", *ports) as switch:
        assert switch.ready_line.endswith(f" 3@shm:{places[0]} 4@shm:{places[1]}")
        with switch.controller() as controller, contextlib.ExitStack() as stack:
            controller.primary()  # only a program has ports
            ends = [stack.enter_context(contextlib.closing(SharedMemory(path))) for path in places]

            def passed() -> list[bytes]:
                ends[0].send_rows(np.frombuffer(Probe(a=1, port=4).frame(), np.uint8)[None, :])
                return [row.tobytes() for row in ends[1].receive_rows(0.1)[0]]

            for value in (1, 2):
                controller.push()
                controller.insert(controller.scoped(1, value))
                assert Probe.parse(hosts.send(1, a=1)).by_scoped == value
                assert Probe.parse(hosts.send(2, a=1)).by_scoped == value
                hosts.emit(Probe(a=1, port=255).frame())
                assert controller.messages.receive("packet").metadata[0].value == b"\x01"
                assert Probe.parse(until(passed, "a frame passes")[-1]).by_scoped == value
        assert switch.ended() == []
    assert not list(places[0].parent.iterdir())


# -- bad input ------------------------------------------------------------------------------------------------

REFUSALS = Path(__file__).with_name("switch_refusals.txt")


def test_switch_cli_reports_bad_input_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "other.json").write_text('{"a": 1}')
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.bind(("127.0.0.1", 0))
        named = {
            "json": JSON, "p4info": P4INFO, "tmp": tmp_path, "long": "x" * 107,
            "grpc": "--grpc-server-addr 127.0.0.1:0",
            "tcp": f"127.0.0.1:{tcp.getsockname()[1]}", "udp": udp.getsockname()[1],
        }  # fmt: skip
        for status, arguments, words in rows(REFUSALS):
            code = ended_with(arguments.format(**named).split(), monkeypatch, capsys, words.format(**named))
            assert status.startswith(f"exit status {code}:"), arguments
    if os.geteuid() == 0:  # the choices
        assert ended_with(["--no-p4", "-i", "1@nowhere0"], monkeypatch, capsys, "lo") == 1
    for name, value in (("PATH", str(tmp_path)), ("CC", ""), ("XDG_CACHE_HOME", str(tmp_path))):
        monkeypatch.setenv(name, value)
    given = [str(JSON), "--", "--grpc-server-addr", "127.0.0.1:0"]
    assert ended_with(given, monkeypatch, capsys, "C compiler") == 1


def ended_with(
    given: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: str
) -> int:
    """Returns the exit code of a ``serene-switch`` that fails to start with this message."""
    monkeypatch.setattr(sys, "argv", ["serene-switch", *given])
    with pytest.raises(SystemExit) as ended:
        sys.exit(main())
    message = capsys.readouterr().err
    assert message.splitlines()[-1].startswith("error: "), message
    assert words in message and "Traceback" not in message, message
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_switch_without_permission_for_interfaces_reports_it() -> None:
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("needs root and setpriv, to give CAP_NET_RAW away")
    done = subprocess.run(
        ["setpriv", "--bounding-set=-net_raw", *COMMAND, "--no-p4", "-i", "1@lo"],
        capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == "error: no permission to open 'lo': run as root, or use udp: ports\n"


def test_interrupt_while_compiling_leaves_nothing_behind(tmp_path: Path) -> None:
    """No partial output stays in the cache, and no traceback is printed."""
    Switch.load(JSON).close()  # it compiles at all
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        scratch.chmod(0o755)  # the compiler runs as somebody else
        process = subprocess.Popen(
            [*COMMAND, str(JSON), "--", "--grpc-server-addr", "127.0.0.1:0"], stderr=subprocess.PIPE, text=True,
            env=os.environ | {"XDG_CACHE_HOME": str(tmp_path), "TMPDIR": name},
        )  # fmt: skip
        until(lambda: any(scratch.glob("*/wide.h")), "it compiles")
        process.send_signal(signal.SIGINT)
        _, message = process.communicate(timeout=PATIENCE_S)
        assert (process.returncode, message) == (130, "")
        assert not any(scratch.iterdir())
    assert not any(path.is_file() for path in tmp_path.rglob("*"))  # it may have been stopped before it made the folder


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completion_lists_the_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = {}
    for option in ("--show-completion", "--version", "--json-version", "--help"):
        monkeypatch.setattr(sys, "argv", ["serene-switch", option])
        with pytest.raises(SystemExit) as ended:
            sys.exit(main())
        shown[option] = capsys.readouterr().out
        assert not ended.value.code and shown[option]
    for flag in ("--interface", "--no-p4", "--device-id", "--log-level", "--grpc-server-addr", "--cpu-port", "udp:"):
        assert flag in shown["--help"]
    (tmp_path / "script").write_text(shown["--show-completion"])
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


@pytest.mark.parametrize("option", ["--trace", "--log-console", "--log-file"])
def test_packet_log_on_a_full_disk_ends_with_one_line(tmp_path: Path, hosts: Hosts, option: str) -> None:
    (tmp_path / "log.txt").symlink_to("/dev/full")
    given = [option, str(tmp_path / "log")] if option == "--log-file" else [option]
    command = [*COMMAND, *given, *hosts.arguments, str(JSON), "--", "--grpc-server-addr", "127.0.0.1:0"]
    log = tmp_path / "errors"
    with log.open("w") as errors, open("/dev/full", "w") as full:
        switch = subprocess.Popen(command, stdout=full, stderr=errors)
    try:
        until(lambda: "serene-switch: " in log.read_text(), "it is ready")
        for _ in range(3):
            hosts.send(b=2)
        until(lambda: "No space left on device" in log.read_text(), "it reports it")
        hosts.send(b=2)
    finally:
        switch.terminate()
        assert switch.wait(PATIENCE_S) == 0
    lines = log.read_text().splitlines()
    assert len(lines) == 2 and lines[0].startswith("serene-switch: ") and lines[1].startswith("cannot "), lines
