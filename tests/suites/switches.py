"""A network namespace of one's own with pairs of interfaces, and a switch at one end of each."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import grpc

from serene.topologies.processes import bmv2
from tests.suites.checkouts import Suite

PAIRS = 8
PATIENCE_S = 120.0
INSIDE = "SERENE_P4_SUITES"  # set in the namespace
GRPC, THRIFT = 9559, 9090  # nobody else is in the namespace


def enter_namespace() -> None:
    """Starts this process anew in a network namespace of its own, which ends with it, and makes the pairs there."""
    if os.environ.get(INSIDE) != "yes":
        os.environ[INSIDE] = "yes"
        os.execvp("unshare", ["unshare", "--net", sys.executable, "-m", "tests.suites", *sys.argv[1:]])
    commands = ["link set lo up"]
    for number in range(PAIRS):
        ends = f"veth{2 * number}", f"veth{2 * number + 1}"
        commands.append(f"link add {ends[0]} mtu 9500 type veth peer name {ends[1]} mtu 9500")
        commands += [f"link set {end} up addrgenmode none" for end in ends]
    for command in commands:
        subprocess.run(["ip", *command.split()], check=True)


def available(wanted: str) -> list[str]:
    """The switches to run: "both" stands for those that are there."""
    there = ["serene-switch", *(["bmv2"] if shutil.which("simple_switch_grpc") else [])]
    return there if wanted == "both" else [wanted]


@contextlib.contextmanager
def running(switch: str, suite: Suite) -> Iterator[str]:
    """The switch as the suite wants it, without a program; yields its address."""
    address = f"127.0.0.1:{GRPC}"
    command = bmv2(THRIFT, suite.device_id) if switch == "bmv2" else _ours(suite.device_id)
    for number in range(PAIRS):
        command += ["-i", f"{suite.first_port + number}@veth{2 * number}"]
    command += ["--", "--grpc-server-addr", address]
    command += ["--cpu-port", str(suite.cpu_port)] if suite.cpu_port is not None else []
    with tempfile.TemporaryFile() as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            with grpc.insecure_channel(address) as channel:
                grpc.channel_ready_future(channel).result(PATIENCE_S)
            yield address
        finally:
            process.kill()


def _ours(device_id: int) -> list[str]:
    return [str(Path(sys.executable).with_name("serene-switch")), "--no-p4", "--device-id", str(device_id)]
