"""``serene-switch``'s command line. It accepts every option of ``simple_switch_grpc``.

If an option is given that has no effect here, a line is printed that names the missing part.
"""

from __future__ import annotations

import argparse
import logging
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from serene.arguments import Parser, usage
from serene.embedded.command.completion import script
from serene.embedded.control.loaded import MAX_PORTS
from serene.embedded.engine import LONGEST_PATH
from serene.embedded.p4runtime.ports import InterfacePort, Port, ShmPort, UdpPort
from serene.embedded.program.crcs import USAGE as CRC_USAGE
from serene.embedded.program.crcs import parse_crc
from serene.errors import BadUsage, choices

LOG_LEVELS = {
    "trace": logging.DEBUG,
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "error": logging.ERROR,
    "off": logging.CRITICAL + 1,
}
MOST_DUMPED_BYTES = 1 << 16

# simple_switch_grpc's options that have no effect here, and the missing part.
LEFT_OUT = {
    "--use-files": "packets come from and go to ports only, not files",
    "--packet-in": "packets come from the ports of -i; there is no nanomsg socket",
    "--nanolog": "there is no nanomsg log; --log-console or --trace log packets",
    "--notifications-addr": "there are no nanomsg notifications; digests go to the P4Runtime controller",
    "--restore-state": "the switch begins without state",
    "--max-port-count": f"ports are 0 to {MAX_PORTS - 1}",
    "--debugger-addr": "there is no debugger; --trace shows how a packet is processed",
    "--debugger": "there is no debugger; --trace shows how a packet is processed",
    "--enable-swap": "a controller may always push a new program",
}
TARGET_LEFT_OUT = {
    "--load-modules": "no modules are loaded; programs with extern instances are refused",
    "--dp-grpc-server-addr": "packets are not injected over gRPC; use ports PORT@udp: or PORT@shm:",
    "--priority-queues": "there are no queues, so no priorities",
    "--max-mc-groups": "there are 65535 multicast groups",
    "--max-l1-entries": "a group may have 32768 replicas",
    "--max-l2-entries": "a group may have 32768 replicas",
    "--disable-swap": "a controller may still push a new program",
}
WITHOUT_VALUE = ("--debugger", "--enable-swap", "--disable-swap")


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


