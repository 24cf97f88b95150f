"""Writes the trace of every packet to the log of ``serene-switch``, or prints it."""

from __future__ import annotations

import argparse
import logging
import sys
import threading
from collections.abc import Callable
from types import TracebackType

from serene.embedded.p4runtime.observers import Watcher
from serene.embedded.trace.steps import Step
from serene.embedded.trace.text import lines

POLL_S = 0.2
PACKET_LEVELS = ("trace", "debug")  # the log levels at which simple_switch_grpc logs packets
log = logging.getLogger("serene.switch.packets")


class PacketPrinter:
    """Prints a watcher's packets, in a separate thread."""

    def __init__(self, write: Callable[[str], None], show: Callable[[Step], bool], bytes_kept: int) -> None:
        self.watcher = Watcher(None, bytes_kept)
        self._write = write
        self._show = show
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="packet-log", daemon=True)

    @classmethod
    def wanted(cls, options: argparse.Namespace) -> PacketPrinter | None:
        """The printer for these options; None if packets are not printed. With only --dump-packet-data, it logs only
        their bytes."""
        logs_packets = options.log_level in PACKET_LEVELS
        if not (options.trace or logs_packets or (options.dump_packet_data and options.log_level == "info")):
            return None

        def write(line: str) -> None:
            if options.trace:
                print(line, flush=True)
            elif logs_packets:
                log.debug("%s", line)
            else:
                log.info("%s", line)

        only_bytes = not options.trace and not logs_packets
        return cls(
            write, (lambda step: step.kind == "bytes") if only_bytes else (lambda step: True), options.dump_packet_data
        )

    def __enter__(self) -> PacketPrinter:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Prints what has been traced so far, then ends."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            while True:
                ending = self._stopping.is_set()
                batch = self.watcher.take(0 if ending else POLL_S)
                if batch.lost:
                    self._write(f"{batch.lost} packets were not traced: they arrived too fast")
                for packet in batch.packets:
                    for line in lines(packet, self._show):
                        self._write(line)
                if ending and not batch.packets:
                    return
        except BrokenPipeError:
            sys.stderr.write("the reader of the output has closed it: packets are no longer printed\n")
        except OSError as error:
            sys.stderr.write(f"cannot print packets: {error.strerror}; they are no longer printed\n")
