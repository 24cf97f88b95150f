"""``serene-switch``: the embedded switch as a process, with simple_switch_grpc's usual flags."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from serene.at_exit import leave_garbage
from serene.errors import SereneError, choices
from serene.signals import ending_signals
from serene.switch.engine import LONGEST_PATH, MAX_PORTS, Switch
from serene.switch.p4runtime.ports import InterfacePort, Port, ShmPort, UdpPort
from serene.switch.p4runtime.service import P4RuntimeServer

LOG_LEVELS = {
    "trace": logging.DEBUG,
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "error": logging.ERROR,
    "off": logging.CRITICAL + 1,
}
log = logging.getLogger("serene.switch")


def parse_port(text: str) -> Port:
    """``1@s1-eth1``; ``1@udp:50001[:50002]`` for UDP datagrams on loopback (local port, then the peer's); or
    ``1@shm:/run/port1`` for memory shared with a process."""
    number, at, target = text.partition("@")
    try:
        port = int(number)
        if not at or not target or not 0 <= port < MAX_PORTS:
            raise ValueError
        if target.startswith("shm:"):
            path = Path(target.removeprefix("shm:"))
            if not path.is_absolute() or len(os.fsencode(path)) > LONGEST_PATH:
                raise ValueError
            return ShmPort(port, path)
        if not target.startswith("udp:"):
            return InterfacePort(port, target)
        sockets = [int(part) for part in target.split(":")[1:]]
        if not 1 <= len(sockets) <= 2 or not all(0 < socket < 65536 for socket in sockets):
            raise ValueError
        return UdpPort(port, *sockets)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a port; expected PORT@INTERFACE, PORT@udp:LOCAL[:PEER] or PORT@shm:/PATH (at most "
            f"{LONGEST_PATH} bytes), PORT 0 to {MAX_PORTS - 1}"
        ) from None


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> None:  # type: ignore[override]
        print(f"error: {message}\n{self.format_usage().strip()}", file=sys.stderr)
        raise SystemExit(2)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="serene-switch",
        description="A P4 switch that runs what p4c wrote for BMv2 (v1model), behind P4Runtime.",
        epilog="After a lone --, as in simple_switch_grpc: --grpc-server-addr HOST:PORT, --cpu-port N, --drop-port N.",
    )
    parser.add_argument("json", nargs="?", help="a program to run at once; else a controller pushes one")
    parser.add_argument(
        "-i", "--interface", action="append", type=parse_port, default=[], metavar="PORT@INTERFACE",
        help="attach an interface, PORT@udp:LOCAL[:PEER] for UDP on loopback, or PORT@shm:/PATH for memory shared "
        "with a process; repeatable",
    )  # fmt: skip
    parser.add_argument(
        "--join-udp", action="store_true",
        help="hand runs of equal UDP packets to the kernel as one buffer, which it cuts again: far fewer calls",
    )  # fmt: skip
    parser.add_argument("--no-p4", action="store_true", help="start without a program")
    parser.add_argument("--device-id", type=int, default=0, help="P4Runtime device id (default 0)")
    parser.add_argument("-L", "--log-level", choices=LOG_LEVELS, default="info")
    parser.add_argument("--log-console", action="store_true", help="accepted; the log always goes to stderr")
    parser.add_argument("--thrift-port", type=int, help="accepted; there is no Thrift server here")
    return parser


def _target_parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="serene-switch ... --", add_help=False)
    parser.add_argument("--grpc-server-addr", default="127.0.0.1:9559", metavar="HOST:PORT")
    parser.add_argument("--cpu-port", type=int)
    parser.add_argument("--drop-port", type=int, default=511)
    return parser


def _split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    if "--" not in arguments:
        return list(arguments), []
    at = list(arguments).index("--")
    return list(arguments[:at]), list(arguments[at + 1 :])


def run(arguments: Sequence[str]) -> None:
    own, further = _split(arguments)
    options, target = _parser().parse_args(own), _target_parser().parse_args(further)
    _check(options, target)
    logging.basicConfig(
        level=LOG_LEVELS[options.log_level], format="%(asctime)s %(name)s %(levelname)s %(message)s", stream=sys.stderr
    )
    if options.thrift_port is not None:
        log.info("there is no Thrift server here: --thrift-port is ignored")

    if options.join_udp:
        options.interface = [
            replace(port, join_udp=True) if isinstance(port, InterfacePort) else port for port in options.interface
        ]
    for port in options.interface:
        port.check()  # a missing interface is reported now, not when a program is pushed
    program = None
    if options.json:
        program = Switch.load(options.json, cpu_port=target.cpu_port, drop_port=target.drop_port)
    server = P4RuntimeServer(
        options.interface,
        address=target.grpc_server_addr,
        device_id=options.device_id,
        cpu_port=target.cpu_port,
        drop_port=target.drop_port,
        program=program,
    )
    stopped = ending_signals()
    with server:
        ports = " ".join(str(port) for port in options.interface) or "none"
        host = target.grpc_server_addr.rpartition(":")[0]
        print(
            f"serene-switch: P4Runtime on {host}:{server.port}, device {options.device_id}, ports {ports}",
            file=sys.stderr,
            flush=True,
        )
        os.read(stopped, 1)


def _check(options: argparse.Namespace, target: argparse.Namespace) -> None:
    if options.json and options.no_p4:
        raise _Usage("give a program or --no-p4, not both")
    if not options.json and not options.no_p4:
        raise _Usage("give a program (BMv2's JSON), or --no-p4 to wait for a controller to push one")
    if not 0 <= options.device_id < 1 << 64:
        raise _Usage(f"--device-id {options.device_id}: expected 0 to {(1 << 64) - 1}")
    host, _, grpc_port = target.grpc_server_addr.rpartition(":")
    if not host or not grpc_port.isdecimal() or int(grpc_port) > 65535:
        raise _Usage(f"--grpc-server-addr {target.grpc_server_addr!r}: expected HOST:PORT, PORT 0 (any) to 65535")
    for what, number in (("--cpu-port", target.cpu_port), ("--drop-port", target.drop_port)):
        if number is not None and not 0 < number < MAX_PORTS:
            raise _Usage(f"{what} {number}: expected 1 to {MAX_PORTS - 1}")
    if target.cpu_port == target.drop_port:
        raise _Usage(f"--cpu-port and --drop-port are both {target.cpu_port}; choose two ports")
    numbers = [port.number for port in options.interface]
    sockets = [port.local for port in options.interface if isinstance(port, UdpPort)]
    paths = [str(port.path) for port in options.interface if isinstance(port, ShmPort)]
    given: tuple[tuple[str, list[Any]], ...] = (("port", numbers), ("UDP port", sockets), ("path", paths))
    for what, values in given:
        twice = sorted({value for value in values if values.count(value) > 1})
        if twice:
            raise _Usage(f"{what} {choices(twice)} is given twice")
    for what, number in (("CPU port", target.cpu_port), ("drop port", target.drop_port)):
        if number in numbers:
            raise _Usage(f"port {number} is the {what}: it leads to no interface")


class _Usage(SereneError):
    pass


def main() -> None:
    leave_garbage()
    try:
        run(sys.argv[1:])
    except _Usage as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except SereneError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(1) from None
    except KeyboardInterrupt:  # before the switch was ready
        raise SystemExit(130) from None


if __name__ == "__main__":
    main()
