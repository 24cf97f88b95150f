"""The benchmark, a table of ratios that are measured in one run: ``make bench``.

Absolute numbers depend on the machine and on what else it does; so each row has a peer that is measured next to it, and
their ratio is the result. Each row is measured several times and shows the median and the spread; all-reduces that take
seconds are measured once or twice and show no spread. It needs Mininet and PyTorch; where BMv2 is not installed, its
rows say so.
"""

from __future__ import annotations

from serene.process.interrupts import end_quietly, ended

if __name__ == "__main__":
    end_quietly()

import json
import math
import shutil
import statistics
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from serene.arguments import Parser
from serene.client.allreduce import blocks
from serene.experiments.performance import pins, racks, seed, tables
from serene.experiments.performance.networks import bridge_hosts, serene_network, with_job
from serene.experiments.performance.one_machine import measure, slowest_of
from serene.experiments.performance.parts import BenchFailed, Json, run_parts
from serene.experiments.performance.push_path import PushPath
from serene.experiments.performance.row import HEAD, Row, Samples
from serene.experiments.run.settings import BMV2
from serene.experiments.shared import isolated, machine, terminal
from serene.http import CONTROLLER
from serene.process import outputs
from serene.program import Program

REPEATS = 5
SECONDS = 3.0  # that one repeat of a packet rate takes
SLOTS = 256  # that one worker pushes in those
LINK_MBIT = 100.0
PATIENCE_S = 240.0
MLP_VALUES = 79_510
COMPUTE_S = 2.0  # of a step of shared training; an exchange takes 0.7 s, on busy processors 1.1 s
CPU_SERIES = 20  # all-reduces in one measurement of processor time
SERIES_S = 0.3  # that a series of all-reduces through a pool takes, at least
POOL_SLOTS = 512
OUTPUT = Path("build/bench.json")
SEED = "the authors' program on BMv2"


def through_switch(
    part: str, options: Json, workers: int, link_mbit: float | None, program: str = "serene", target: str = "embedded"
) -> list[Json]:
    """What each worker measured in a part, in Mininet hosts around a switch that runs a BSP job."""
    with (
        tempfile.TemporaryDirectory() as work,
        serene_network(target, program, workers, link_mbit, Path(work)) as network,
    ):
        return with_job(network, dict.fromkeys(range(workers), (part, options)), Path(work), PATIENCE_S)


def over_bridge(part: str, options: Json, workers: int, link_mbit: float, program: str = "serene") -> list[Json]:
    """The same around a Linux bridge, for parts that exchange among themselves. program: with whose MTU."""
    with tempfile.TemporaryDirectory() as work, bridge_hosts(workers, link_mbit, program) as bridge:
        return run_parts(bridge, dict.fromkeys(range(workers), (part, options)), Path(work), PATIENCE_S)


def all_reduce(workers: int, values: int, bar: float | None, most: float, series: int = 5) -> Row:
    """Seconds until every worker has the sum of all vectors, through one switch with links of 100 Mbit/s."""
    options = {"workers": workers, "values": values, "repeats": REPEATS, "series": series}
    row = partial(
        Row, f"all-reduce of {values:,} float32, {workers} hosts, {LINK_MBIT:.0f} Mbit/s", "s", True, bar,
        peer_name="gloo, Linux bridge", limit=values * 32 / LINK_MBIT / 1e6, most=most,
    )  # fmt: skip
    ours = through_switch("serene", options, workers, LINK_MBIT)
    return row(ours=slowest_of(ours), peer=slowest_of(over_bridge("gloo", options, workers, LINK_MBIT)))


def over_racks(values: int, series: int = 5) -> Iterator[Row]:
    """The same over 4 racks of 4 hosts, with an uplink as fast as one host's link: seconds, next to gloo and to one
    switch above bridges; and what an uplink carries."""
    question = racks.Question(4, 4, LINK_MBIT, values, REPEATS, series, PATIENCE_S)
    work = f"all-reduce of {values:,} float32, 4 racks of 4 hosts, links and uplinks of {LINK_MBIT:.0f} Mbit/s"
    limit = values * 32 / LINK_MBIT / 1e6
    ours, theirs, plain = racks.combining(question), racks.gloo(question), racks.relaying(question)
    yield Row(work, "s", True, None, ours.seconds, theirs.seconds, "gloo, Linux bridges", limit)
    yield Row(work, "s", True, None, ours.seconds, plain.seconds, "one switch above bridges: nothing combined", limit)
    for peer, name in ((plain, "the same, nothing combined"), (theirs, "gloo: its bytes as such packets")):
        yield Row("packets on an uplink in it, both ways", "packets", True, None, ours.frames, peer.frames, name)


