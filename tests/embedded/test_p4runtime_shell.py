"""p4runtime-shell, a client that is not ours, drives the embedded switch."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from serene.program import Program
from tests.controller.processes import SwitchProcess

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venv-shell" / "bin" / "python"

SESSION = """
import json, sys
import p4runtime_sh.shell as sh
from p4runtime_sh.p4runtime import P4RuntimeWriteException
address, p4info, program = sys.argv[1:]
sh.setup(device_id=0, grpc_addr=address, election_id=(0, 1), config=sh.FwdPipeConfig(p4info, program))
try:
    results = {}
    entry = sh.TableEntry("SereneIngress.admission.policy")(action="SereneIngress.admission.set_policy")
    entry.match["job"] = "3"
    policy = dict(session=7, epoch=2, member_mask=15, sync_mask=15, staleness=3, quorum=4, read_mode=0, members=4)
    for name, value in policy.items():
        entry.action[name] = str(value)
    entry.insert()
    entry.action["epoch"] = "3"
    entry.modify()
    read = []
    sh.TableEntry("SereneIngress.admission.policy").read(lambda e: read.append(e))
    number = lambda data: int.from_bytes(data, "big")
    results["entries"] = [[number(e.match["job"].exact.value), number(e.action["epoch"].value)] for e in read]
    try:
        entry.insert()
    except P4RuntimeWriteException as error:
        results["twice"] = str(error)
    group = sh.MulticastGroupEntry(group_id=16)
    group.add(1, 1).add(2, 2).insert()
    found = next(iter(sh.MulticastGroupEntry(group_id=16).read()))
    results["replicas"] = [(r.port, r.instance) for r in found.replicas]
    counter = sh.CounterEntry("SereneIngress.barrier.contributions")
    counter.index = 5
    counter.read(lambda c: results.update(packets=c.data.packet_count))
    entry.delete()
finally:
    sh.teardown()  # its stream's thread would keep the process
print(json.dumps(results))
"""


@pytest.fixture(scope="module")
def shell() -> Path:
    """The environment, made by the script behind `make shell`."""
    made = subprocess.run(
        [ROOT / "scripts" / "shell", "--help"], capture_output=True, text=True, check=False, timeout=240
    )
    if made.returncode:
        pytest.skip(f"p4runtime-shell cannot be installed here: {made.stderr.strip().splitlines()[-1:]}")
    return PYTHON


def test_p4runtime_shell_drives_the_embedded_switch(shell: Path, tmp_path: Path) -> None:
    program = Program.load()
    switch = SwitchProcess("embedded", tmp_path / "switch.log")
    try:
        run = subprocess.run(
            [shell, "-c", SESSION, switch.grpc, program.p4info_path, program.config_path],
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
    finally:
        switch.stop()
    assert run.returncode == 0, run.stderr
    results = json.loads(run.stdout.splitlines()[-1])
    assert results["entries"] == [[3, 3]]
    assert "ALREADY_EXISTS" in results["twice"]
    assert [tuple(replica) for replica in results["replicas"]] == [(1, 1), (2, 2)]
    assert results["packets"] == 0
