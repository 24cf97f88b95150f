"""A worker's command line: its options, their checks, and the transport that they ask for."""

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
from serene.workers import architectures, data, packets, stragglers
from serene.workers.baselines import EXCHANGES

FIRST_EPHEMERAL_PORT = 49152  # RFC 6335


def _two_ports(text: str) -> tuple[tuple[str, int] | int, tuple[str, int]]:
    """The worker's end, an address or an inherited file descriptor, and the switch's address."""
    given = re.fullmatch(r"(fd)?(\d+):(\d+)", text)
    if given:
        inherited, local, switch = bool(given[1]), int(given[2]), int(given[3])
        if 0 < switch < 65536 and (inherited or 0 < local < 65536):
            return local if inherited else ("127.0.0.1", local), ("127.0.0.1", switch)
    raise argparse.ArgumentTypeError(f"{text}: expected LOCAL:SWITCH, UDP ports (or fdN:SWITCH)")


def _rack_sizes(text: str) -> Racks:
    try:
        return Racks.of([int(size) for size in text.split(",")])
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text}: expected the workers in each rack, for example 2,2") from None
    except SereneError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def place(options: argparse.Namespace) -> tuple[int | None, int]:
    """The worker's rack, None for a job in one switch, and its number in the rack, which packets have as its id."""
    return (None, options.worker) if options.racks is None else options.racks.place(options.worker)


def _addresses(text: str) -> list[tuple[str, int]]:
    found = [re.fullmatch(r"([\w.-]+):(\d+)", part) for part in text.split(",")]
    if all(each and 0 < int(each[2]) < 65536 for each in found):
        return [(each[1], int(each[2])) for each in found if each]
    raise argparse.ArgumentTypeError(f"{text}: expected ADDRESS:PORT for each server, with commas between them")


def parser() -> argparse.ArgumentParser:
    """The command line; its values still have to pass `check`."""
    result = Parser(prog="python -m serene.workers.train", description="One worker of a training job.")
    add = result.add_argument
    add("--job", type=int, default=0, help="the job's id (default 0)")
    add("--worker", type=int, required=True, help="this worker's number in the job, from 0")
    add("--workers", type=int, required=True, help="how many workers the job has")
    add("--racks", type=_rack_sizes, default=None, metavar="2,2", help="workers in each rack; default: one switch")
    add("--switch-ip", default=SWITCH_IP, help=f"where the switch answers (default {SWITCH_IP})")
    add(
        "--frame-udp",
        type=_two_ports,
        metavar="LOCAL:SWITCH",
        help="whole frames in UDP, to a udp: port of serene-switch; LOCAL may be fdN, an inherited socket",
    )
    add("--exchange", default="switch", help=f"what gradients go through: {choices(EXCHANGES)} (workers/baselines.py)")
    add("--strategy", default="bsp", help="of a baseline; with a switch, the controller decides")
    add("--servers", type=_addresses, default=[], metavar="ADDRESS:PORT,...", help="of a baseline; gloo: of worker 0")
    add("--packets", default="compiled", help=f"what makes the packets: {choices(packets.PACKETS)}")
    add("--model", default="mlp", help=choices(architectures.MODELS))
    add("--dataset", default="digits", help=choices(data.DATASETS))
    add("--data-dir", type=Path, default=None, help="where the data sets' files are")
    add("--steps", type=int, default=200)
    add("--batch-size", type=int, default=32, help="images in this worker's batch")
    add("--lr", type=float, default=None, help="learning rate (default: the model's own)")
    add("--seed", type=int, default=1, help="of the initial parameters, the batches and the straggler's delays")
    add("--straggler", default="none", help="a profile, for example slow_worker:probability=0.3")
    add("--compute-ms", type=float, default=50, help="mean compute time of an iteration; 0: as fast as it goes")
    add("--eval-every", type=int, default=5, metavar="STEPS", help="how often the test accuracy is measured")
    add("--join-timeout", type=float, default=120, metavar="SECONDS", help="until the job is complete")
    add("--finish-timeout", type=float, default=600, metavar="SECONDS", help="until the other workers have finished")
    add("--out", type=Path, default=None, help="a directory for this worker's results")
    add("--out-else", type=Path, default=None, metavar="DIR", help="where they go if --out cannot be written to")
    return result


def check(options: argparse.Namespace) -> None:
    """Checks the options together. Raises SereneError, naming the option and what was expected."""
    check_exchange(options.exchange, options.strategy, options.workers)
    packets.check_packets(options.packets)
    architectures.check_model(options.model)
    data.check_dataset(options.dataset)
    # Only the limits of the packets' fields: those of the switch's program are known to the controller.
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
    """Raises SereneError for an exchange that does not exist, or for a strategy that a baseline cannot do."""
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
    """The way to the switch that --frame-udp asks for, with packets made as --packets says."""
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
        # As the kernel would choose one: a worker that is started again has another port than before.
        udp_port=FIRST_EPHEMERAL_PORT + os.getpid() % 16384,
    )