def one_machine(values: int, program: str = "serene", workers: int = 2, bar: float = 0.7) -> Iterator[Row]:
    """Seconds of an all-reduce between processes of one machine, by each kind of port; gloo over loopback. bar: of
    shared memory, which `serenectl up --local` has."""
    loaded, repeats = Program.load(program), 4 * REPEATS
    gloo, *ours = (slowest_of(measure(kind, loaded, workers, values, repeats)) for kind in ("gloo", "udp", "shm"))
    for kind, seconds, least in zip(("udp", "shm"), ours, (None, bar), strict=True):
        work = f"all-reduce of {values:,} float32, {workers} processes, {kind} ports, {program}"
        yield Row(work, "s", True, least, seconds, gloo, "gloo, loopback")


def worker_cpu(values: int, workers: int = 2) -> Iterator[Row]:
    """Seconds of processor time that a worker spends on an all-reduce, by format: bits, error feedback and a fixed
    scale. Fewer bits make fewer packets; rounding should cost less than that saves."""
    program, limit = Program.load("serene"), 0.6  # for normal values of standard deviation 0.1

    def seconds(kind: str, **options: Any) -> Samples:
        results = measure(kind, program, workers, values, 2 * REPEATS, series=CPU_SERIES, **options)
        return tuple(statistics.mean(times) for times in zip(*(result["cpu_s"] for result in results), strict=True))

    def row(how: str, ours: Samples, peer: Samples, name: str) -> Row:
        work = f"a worker's CPU in an all-reduce of {values:,} float32{how}, {workers} processes, udp ports"
        return Row(work, "s", True, None, ours, peer, name)

    plain = seconds("udp")
    yield row("", plain, seconds("gloo"), "gloo, loopback")
    ways: dict[str, Json] = {"": {}, ", error feedback": {"feedback": True}, ", fixed scale": {"limit": limit}}
    for how, options in ways.items():
        for bits in blocks.BITS if options else blocks.BITS[1:]:
            yield row(f" in {bits} bits{how}", seconds("udp", bits=bits, **options), plain, "the same in 32 bits")


def pool(
    values: int, link_mbit: float, most_over_limit: float, program: str = "serene", *, workers: int = 4, bits: int = 32
) -> Row:
    """Seconds of an all-reduce through a pool of slots. The peer is gloo with the same MTU, for 16 and 8 bits with the
    compression that PyTorch has for it. bits: precision, of a value on its way."""
    lanes, limit = Program.load(program).lanes, values * bits / link_mbit / 1e6
    repeats = 1 if limit > 2 else 2 if limit > 0.5 else 9
    compression = {32: "float32", 16: "float16", 8: "bfloat16"}[bits]
    options = {"workers": workers, "values": values, "repeats": repeats, "bits": bits, "compression": compression}
    options |= {"slots": POOL_SLOTS, "lanes": lanes, "series": math.ceil(SERIES_S / limit)}
    ours = slowest_of(through_switch("pool", options, workers, link_mbit, program))
    theirs = slowest_of(over_bridge("gloo", options, workers, link_mbit, program))
    what = "float32" if bits == 32 else f"float32 in {bits} bits"
    peer = "gloo, Linux bridge" if bits == 32 else f"gloo, {compression} compression"
    work = f"all-reduce of {values:,} {what} by a pool, {workers} hosts, {lanes} lanes, {link_mbit:,.0f} Mbit/s"
    return Row(work, "s", True, None, ours, theirs, peer, limit, most_over_limit * limit)


def by_format(values: int = 500_000) -> Iterator[Row]:
    """Values a second through a pool of one worker in a Mininet host, on both switches. A packet has the same number of
    lanes at any precision, so that fewer bits are more values a second."""
    program = Program.load("serene")
    options = {"workers": 1, "values": values, "repeats": REPEATS, "series": 2, "slots": POOL_SLOTS}
    for target in ("bmv2", "embedded"):
        lacking = "" if target == "embedded" or shutil.which(BMV2) else f"{BMV2} is not installed"
        plain: Samples = ()
        for bits in blocks.BITS:
            rates: Samples = ()
            if not lacking:
                more = {**options, "lanes": program.lanes, "bits": bits}
                (result,) = through_switch("pool", more, 1, None, target=target)
                rates = tuple(values / seconds for seconds in result["seconds"])
            plain = plain or rates
            yield Row(
                f"values in {bits} bits by a pool of 1 worker, {target}", "values/s", False, None,
                rates, plain if bits != 32 else (), "the same in 32 bits" if bits != 32 else "", missing=lacking,
            )  # fmt: skip


