"""A worker's command line: its options, their checks, and the transport that they select."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from serene.arguments import Parser
from serene.client import FrameTransport, Transport, UdpTransport
from serene.errors import SereneError
from serene.racks import MAX_RACKS, RACK_WORKERS, Racks
from serene.settings import BadSetting, add_options, checked, expect, option
from serene.wire import SWITCH_IP
from serene.workers import packets, stragglers
from serene.workers.recipe import Recipe, check_exchange

FIRST_EPHEMERAL_PORT = 49152  # RFC 6335


def _two_ports(text: str) -> tuple[tuple[str, int] | int, tuple[str, int]]:
    """Two ends: the worker's, an address or an inherited file descriptor; and the switch's address."""
    given = re.fullmatch(r"(fd)?(\d+):(\d+)", text)
    if given:
        inherited, local, switch = bool(given[1]), int(given[2]), int(given[3])
        if 0 < switch < 65536 and (inherited or 0 < local < 65536):
            return local if inherited else ("127.0.0.1", local), ("127.0.0.1", switch)
    raise ValueError("expected LOCAL:SWITCH, UDP ports (or fdN:SWITCH)")


def _rack_sizes(text: str) -> Racks:
    try:
        return Racks.of([int(size) for size in text.split(",")])
    except ValueError:
        raise ValueError("expected the workers in each rack, for example 2,2") from None
    except SereneError as error:
        raise ValueError(str(error)) from None


def _addresses(text: str) -> list[tuple[str, int]]:
    found = [re.fullmatch(r"([\w.-]+):(\d+)", part) for part in text.split(",")]
    if all(each and 0 < int(each[2]) < 65536 for each in found):
        return [(each[1], int(each[2])) for each in found if each]
    raise ValueError("expected ADDRESS:PORT for each server, with commas between them")


class Options(Recipe):
    """A worker's settings."""

    job: int = Field(default=0, ge=0, le=255, description="the job's id")
    worker: int = Field(description="this worker's number in the job, from 0")
    workers: int = Field(description="number of workers of the job")
    racks: Annotated[Racks | None, BeforeValidator(_rack_sizes)] = Field(
        default=None, description="workers in each rack, as 2,2; default: one switch"
    )
    switch_ip: str = Field(default=SWITCH_IP, description="the switch's IP address")
    frame_udp: Annotated[Any, BeforeValidator(_two_ports)] = Field(
        default=None,
        description="LOCAL:SWITCH, send frames inside UDP to a udp: port of serene-switch; LOCAL may be fdN, an "
        "inherited socket",
    )
    strategy: str = Field(default="bsp", description="strategy of a baseline (with a switch, the controller's applies)")
    servers: Annotated[tuple[tuple[str, int], ...], BeforeValidator(_addresses)] = Field(
        default=(), description="ADDRESS:PORT,... of a baseline's servers (gloo: worker 0's)"
    )
    join_timeout: float = Field(
        default=120, ge=0, le=10**6, description="seconds to wait until all workers have joined"
    )
    finish_timeout: float = Field(
        default=600, ge=0, le=10**6, description="seconds to wait at the end for other workers"
    )
    out: Path | None = Field(default=None, description="directory for this worker's results")
    out_else: Path | None = Field(default=None, description="directory for results if --out is not writable")

    @property
    def place(self) -> tuple[int | None, int]:
        """The worker's rack, and its number in the rack, which is its id in packets. The rack is None if the job has
        one switch."""
        return (None, self.worker) if self.racks is None else self.racks.place(self.worker)


def options() -> Options:
    """This process's options. Raises SereneError, which names the invalid option and what was expected."""
    parser = Parser("One worker of a training job.")
    add_options(parser, Options)
    given = checked(Options, vars(parser.parse_args()))
    check_exchange(given.exchange, given.strategy, given.workers)
    if given.exchange != "switch" and not given.servers:
        raise BadSetting(f"--exchange {given.exchange} needs --servers: expected ADDRESS:PORT,...")
    # Only the limits of packet fields are checked. The controller checks the limits of the switch's program.
    expect(option, "workers", given.workers, 1, MAX_RACKS * RACK_WORKERS if given.racks else RACK_WORKERS)
    if given.racks is not None and sum(given.racks.sizes) != given.workers:
        raise BadSetting(
            f"--racks {','.join(map(str, given.racks.sizes))}: expected {given.workers} workers, as --workers"
        )
    expect(option, "worker", given.worker, 0, given.workers - 1)
    stragglers.check_workers(stragglers.parse(given.straggler), given.workers)
    return given


def transport(options: Options) -> Transport:
    """The connection to the switch that --frame-udp selects, with the packet encoder that --packets names."""
    return packets.PACKETS[options.packets](_carrier(options))


def _carrier(options: Options) -> Transport:
    if options.frame_udp is None:
        return UdpTransport(options.switch_ip)
    local, switch = options.frame_udp
    return FrameTransport(
        options.worker,
        local=local,
        switch=switch,
        switch_ip=options.switch_ip,
        # Depends on the process id: a restarted worker has a new port, as if the kernel had chosen it.
        udp_port=FIRST_EPHEMERAL_PORT + os.getpid() % 16384,
    )
