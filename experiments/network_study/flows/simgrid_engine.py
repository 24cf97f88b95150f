"""The reference engine: SimGrid (Casanova et al., JPDC 2014), by its Python module. It is optional.

SimGrid can simulate only once in a process, so every call starts a process, with the arguments on its standard input.
SimGrid gets the same links, paths and steps as the NumPy engine: a link for each direction, and an explicit route for
each pair of ends.
"""

from __future__ import annotations

import importlib.util
import pickle
import subprocess
import sys

import numpy as np

from serene.errors import SereneError
from serene.experiments.network_study.flows.clos import Clos
from serene.experiments.network_study.flows.solver import Model, Schedule, Step
from serene.process.spawn import module

NAME = "simgrid"


class NoSimGrid(SereneError):
    """SimGrid is not installed, cannot simulate this, or failed; the message states which."""


def installed() -> bool:
    """Whether SimGrid's Python module is there."""
    return importlib.util.find_spec("simgrid") is not None


def run(network: Clos, schedule: Schedule, model: Model) -> float:
    """Seconds that the schedule takes. Raises NoSimGrid."""
    if not installed():
        raise NoSimGrid("SimGrid is not installed: `make simgrid` installs Debian's python3-simgrid")
    if not model.unfair:
        raise NoSimGrid(f"SimGrid shares by path latency, the model {model.name!r} does not: use the engine 'numpy'")
    steps = list(schedule)
    if any(step.limit < model.bandwidth_factor * network.bandwidth for step in steps):
        raise NoSimGrid("SimGrid's Python module cannot limit a flow's rate: use the engine 'numpy'")
    done = subprocess.run(
        module(__name__), input=pickle.dumps((network, steps, model)), capture_output=True, check=False
    )
    if done.returncode:
        raise NoSimGrid(f"SimGrid failed: {done.stderr.decode(errors='replace').strip()[-500:]}")
    clocks = np.array(done.stdout.split(), dtype=np.float64)
    return sum(step.delay + step.times * float(seconds) for step, seconds in zip(steps, clocks, strict=True))


def _simulate(network: Clos, steps: list[Step], model: Model) -> list[float]:
    import simgrid

    engine = simgrid.Engine(
        [
            "serene", "--log=root.thres:error", "--cfg=network/model:LV08",
            f"--cfg=network/bandwidth-factor:{model.bandwidth_factor}",
            f"--cfg=network/latency-factor:{model.latency_factor}",
            f"--cfg=network/weight-S:{model.weight_s}", f"--cfg=network/crosstraffic:{int(model.cross_traffic > 0)}",
        ]
    )  # fmt: skip
    zone = simgrid.NetZone.create_full_zone("clos")
    hosts, links = {}, {}
    latencies = network.latencies.tolist()

    def link(number: int) -> object:
        if number not in links:
            made = zone.create_link(f"l{number}", network.bandwidth).set_latency(latencies[number]).seal()
            links[number] = simgrid.LinkInRoute(made)
        return links[number]

    pairs = np.unique(np.concatenate([np.stack([step.source, step.target], axis=1) for step in steps]), axis=0)
    pairs = np.unique(np.concatenate([pairs, pairs[:, ::-1]]), axis=0)
    for node in np.unique(pairs).tolist():
        hosts[node] = zone.create_host(f"n{node}", 1e9)
    for (a, b), path in zip(pairs.tolist(), network.paths(pairs[:, 0], pairs[:, 1]).tolist(), strict=True):
        route = [link(number) for number in path if number >= 0]
        zone.add_route(hosts[a].netpoint, hosts[b].netpoint, None, None, route, False)
    zone.seal()
    clocks: list[float] = []

    def play() -> None:
        for step in steps:
            began = simgrid.Engine.clock
            flows = []
            for a, b, size in zip(step.source.tolist(), step.target.tolist(), step.sizes.tolist(), strict=True):
                flows.append(simgrid.Comm.sendto_init(hosts[a], hosts[b]).set_payload_size(round(size)).start())
            simgrid.Comm.wait_all(flows)
            clocks.append(simgrid.Engine.clock - began)

    simgrid.Actor.create("schedule", next(iter(hosts.values())), play)
    engine.run()
    return clocks


if __name__ == "__main__":
    print(*(repr(seconds) for seconds in _simulate(*pickle.load(sys.stdin.buffer))))