def trained(workers: int, options: Json, ways: dict[str, Json]) -> dict[str, list[Json]]:
    """What each worker measured in trainings through one switch, by way. ways: their further options."""
    measured = {}
    with (
        tempfile.TemporaryDirectory() as work,
        serene_network("embedded", "serene", workers, LINK_MBIT, Path(work)) as network,
    ):
        for number, (name, more) in enumerate(ways.items()):
            given = {**options, **more, "environment": {CONTROLLER: network.unix_url}}
            (folder := Path(work) / str(number)).mkdir()
            parts = dict.fromkeys(range(workers), ("training", given))
            measured[name] = run_parts(network.popen, parts, folder, PATIENCE_S)
    return measured


def overlapped(workers: int) -> Iterator[Row]:
    """Seconds of a step of shared training that computes longer than its exchange takes; the peer is the computing
    alone. A worker waits for the rest of COMPUTE_S, as for a device that computes."""
    ways: dict[str, Json] = {
        "alone": {},
        "BSP": {"overlap": False},
        "BSP, overlap": {"overlap": True},
        "SSP(1), overlap": {"overlap": True, "strategy": "ssp:1"},
        "ASP, overlap": {"overlap": True, "strategy": "asp"},
    }
    measured = trained(workers, {"workers": workers, "repeats": REPEATS, "compute_s": COMPUTE_S}, ways)
    alone = slowest_of(measured.pop("alone"))
    for name, ours in measured.items():
        values = ours[0]["values"]
        yield Row(
            f"step of shared training, {name}, {values:,} parameters, {workers} hosts, {LINK_MBIT:.0f} Mbit/s",
            "s", True, None, slowest_of(ours), alone, f"its computing alone, {COMPUTE_S:g} s",
        )  # fmt: skip


def ddp(workers: int) -> Iterator[Row]:
    """Seconds of an iteration of DistributedDataParallel by the process group `serene`, and of shared training under
    BSP without and with the exchange in the background; the peer of all is DistributedDataParallel by gloo."""
    options = {"workers": workers, "repeats": 2 * REPEATS, "bucket_mb": 1}
    ways: dict[str, Json] = {
        "DistributedDataParallel": {"backend": "serene"},
        "shared training": {"overlap": False},
        "shared training, overlap": {"overlap": True},
    }
    measured = trained(workers, options, ways)
    theirs = over_bridge("training", {**options, "backend": "gloo", "environment": {}}, workers, LINK_MBIT)
    for name, ours in measured.items():
        values = ours[0]["values"]
        for mine, peer in zip(ours, theirs, strict=True):
            # With overlap a worker computes with its own last update in full: its losses are its own.
            if "overlap" not in name and not np.allclose(mine["losses"], peer["losses"], rtol=1e-3):
                raise BenchFailed(f"the losses of {name} are {mine['losses']}, with gloo {peer['losses']}")
        yield Row(
            f"iteration of {name}, {values:,} parameters, {workers} hosts, {LINK_MBIT:.0f} Mbit/s",
            "s", True, None, slowest_of(ours), slowest_of(theirs), "DDP by gloo, Linux bridge",
            values * 32 / LINK_MBIT / 1e6,
        )  # fmt: skip


def pushes(target: str, program: Program) -> tuple[Samples, int]:
    """Answered PUSHes a second of one worker in a Mininet host, and its window at the end, in packets."""
    options = {"values": SLOTS * program.lanes, "repeats": REPEATS, "seconds": SECONDS}
    (result,) = through_switch("pushes", options, 1, None, program.name, target)
    return tuple(result["rates"]), int(result["window"])


def in_process(program: Program) -> Samples:
    """Packets a second through the PUSH path of the embedded switch in this process."""
    path = PushPath(program)
    path.measure()  # the first one runs with cold caches
    return tuple(path.measure() for _ in range(REPEATS))


