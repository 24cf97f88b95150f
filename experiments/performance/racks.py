"""All-reduces over racks, for `make bench`, in three ways: through a tree of switches, where each leaf combines its
rack's values; through one switch above bridges, which combine nothing; and by gloo, with bridges everywhere. Hosts and
links are the same, and what the uplinks carry is counted."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mininet.node import Switch

from serene.controller.http.client import ControllerClient
from serene.experiments.performance.hosts import all_reduces
from serene.experiments.performance.networks import in_hosts, started
from serene.experiments.performance.parts import Json, run_parts
from serene.process.interrupts import held
from serene.program import Program
from serene.racks import Racks
from serene.strategy import BSP
from serene.topologies.leaf_spine import LeafSpine
from serene.topologies.nodes import UPLINK, Bridge, EmbeddedSwitch, SereneController
from serene.wire import ENCAPSULATION_BYTES, HEADER

Samples = tuple[float, ...]
Place = tuple[int | None, int]  # a worker's rack, None if the switch has no racks, and its number in it


@dataclass(frozen=True)
class Question:
    """What to measure: all-reduces of so many ``values``, by so many ``hosts`` in each of so many ``racks``.

    ``link_mbit``, ``uplink_mbit``: rates, each way; None: uplinks are as fast as links. repeats, series: as in
    `serene.experiments.performance.hosts`. patience_s: until a measurement is given up.
    """

    racks: int
    hosts: int
    link_mbit: float
    values: int
    repeats: int
    series: int
    patience_s: float
    uplink_mbit: float | None = None

    @property
    def workers(self) -> int:
        return self.racks * self.hosts

    @property
    def options(self) -> Json:
        return {"workers": self.workers, "values": self.values, "repeats": self.repeats, "series": self.series}


@dataclass(frozen=True)
class Measured:
    """seconds: of the slowest host, for each repeat. frames: what each uplink carried in an all-reduce, both ways
    together, as a number of frames with our full size; gloo's packets, which have other sizes, are converted by
    bytes."""

    seconds: Samples
    frames: Samples


def combining(question: Question) -> Measured:
    """All-reduces through a tree: leaves and root add up. Raises BenchFailed or NotReady."""
    return _adding_up(question, combined=True)


def relaying(question: Question) -> Measured:
    """All-reduces through one switch, which alone adds up, above a bridge in each rack. Raises BenchFailed or
    NotReady."""
    return _adding_up(question, combined=False)


def _adding_up(question: Question, *, combined: bool) -> Measured:
    with tempfile.TemporaryDirectory() as work:

        def switch(name: str, level: str, **params: Any) -> Switch:
            if level != "root" and not combined:
                return Bridge(name, **params)
            if combined:
                params["level"] = level
            return EmbeddedSwitch(name, log=Path(work) / f"{level}.log", **params)

        controller = SereneController("c0", log=Path(work) / "controller.log")
        sizes = Racks.even(question.workers, question.racks)
        places = [sizes.place(worker) if combined else (None, worker) for worker in range(question.workers)]
        try:
            with started(_topology(question), switch, [controller]) as net, ControllerClient(controller.url) as client:
                client.create_job(question.workers, BSP(), racks=sizes.sizes if combined else None)
                return _measure(net, question, "serene", Path(work), places)
        finally:
            controller.stop()


def gloo(question: Question) -> Measured:
    """All-reduces by gloo, over bridges. Raises BenchFailed or NotReady."""

    def bridge(name: str, level: str, **params: Any) -> Switch:
        return Bridge(name, **params)

    with started(_topology(question), bridge) as net, tempfile.TemporaryDirectory() as work:
        return _measure(net, question, "gloo", Path(work), [(None, w) for w in range(question.workers)])


def _topology(question: Question) -> LeafSpine:
    rate, uplink = question.link_mbit, question.uplink_mbit or question.link_mbit
    return LeafSpine(question.workers, question.racks, link_mbit=rate, uplink_mbit=uplink, offload=True)


def _measure(net: Any, question: Question, kind: str, work: Path, places: Sequence[Place]) -> Measured:
    before = _uplinks(net, question.racks)
    parts = {worker: (kind, {**question.options, "place": place}) for worker, place in enumerate(places)}
    results = run_parts(in_hosts(net), parts, work, question.patience_s)
    passed = [after - first for after, first in zip(_uplinks(net, question.racks), before, strict=True)]
    frame = ENCAPSULATION_BYTES + HEADER.itemsize + 4 * Program.load().lanes
    return Measured(
        tuple(max(times) for times in zip(*(result["seconds"] for result in results), strict=True)),
        tuple(count / frame / all_reduces(question.repeats, question.series) for count in passed),
    )


def _uplinks(net: Any, racks: int) -> list[int]:
    """Bytes that each uplink has carried so far, as tc counts them: a large buffer as the packets that it will
    become."""
    ends = [
        (net[f"leaf{rack + 1}"], f"leaf{rack + 1}-eth{UPLINK}", net["root"], f"root-eth{rack + 1}")
        for rack in range(racks)
    ]
    return [_sent(leaf, up) + _sent(root, down) for leaf, up, root, down in ends]


def _sent(node: Any, interface: str) -> int:
    with held():
        (shaper,) = json.loads(node.cmd("tc -s -j qdisc show dev", interface, "root"))
    return int(shaper["bytes"])
