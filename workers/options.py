"""A worker's command line: what may be asked of it, and how its packets reach the switch."""

from __future__ import annotations

import argparse
import math
import os
import re
from pathlib import Path

from serene.arguments import Parser
from serene.client import FrameTransport, Transport, UdpTransport
from serene.errors import SereneError, choices
from serene.racks import MAX_RACKS, RACK_WORKERS, Racks
from serene.strategy import parse
from serene.wire import HEADER, SWITCH_IP
from workers import architectures, data, packets, stragglers
from workers.baselines import EXCHANGES

FIRST_EPHEMERAL_PORT = 49152  # RFC 6335


def _two_ports(text: str) -> tuple[tuple[str, int] | int, tuple[str, int]]:
    given = re.fullmatch(r"(fd)?(\d+):(\d+)", text)
    if given:
        inherited, local, switch = bool(given[1]), int(given[2]), int(given[3])
        if 0 < switch < 65536 and (inherited or 0 < local < 65536):
            return local if inherited else ("127.0.0.1", local), ("127.0.0.1", switch)
    raise argparse.ArgumentTypeError(f"{text}: expected LOCAL:SWITCH, UDP ports (or fdN:SWITCH)")


def _sizes(text: str) -> Racks:
    try:
        return Racks.of([int(size) for size in text.split(",")])
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text}: expected the workers in each rack, for example 2,2") from None
    except SereneError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def place(options: argparse.Namespace) -> tuple[int | None, int]:
    """The rack, if there are several, and the worker's number in it, which is its number in packets."""
    return (None, options.worker) if options.racks is None else options.racks.place(options.worker)


def _addresses(text: str) -> list[tuple[str, int]]:
    found = [re.fullmatch(r"([\w.-]+):(\d+)", part) for part in text.split(",")]
    if all(each and 0 < int(each[2]) < 65536 for each in found):
        return [(each[1], int(each[2])) for each in found if each]
    raise argparse.ArgumentTypeError(f"{text}: expected ADDRESS:PORT, as many as there are servers")


def parser() -> argparse.ArgumentParser:
    result = Parser(prog="python -m workers.train", description="One worker of a training job.")
    add = result.add_argument
    add("--job", type=int, default=0)
    add("--worker", type=int, required=True, help="this worker's id, from 0")
    add("--workers", type=int, required=True, help="of the whole job")
    add("--racks", type=_sizes, default=None, metavar="2,2", help="workers in each rack, one rack after the other")
    add("--switch-ip", default=SWITCH_IP, help=f"where the switch answers (default {SWITCH_IP})")
    add(
        "--frame-udp",
        type=_two_ports,
        metavar="LOCAL:SWITCH",
        help="frames in UDP, to a udp: port of serene-switch; LOCAL may be fdN, an inherited socket",
    )
    add("--exchange", default="switch", help=f"{choices(EXCHANGES)}: what gradients go through (workers/baselines.py)")
    add("--strategy", default="bsp", help="of a baseline; through the switch the controller knows it")
    add("--servers", type=_addresses, default=[], metavar="ADDRESS:PORT,...", help="of a baseline: where it is")
    add("--packets", default="compiled", help=f"{choices(packets.PACKETS)}: what makes them")
    add("--model", default="mlp", help=choices(architectures.MODELS))
    add("--dataset", default="digits", help=choices(data.DATASETS))
    add("--data-dir", type=Path, default=None)
    add("--steps", type=int, default=200)
    add("--batch-size", type=int, default=32)
    add("--lr", type=float, default=None, help="learning rate (default: the model's own)")
    add("--seed", type=int, default=1)
    add("--straggler", default="none", help="a profile, as slow_worker:probability=0.3")
    add("--compute-ms", type=float, default=50, help="mean compute time of an iteration; 0: as fast as it goes")
    add("--eval-every", type=int, default=5, metavar="STEPS")
    add("--join-timeout", type=float, default=120, metavar="SECONDS")
    add("--finish-timeout", type=float, default=600, metavar="SECONDS", help="to wait for the others at the end")
    add("--out", type=Path, default=None, help="a directory for this worker's results")
    add("--out-else", type=Path, default=None, metavar="DIR", help="where they go if --out cannot be written to")
    return result


def check(options: argparse.Namespace) -> None:
    """Raises SereneError, naming the option and what was expected."""
    check_exchange(options.exchange, options.strategy, options.workers)
    packets.check_packets(options.packets)
    architectures.check_model(options.model)
    data.check_dataset(options.dataset)
    # What packets can say at all; which jobs and workers the switch's program has, the controller tells.
    racks = options.racks
    _expect(options, "workers", 1, MAX_RACKS * RACK_WORKERS if racks else RACK_WORKERS)
    if racks is not None and sum(racks.sizes) != options.workers:
        raise SereneError(
            f"--racks {','.join(map(str, racks.sizes))}: expected {options.workers} workers, as --workers"
        )
    _expect(options, "worker", 0, options.workers - 1)
    _expect(options, "job", 0, 256 ** HEADER["job"].itemsize - 1)
    for name in ("steps", "batch_size", "eval_every"):
        _expect(options, name, 1)
    for name in ("seed", "compute_ms", "join_timeout", "finish_timeout"):
        _expect(options, name, 0)
    if options.lr is not None and not 0 < options.lr < math.inf:
        raise SereneError(f"--lr {options.lr:g}: expected a number above 0")
    stragglers.check_workers(stragglers.parse(options.straggler), options.workers)


def check_exchange(exchange: str, strategy: str, workers: int) -> None:
    """Raises SereneError for a baseline that does not exist, or that cannot do this strategy."""
    if exchange not in EXCHANGES:
        raise SereneError(f"EXCHANGE={exchange}: expected {choices(EXCHANGES)}")
    if exchange != "switch":
        parse(strategy).compile(range(workers))
    if exchange == "gloo" and strategy != "bsp":
        raise SereneError(f"STRATEGY={strategy}: gloo's all-reduce is synchronous; expected bsp")


def _expect(options: argparse.Namespace, name: str, low: int, high: int | None = None) -> None:
    value = getattr(options, name)
    if not (math.isfinite(value) and low <= value <= (value if high is None else high)):
        wanted = f"{low} or more" if high is None else f"{low} to {high}"
        raise SereneError(f"--{name.replace('_', '-')} {value}: expected {wanted}")


def transport(options: argparse.Namespace) -> Transport:
    return packets.PACKETS[options.packets](_carrier(options))


def _carrier(options: argparse.Namespace) -> Transport:
    if options.frame_udp is None:
        return UdpTransport(options.switch_ip)
    local, switch = options.frame_udp
    return FrameTransport(
        options.worker,
        local=local,
        switch=switch,
        switch_ip=options.switch_ip,
        udp_port=FIRST_EPHEMERAL_PORT + os.getpid() % 16384,  # as a kernel's: a restarted worker has another one
    )