def untraced(program: Program) -> Iterator[Row]:
    """What traces cost while nobody traces. The switches are measured in turn, so that whatever else the machine does
    affects all of them."""
    never, again, compiled = PushPath(program), PushPath(program), PushPath(program, ("-DTRACE",))
    again.switch.start_tracing()
    with again.switch.processing_traced():
        again.measure()
    again.switch.stop_tracing()
    rates: dict[PushPath, list[float]] = {path: [] for path in (never, again, compiled)}
    for number in range(2 * REPEATS + 1):
        for path, measured in rates.items():
            rate = path.measure()
            if number:  # the first one runs with cold caches
                measured.append(rate)
    row = partial(Row, unit="packets/s", less=False, bar=None)
    yield row("PUSH path after tracing", ours=tuple(rates[again]), peer=tuple(rates[never]), peer_name="never traced")
    with_code = "the tracing build, nobody watching"
    yield row("PUSH path, never traced", ours=tuple(rates[never]), peer=tuple(rates[compiled]), peer_name=with_code)


def packets(seed_json: Path | None) -> Iterator[Row]:
    """Packets a second through the PUSH path of the embedded switch in process, and of both switches with the same JSON
    from a Mininet host; and values a second through BMv2.
    seed_json: the program of the paper's authors, as a peer for these."""
    serene = Program.load("serene")
    lacking = "" if shutil.which(BMV2) else f"{BMV2} is not installed"
    bmv2: dict[str, tuple[Samples, int]] = {
        name: ((), 0) if lacking else pushes("bmv2", Program.load(name)) for name in ("serene", "serene_jumbo")
    }
    # Without a peer: BMv2 is only reached through sockets, which this path does not have.
    yield Row("PUSH path, embedded in process", "packets/s", False, None, in_process(serene), (), "")
    yield Row(
        "PUSH path, embedded, from a Mininet host", "packets/s", False, None, pushes("embedded", serene)[0],
        bmv2["serene"][0], BMV2, missing=lacking,
    )  # fmt: skip
    for name, bar in (("serene", 25.0), ("serene_jumbo", 100.0)):
        lanes, (rates, window) = Program.load(name).lanes, bmv2[name]
        theirs: Samples = ()
        if seed_json is not None and not lacking:
            theirs = seed.rates(seed_json, window, REPEATS, SECONDS, PATIENCE_S)
        yield Row(
            f"values through BMv2, {name}", "values/s", False, bar, tuple(rate * lanes for rate in rates), theirs,
            SEED if theirs else f"{SEED}: not run, SEED_JSON= is not given", missing=lacking,
        )  # fmt: skip


def large_tables(pins_json: Path | None) -> Iterator[Row]:
    """Writes, memory and packets of large tables, in both switches; what more ternary entries cost; a large program."""
    lacking = "" if shutil.which(BMV2) else f"{BMV2} is not installed"
    theirs = {} if lacking else tables.measure("bmv2", REPEATS, SECONDS / 3)
    ours = tables.measure("embedded", REPEATS, SECONDS / 3)
    writes = f"10,000 routes, {tables.UPDATES:,} a Write"
    packets = [("routes", "10,000 routes"), ("50 rules", "50 ternary entries"), ("500 rules", "500 ternary entries")]
    packets.append(("5000 rules", f"5,000 ternary entries of {tables.MASKS} masks"))
    for what, work, unit, bar in (
        ("writes", f"inserting {writes}", "s", 1.0),
        ("deletes", f"deleting {writes}", "s", None),
        ("bytes", "memory of a route, of 100,000", "bytes", None),
        *((what, f"packets by {table}, from a Mininet host", "packets/s", 10.0) for what, table in packets),
        *((f"{what}, processor", f"packets by {table}, a second of the switch's processor time", "packets/s", 10.0)
          for what, table in packets),
    ):  # fmt: skip
        less = unit != "packets/s"
        yield Row(work, unit, less, bar, ours[what], theirs.get(what, ()), BMV2, missing=lacking)
    work = "packets by 10,000 routes, a second of the switch's processor time"
    yield Row(work, "packets/s", False, None, ours["routes, processor"], ours["routes, host"], "of the sending host's")
    rates = tables.in_process(REPEATS)
    for count in (500, 5000):
        work = f"packets by {count:,} ternary entries, in process, a second of processor time"
        yield Row(work, "packets/s", False, 0.5, rates[count], rates[50], "by 50 entries")
    lacking = lacking or ("" if pins_json else "not run, PINS_JSON= is not given")
    found = {} if lacking or not pins_json else pins.measure(pins_json, REPEATS, SECONDS / 3)
    for number, what in enumerate(("from a Mininet host", "a second of the switch's processor time")):
        peer, own = (found[target][number] if found else () for target in ("bmv2", "embedded"))
        work = f"packets through pins_middleblock.p4, {what}"
        yield Row(work, "packets/s", False, 10.0, own, peer, BMV2, missing=lacking)


