"""A leaf or the root of the emulated network's tree: our compiled program on the embedded switch, with one job.

There is no controller: the entries of the job, whose workers are known before, are written in this process.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from serene import entries
from serene.experiments.network_study.emulated.hosts import Meetings
from serene.experiments.network_study.emulated.plan import Emulated
from serene.experiments.run.forked import enter_network
from serene.experiments.straggler_study.dataplane import FIRST_EPOCH, JOB, SESSION, admit_leaves, admit_rack
from serene.program import Program
from serene.racks import compile_for_racks
from serene.sim.hosts import Host, job_of
from serene.sim.switch import ProgramSwitch
from serene.strategy import BSP


def forward(
    emulated: Emulated, rack: int | None, node: int, ports: Mapping[int, str], meetings: Meetings
) -> dict[str, int]:
    """What the process of a leaf does, and how many packets it has dropped, by reason. rack: the leaf's; None: of the
    root. node: a process in the switch's network. ports: the names of its interfaces."""
    enter_network(node)
    half = emulated.ports // 2
    racks = [list(range(leaf * half, leaf * half + half)) for leaf in range(emulated.leaves)]
    leaves, root = compile_for_racks(BSP(), racks)
    plane = ProgramSwitch(Program.tree()[rack is None])
    slots = -(-emulated.values // plane.program.lanes)
    workers = len(racks) if rack is None else sum(map(len, racks))
    plane.put(job_of(JOB, slots=slots, vector_length=emulated.values, workers=workers))
    if rack is None:
        admit_leaves(plane, len(racks))
        plane.put(entries.policy(JOB, SESSION, FIRST_EPOCH, root))
    else:
        hosts = {worker: replace(Host.of(worker), port=port) for port, worker in enumerate(racks[rack], 1)}
        admit_rack(plane, rack, hosts, half + 1)
        plane.put(entries.prepared(JOB, SESSION, FIRST_EPOCH, leaves[rack]))
        plane.put(entries.policy(JOB, SESSION, FIRST_EPOCH, leaves[rack].fields))
    for port, interface in ports.items():
        plane.switch.add_interface(port, interface)
    plane.switch.start()  # forwards in a thread of its own
    meetings.all.wait()
    meetings.all.wait()  # until the hosts are done
    return plane.dropped()
