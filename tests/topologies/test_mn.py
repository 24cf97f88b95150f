"""Mininet's own command with each topology: hosts reach each other, bad options are refused, nothing is left."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from serene.topologies.processes import NotReady
from tests.controller.processes import until
from tests.runs import ROOT, Marked, interfaces, missing, private_network

pytestmark = [pytest.mark.mininet, pytest.mark.usefixtures("mininet")]

CLASSES = {"star": "Star", "leaf_spine": "LeafSpine", "clos": "Clos"}


def mn(topology: str, switch: str, controller: str, *options: str) -> list[str]:
    """Skips the test where the switch is not available."""
    if lacking := missing(None if controller == "none" else switch):
        pytest.skip(f"needs {lacking}")
    file = str(ROOT / "topologies" / f"{topology.partition(',')[0]}.py")
    return ["mn", "--custom", file, "--topo", topology, "--switch", switch, "--controller", controller, *options]


@pytest.mark.parametrize(
    ("topology", "switch", "controller", "pings"),
    [
        ("star,2", "embedded", "serene", "2/2"),
        ("leaf_spine,4,2", "bridge", "none", "12/12"),
        pytest.param("leaf_spine,4,2", "bmv2", "serene", "12/12", marks=pytest.mark.bmv2),
        ("leaf_spine,3,2,server=1", "embedded", "serene", "12/12"),
        ("clos,4,3,0.5", "router", "none", "30/30"),
    ],
)
def test_mn_command_pings_over_the_topology(topology: str, switch: str, controller: str, pings: str) -> None:
    command = mn(topology, switch, controller, "--test", "pingall")
    with private_network():
        run = subprocess.run(command, capture_output=True, text=True, timeout=240, cwd="/")
        assert f"0% dropped ({pings} received)" in run.stderr + run.stdout, run.stderr
        assert interfaces() == set()


@pytest.mark.parametrize(
    ("topology", "switch", "controller"), [("star,2", "embedded", "serene"), ("clos,4,3,0.5", "router", "none")]
)
def test_killed_mn_command_leaves_nothing_behind(topology: str, switch: str, controller: str, tmp_path: Path) -> None:
    command = mn(topology, switch, controller)
    with private_network():
        process = Marked(command, tmp_path / "log")
        try:
            until(lambda: "Starting CLI" in process.output or process.process.poll() is not None, "the prompt", 240)
            assert process.process.poll() is None, process.output
            process.process.kill()
            process.wait()
            until(lambda: not process.alive(), "every process has ended")
            until(lambda: not interfaces(), "every interface is gone")
        finally:
            process.end()


@pytest.mark.parametrize(
    ("topology", "options", "message"),
    [
        ("star", {"bw": 10}, "star has no option bw: expected workers, link_mbit"),
        *(("star", {"workers": number}, f"star of {number}: expected 1 to 253 workers") for number in (0, 254, "abc")),
        ("leaf_spine", {"racks": 9, "workers": 16}, "9 racks: expected 1 to 8"),
        ("leaf_spine", {"racks": 2, "workers": 65}, "65 workers in 2 racks: expected 2 to 64"),
        ("leaf_spine", {"bw": 10}, "leaf_spine has no option bw: expected workers, racks, link_mbit, uplink_mbit"),
        ("clos", {"ports": 7}, "switches of 7 ports: expected an even number"),
        ("clos", {"ratio": 0.3}, "bisection ratio 0.3 with 8 ports: expected one of 0.25, 0.5, 0.75, 1"),
        ("clos", {"ratio": "1/2"}, "bisection ratio 1/2 with 8 ports: expected one of 0.25, 0.5, 0.75, 1"),
        ("clos", {"leaves": 9}, "9 leaves of 4 hosts: expected 1 to 8"),
        ("clos", {"bw": 10}, "clos has no option bw: expected ports, leaves, ratio, link_mbit or small_first"),
    ],
)
def test_impossible_networks_are_refused(topology: str, options: dict[str, Any], message: str) -> None:
    made = getattr(importlib.import_module(f"serene.topologies.{topology}"), CLASSES[topology])
    with pytest.raises(NotReady, match=message):
        made(**options)


@pytest.mark.parametrize("folder", ["topologies", "serene/topologies"])  # the second as in a wheel
@pytest.mark.parametrize("name", ["star", "leaf_spine"])
def test_topology_file_loads_beside_a_similarly_named_file(name: str, folder: str, tmp_path: Path) -> None:
    """`mn --custom FILE,FILE` runs each file without ``__file__``; ours finds its folder by the code's own file
    name."""
    ours = ROOT / folder / f"{name}.py"
    program = (
        "import sys; ours = sys.argv.pop(); exec(compile(open(ours).read(), ours, 'exec'), {}); print(sys.path[0])"
    )
    custom = ["--custom", f"{tmp_path}/folder/my{name}.py,{ours}"]
    command = [sys.executable, "-c", program, *custom, str(ours)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.stdout == f"{ROOT}\n", done