def scapy() -> Iterator[Row]:
    """What scapy costs: one worker exchanges the mlp's gradient with packets made by the C code, and by scapy's
    layers."""
    found = {}
    for packets, series in (("compiled", 20), ("scapy", 1)):
        options = {"workers": 1, "values": MLP_VALUES, "repeats": REPEATS, "series": series, "packets": packets}
        (found[packets],) = through_switch("serene", options, 1, None)
    for what, name, bar in (("cpu_s", "a worker's CPU in an exchange", 50.0), ("seconds", "an exchange", None)):
        work = f"{name} of {MLP_VALUES:,} values, 1 worker"
        yield Row(
            work, "s", True, bar, tuple(found["compiled"][what]), tuple(found["scapy"][what]), "PACKETS=scapy, the same"
        )


def trainings() -> Iterator[Row]:
    yield from ddp(4)
    yield from overlapped(4)


def rows(seed_json: Path | None, pins_json: Path | None) -> Iterator[Row]:
    """Measures and yields one row after the other."""
    measurements: list[Callable[[], Row]] = [
        partial(all_reduce, 4, 100_000, 1.5, 0.036),
        partial(all_reduce, 8, 100_000, 1.9, 0.038),
        partial(all_reduce, 4, 1_000_000, None, 0.36, series=2),
        *(
            partial(pool, 100_000, 100.0, most / (bits / 1e3), workers=workers, bits=bits)
            for workers in (4, 8)
            for bits, most in ((16, 0.018), (8, 0.0098))
        ),
        partial(pool, 1_000_000, 100.0, 1.08),
        partial(pool, 1_000_000, 1000.0, 1.2),
        partial(pool, 25_600_000, 100.0, 1.08),
        partial(pool, 25_600_000, 1000.0, 1.2),
        partial(pool, 25_600_000, 1000.0, 1.2, "serene_jumbo"),
    ]
    for take in measurements:
        yield take()
    yield from trainings()
    yield from over_racks(100_000)
    yield from worker_cpu(100_000)
    yield from scapy()
    for program in ("serene", "serene_jumbo"):
        yield from one_machine(2_460_000, program)
    yield from one_machine(100_000)
    for workers in (2, 4):
        yield from one_machine(10_000_000, "serene_jumbo", workers, bar=1.0)
    yield from untraced(Program.load("serene"))
    yield from by_format()
    yield from large_tables(pins_json)
    yield from packets(seed_json)


def table(measured: Sequence[Row]) -> Table:
    """The table to print."""
    return terminal.table(HEAD, [row.cells() for row in measured], ["work", "unit", "the peer"])


def main() -> int:
    parser = Parser("Measures speed as ratios to gloo, BMv2 and scapy.")
    parser.add_argument(
        "--seed-json", type=Path, help="the authors' program, compiled by p4c-bm2-ss: measured as a peer"
    )
    parser.add_argument("--pins-json", type=Path, help="p4c's pins_middleblock.p4 as p4c-bm2-ss compiled it")
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--tables", action="store_true", help="only the rows of large tables and programs")
    only.add_argument("--trainings", action="store_true", help="only the rows of trainings")
    arguments = parser.parse_args()
    seed_json, pins_json = arguments.seed_json, arguments.pins_json
    console = terminal.console(220, highlight=False)
    given = {"SEED_JSON": seed_json, "PINS_JSON": pins_json}
    command = " ".join(["make bench", *(f"{name}={path.name}" for name, path in given.items() if path)])

    def work() -> None:
        measured = []
        try:
            if seed_json is not None:
                seed.check(seed_json)
            if pins_json is not None:
                pins.Pins(pins_json)
            outputs.check_file(OUTPUT, outputs.MB)
            of_tables = large_tables(pins_json) if arguments.tables else rows(seed_json, pins_json)
            for row in trainings() if arguments.trainings else of_tables:
                measured.append(row)
                console.print(f"measured: {row.work}", style="dim")
            text = json.dumps({**machine.made(command), "rows": [asdict(row) for row in measured]}, indent=2) + "\n"
            outputs.write_text(OUTPUT, text)
        finally:
            if measured:  # also after an error, for each row took minutes
                console.print(table(measured))
        console.print(f"ratio: how many times better than the peer; target: the ratio to reach. {OUTPUT}")

    return isolated.command(work, "make bench uses Mininet: run it as root")


if __name__ == "__main__":
    raise SystemExit(ended(main))
