"""``serene-switch``: the embedded switch as a process, a replacement for simple_switch_grpc."""

from __future__ import annotations

import argparse
import contextlib
import logging
import logging.handlers
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import grpc

from serene.arguments import command
from serene.distribution import version
from serene.embedded.command.options import LOG_LEVELS, left_out, parse
from serene.embedded.command.packet_log import PacketPrinter
from serene.embedded.command.thrift import ClosingListener
from serene.embedded.engine import Switch
from serene.embedded.p4runtime.ports import InterfacePort
from serene.embedded.p4runtime.service import P4RuntimeServer
from serene.embedded.program.loading import read_program
from serene.errors import BadUsage
from serene.process.at_exit import leave_garbage
from serene.process.interrupts import Interrupted, coming, ended, held
from serene.slots import NotBySlot, resized

JSON_VERSION = "2.24"  # of BMv2 1.15, which p4c writes at present
log = logging.getLogger("serene.switch")


def run(arguments: Sequence[str]) -> None:
    options, target = parse(arguments)
    if options.version or options.json_version:
        print(JSON_VERSION if options.json_version else version())
        return
    _log_to(options)
    for line in left_out(options, target):
        log.warning("%s", line)

    if options.join_udp:
        options.interface = [
            replace(port, join_udp=True) if isinstance(port, InterfacePort) else port for port in options.interface
        ]
    for port in options.interface:
        port.check()  # reports a missing interface now rather than when a program is pushed
    credentials = _credentials(target)
    program = _program(options)
    server = P4RuntimeServer(
        options.interface,
        address=target.grpc_server_addr,
        device_id=options.device_id,
        cpu_port=target.cpu_port,
        drop_port=target.drop_port,
        credentials=credentials,
        captures=Path(options.pcap) if options.pcap is not None else None,
        crcs=options.crc,
    )
    printing = PacketPrinter.wanted(options)
    if printing is not None:
        server.observe(printing.watcher)
    with contextlib.ExitStack() as stack:
        if printing is not None:
            stack.enter_context(printing)
        # Before the program is compiled, because the process that started this one waits for the port.
        stack.enter_context(server)
        if options.thrift_port is not None:
            stack.enter_context(ClosingListener(options.thrift_port))
        if program is not None:
            switch = Switch.load(program, cpu_port=target.cpu_port, drop_port=target.drop_port)
            for calculation, crc in options.crc:
                switch.crc_set(calculation, crc)
            server.run(switch)
        ports = " ".join(str(port) for port in options.interface) or "none"
        host = target.grpc_server_addr.rpartition(":")[0]
        with contextlib.suppress(Interrupted), held():
            stopped = coming()
            print(
                f"serene-switch: P4Runtime on {host}:{server.port}, device {options.device_id}, ports {ports}",
                file=sys.stderr,
                flush=True,
            )
            os.read(stopped, 1)


def _log_to(options: argparse.Namespace) -> None:
    """Logs to the same place as simple_switch_grpc. Messages that simple_switch_grpc does not have go to standard
    error."""
    handlers: list[logging.Handler] = []
    if options.log_console:
        handlers.append(logging.StreamHandler(sys.stdout))
    if options.log_file:
        path = f"{options.log_file}.txt"  # as simple_switch_grpc does
        try:
            handlers.append(
                logging.handlers.RotatingFileHandler(
                    path, maxBytes=options.log_file_max_size, backupCount=options.log_file_max_files
                )
            )
        except OSError as error:
            raise BadUsage(f"--log-file: cannot write {path}: {error.strerror}") from None
    for handler in handlers:
        handler.handleError = partial(_end_log, handler)  # type: ignore[method-assign]
    logging.basicConfig(
        level=LOG_LEVELS[options.log_level],
        format="%(asctime)s %(name)s %(levelname)s %(message)s",
        handlers=handlers or [logging.StreamHandler(sys.stderr)],
    )


def _end_log(handler: logging.Handler, _: logging.LogRecord) -> None:
    """Ends a log that cannot be written, as on a full disk: otherwise each packet would print a traceback."""
    if handler not in (root := logging.getLogger()).handlers:
        return  # another thread has ended it already
    root.removeHandler(handler)
    where = getattr(handler, "baseFilename", "standard output")
    with contextlib.suppress(OSError):
        print(f"cannot write the log to {where}: {sys.exc_info()[1]}; it ends here", file=sys.stderr, flush=True)


def _program(options: argparse.Namespace) -> str | bytes | None:
    """The program to run at once; None: a controller will push it."""
    if options.slots is None or not options.json:
        return options.json or None
    try:
        return resized(read_program(options.json)[1], options.slots)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise BadUsage(f"--slots: {options.json} is not what p4c writes for BMv2 ({error})") from None
    except NotBySlot as error:
        raise BadUsage(f"--slots: {error}") from None


def _credentials(target: argparse.Namespace) -> grpc.ServerCredentials | None:
    """The server's credentials; None: no encryption."""
    if not target.grpc_server_ssl:
        return None
    paths = (target.grpc_server_key, target.grpc_server_cert, target.grpc_server_cacert)
    try:
        key, certificate, authority = (Path(path).read_bytes() if path else None for path in paths)
    except OSError as error:
        raise BadUsage(f"cannot read {error.filename}: {error.strerror}; expected a PEM file") from None
    return grpc.ssl_server_credentials([(key, certificate)], authority, bool(target.grpc_server_with_client_auth))


@command
def main() -> None:
    leave_garbage()
    run(sys.argv[1:])


if __name__ == "__main__":
    raise SystemExit(ended(main))
