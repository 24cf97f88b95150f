"""A leaf or the root of the emulated network's tree: our compiled program on the embedded switch, with one job.

python -m serene.experiments.network_study.emulated.switch OPTIONS

There is no controller: the entries of the job, whose workers are known before, are written in this process.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from serene import entries
from serene.experiments.network_study.emulated.hosts import INCARNATION, UDP_PORT
from serene.program import BUILD, Program
from serene.racks import compile_for_racks
from serene.sim.hosts import Host, job_of
from serene.sim.switch import ProgramSwitch
from serene.strategy import BSP
from serene.wire import ROOT

JOB, SESSION, EPOCH = 0, 1, 1
PROGRAMS = {"leaf": "serene_leaf", "root": "serene_root"}


def _leaf(plane: ProgramSwitch, rack: int, racks: list[list[int]]) -> None:
    """Writes a leaf's entries. Its workers are at the ports from 1 on, the root at the port after them."""
    here = racks[rack]
    uplink = len(here) + 1
    policy = compile_for_racks(BSP(), racks)[0][rack]
    hosts = {}
    for port, worker in enumerate(here, 1):
        of = Host.of(worker)
        hosts[worker] = Host(port, of.mac, of.ip, UDP_PORT, INCARNATION)
    plane.put(entries.uplink(JOB, rack, 0, uplink))
    plane.put(entries.prepared(JOB, SESSION, EPOCH, policy))
    plane.put(entries.member(JOB, ROOT, entries.root_at(uplink, SESSION)))
    plane.put(entries.policy(JOB, SESSION, EPOCH, policy.fields))
    for worker, host in hosts.items():
        plane.admit(worker, host, JOB)
    plane.set_group(entries.leaf_group(JOB, hosts, uplink))


def _root(plane: ProgramSwitch, racks: list[list[int]]) -> None:
    """Writes the root's entries. The leaves are at the ports from 1 on."""
    for rack in range(len(racks)):
        plane.admit(rack, entries.leaf_at(rack, 0, SESSION), JOB)
    ports = [rack + 1 for rack in range(len(racks))]
    plane.set_group(entries.root_group(JOB, enumerate(ports)))
    plane.put(entries.policy(JOB, SESSION, EPOCH, compile_for_racks(BSP(), racks)[1]))


def main(options: dict[str, Any]) -> int:
    """Runs the switch until its standard input ends, and then prints its counts of dropped packets."""
    role, racks, values = options["role"], options["racks"], options["values"]
    program = Program.load(BUILD / f"{PROGRAMS[role]}.json")
    plane = ProgramSwitch(program)
    workers = len(racks) if role == "root" else sum(map(len, racks))
    slots = -(-values // program.lanes)
    plane.put(job_of(JOB, slots=slots, vector_length=values, workers=workers))
    if role == "root":
        _root(plane, racks)
    else:
        _leaf(plane, options["rack"], racks)
    for port, interface in options["ports"].items():
        plane.switch.add_interface(int(port), interface)
    plane.switch.start()  # forwards in a thread of its own
    print("ready", flush=True)
    sys.stdin.read()
    print(json.dumps(plane.dropped()), flush=True)
    plane.close()
    return 0


if __name__ == "__main__":
    raise SystemExit(main(json.loads(sys.argv[1])))