class _ShowCompletion(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        print(script(*parsers()), end="")
        parser.exit()


def _add_left_out(parser: Parser, options: dict[str, str]) -> None:
    group = parser.add_argument_group("accepted without effect; the log names the missing part")
    for option, missing in options.items():
        if option in WITHOUT_VALUE:
            group.add_argument(option, action="store_true", help=missing)
        else:
            group.add_argument(option, metavar="ARG", help=missing)


def _parser() -> Parser:
    parser = Parser(
        "A P4Runtime switch that runs p4c's v1model programs, compiled for BMv2.",
        usage="serene-switch [-i PORT@INTERFACE ...] [options] [program.json | --no-p4] [-- target options]",
        epilog="After a lone --, as in simple_switch_grpc: --grpc-server-addr HOST:PORT, --cpu-port N, --drop-port N, "
        "and others (serene-switch -- --help).",
    )
    add = parser.add_argument
    add("json", nargs="?", help="program to load at start; without one, a controller pushes it")
    add("-i", "--interface", action="append", type=parse_port, default=[], metavar="PORT@INTERFACE",
        help="attach an interface, PORT@udp:LOCAL[:PEER] for UDP on loopback, or PORT@shm:/PATH for memory shared "
        "with a process; repeatable")  # fmt: skip
    add("--join-udp", action="store_true",
        help="pass runs of equal UDP packets to the kernel as one buffer (segmentation offload)")  # fmt: skip
    add("--crc", action="append", type=parse_crc, default=[], metavar=CRC_USAGE,
        help="CRC parameters of a crc16_custom or crc32_custom calculation, named as in the JSON. With a "
        "polynomial alone, other parameters have BMv2's defaults; repeatable")  # fmt: skip
    add("--slots", type=int, metavar="N",
        help="slots of a Serene program given here; for a pushed program use the controller's --slots")  # fmt: skip
    add("--no-p4", action="store_true", help="start without a program")
    add("--device-id", type=int, default=0, help="P4Runtime device id (default 0)")
    add("--thrift-port", type=int, metavar="N",
        help="open this port for scripts that wait for it; connections are closed (no Thrift server)")  # fmt: skip
    add("-v", "--version", action="store_true", help="print the version")
    add("--json-version", action="store_true", help="print the newest supported version of BMv2's JSON")
    add("--show-completion", action=_ShowCompletion, nargs=0, help="print the bash completion script")
    _add_left_out(parser, LEFT_OUT)
    log = parser.add_argument_group("log")
    log.add_argument("-L", "--log-level", choices=LOG_LEVELS, help="default: trace with --log-console or --log-file "
                     "(every packet), else info")  # fmt: skip
    log.add_argument("--log-console", action="store_true", help="log every packet to standard output")
    log.add_argument("--log-file", metavar="FILE", help="log every packet to FILE.txt")
    log.add_argument("--log-flush", action="store_true", help="accepted; lines are always flushed")
    log.add_argument(
        "--log-file-max-size",
        type=int,
        default=5 << 20,
        metavar="BYTES",
        help="size of a log file; then a new file begins",
    )
    log.add_argument("--log-file-max-files", type=int, default=3, metavar="N", help="number of old log files to keep")
    log.add_argument(
        "--dump-packet-data",
        type=int,
        default=0,
        metavar="BYTES",
        help="log the first N bytes of every packet received or sent",
    )
    log.add_argument("--trace", action="store_true", help="print a trace of every packet to standard output")
    log.add_argument("--pcap", nargs="?", const=".", metavar="DIR",
                     help="capture each port's packets in DIR/NAME_in.pcap and NAME_out.pcap")  # fmt: skip
    return parser


def _target_parser() -> Parser:
    parser = Parser("", prog="serene-switch --")
    add = parser.add_argument
    add("--grpc-server-addr", default="127.0.0.1:9559", metavar="HOST:PORT", help="default 127.0.0.1:9559")
    add("--grpc-server-ssl", action="store_true", help="TLS; takes --grpc-server-cert and --grpc-server-key")
    add("--grpc-server-cacert", metavar="FILE", help="certificate authority (PEM) for clients' certificates")
    add("--grpc-server-cert", metavar="FILE", help="the server's certificate")
    add("--grpc-server-key", metavar="FILE", help="the key of --grpc-server-cert")
    add("--grpc-server-with-client-auth", action="store_true", help="clients need a certificate")
    add("--cpu-port", type=int, metavar="N", help="the controller's port, for packet-in and packet-out")
    add("--drop-port", type=int, default=511, metavar="N", help="port whose packets are dropped (default 511)")
    _add_left_out(parser, TARGET_LEFT_OUT)
    return parser


def parsers() -> tuple[Parser, Parser]:
    """The parsers for the options before and after the ``--``."""
    return _parser(), _target_parser()


def _split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    if "--" not in arguments:
        return list(arguments), []
    at = list(arguments).index("--")
    return list(arguments[:at]), list(arguments[at + 1 :])


def parse(arguments: Sequence[str]) -> tuple[argparse.Namespace, argparse.Namespace]:
    """Parses and checks the options before and after the ``--``. Raises BadUsage."""
    own, further = _split(arguments)
    before, after = parsers()
    with usage():
        options, target = before.parse_args(own), after.parse_args(further)
    if options.version or options.json_version:
        return options, target
    if options.log_level is None:
        options.log_level = "trace" if options.log_console or options.log_file else "info"
    _check_program(options)
    _check_log(options)
    _check_target(target)
    _check_ports(options, target)
    return options, target


def left_out(options: argparse.Namespace, target: argparse.Namespace) -> Iterator[str]:
    """A line for each option given that has no effect here."""
    for given, table in ((options, LEFT_OUT), (target, TARGET_LEFT_OUT)):
        for option, missing in table.items():
            if getattr(given, option.removeprefix("--").replace("-", "_")):
                yield f"{option}: {missing}"
    if options.thrift_port is not None:
        yield f"--thrift-port: there is no Thrift server; port {options.thrift_port} closes every connection"


def _check_program(options: argparse.Namespace) -> None:
    if options.json and options.no_p4:
        raise BadUsage("give a program or --no-p4, not both")
    if not options.json and not options.no_p4:
        raise BadUsage("give a program (BMv2's JSON), or --no-p4 to wait for a controller to push one")
    if not 0 <= options.device_id < 1 << 64:
        raise BadUsage(f"--device-id {options.device_id}: expected 0 to {(1 << 64) - 1}")
    if options.thrift_port is not None and not 0 < options.thrift_port < 65536:
        raise BadUsage(f"--thrift-port {options.thrift_port}: expected 1 to 65535")


def _check_log(options: argparse.Namespace) -> None:
    if options.pcap is not None and not (Path(options.pcap).is_dir() and os.access(options.pcap, os.W_OK | os.X_OK)):
        raise BadUsage(f"--pcap {options.pcap}: expected a directory that exists and can be written")
    if not 0 <= options.dump_packet_data <= MOST_DUMPED_BYTES:
        raise BadUsage(f"--dump-packet-data {options.dump_packet_data}: expected 0 to {MOST_DUMPED_BYTES}")
    for option in ("log_file_max_size", "log_file_max_files"):
        if getattr(options, option) < 1:
            raise BadUsage(f"--{option.replace('_', '-')} {getattr(options, option)}: expected 1 or more")


def _check_target(target: argparse.Namespace) -> None:
    host, _, grpc_port = target.grpc_server_addr.rpartition(":")
    if not host or not grpc_port.isdecimal() or len(grpc_port) > 5 or int(grpc_port) > 65535:
        raise BadUsage(f"--grpc-server-addr {target.grpc_server_addr!r}: expected HOST:PORT, PORT 0 (any) to 65535")
    for what, number in (("--cpu-port", target.cpu_port), ("--drop-port", target.drop_port)):
        if number is not None and not 0 < number < MAX_PORTS:
            raise BadUsage(f"{what} {number}: expected 1 to {MAX_PORTS - 1}")
    if target.cpu_port == target.drop_port:
        raise BadUsage(f"--cpu-port and --drop-port are both {target.cpu_port}; choose two ports")
    if target.grpc_server_ssl and not (target.grpc_server_cert and target.grpc_server_key):
        raise BadUsage("--grpc-server-ssl: expected --grpc-server-cert FILE and --grpc-server-key FILE with it")
    further = (target.grpc_server_cacert, target.grpc_server_cert, target.grpc_server_key)
    if not target.grpc_server_ssl and (any(further) or target.grpc_server_with_client_auth):
        raise BadUsage("certificates need --grpc-server-ssl: without it the server would not encrypt")
    if target.grpc_server_with_client_auth and not target.grpc_server_cacert:
        raise BadUsage("--grpc-server-with-client-auth: expected --grpc-server-cacert FILE to check them against")


def _check_ports(options: argparse.Namespace, target: argparse.Namespace) -> None:
    numbers = [port.number for port in options.interface]
    sockets = [port.local for port in options.interface if isinstance(port, UdpPort)]
    paths = [str(port.path) for port in options.interface if isinstance(port, ShmPort)]
    given: tuple[tuple[str, list[Any]], ...] = (("port", numbers), ("UDP port", sockets), ("path", paths))
    for what, values in given:
        twice = sorted({value for value in values if values.count(value) > 1})
        if twice:
            raise BadUsage(f"{what} {choices(twice)} is given twice")
    looped = [port for port in options.interface if isinstance(port, UdpPort) and port.peer in sockets]
    if looped:
        raise BadUsage(f"UDP port {looped[0].peer} is a peer and the switch's own: its packets would loop for ever")
    for what, number in (("CPU port", target.cpu_port), ("drop port", target.drop_port)):
        if number in numbers:
            raise BadUsage(f"port {number} is the {what}: it leads to no interface")
