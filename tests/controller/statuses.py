"""Made-up statuses, for tests of the code that shows them."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, RenderableType

from serene.controller.settings import ShmPort
from serene.controller.status.model import JobStatus, Listening, NamedSwitchStatus, Status, SwitchStatus, WorkerStatus
from serene.controller.switch.counters import Counters
from serene.report import Facts
from serene.strategy import BSP, Strategy


def worker_status(number: int, report: Facts | None = None, **fields: object) -> WorkerStatus:
    """Returns the status of a running worker that was heard just now. ``fields`` replace the defaults."""
    usual = {
        "worker": number, "rack": 0, "place": number, "state": "running",
        "port": 1, "ip": "10.0.0.1", "mac": "02:00:00:00:00:01",
        "udp_port": 4000, "incarnation": 7, "iteration": 3, "staleness": [1], "silent_s": 0.2,
        "contributions_sent": None, "report": report,
    }  # fmt: skip
    return WorkerStatus.model_validate({**usual, **fields})


def job_status(*workers: WorkerStatus, strategy: Strategy = BSP(), **fields: object) -> JobStatus:
    """The status of job 0, which runs in its first epoch. ``fields`` replace the usual ones."""
    usual = {
        "job": 0, "state": "running", "session": 1, "epoch": 1, "strategy": strategy, "pool": False, "precision": 32,
        "automatic": None, "lost_sessions": 0, "restoring": False, "workers_expected": len(workers),
        "racks": [len(workers)], "first_slot": 0, "slots": 1,
        "vector_length": 5, "scale": 65536, "limit": 8.0, "workers": list(workers), "epochs_begun": 1, "history": [],
    }  # fmt: skip
    return JobStatus.model_validate({**usual, **fields})


def status_of(*jobs: JobStatus, trouble: str | None = None, shm_ports: Sequence[ShmPort] = ()) -> Status:
    """The status of a controller with these jobs. ``trouble``: why its switch is not connected. ``shm_ports``: those of
    a local switch."""
    switch = SwitchStatus(
        address="127.0.0.1:9559", device_id=0, ip="10.0.0.254", udp_ports=[], shm_ports=shm_ports, election_id=1,
        connected=trouble is None, trouble=trouble,
        program="serene", lanes=320, slots=1, drops={}, totals=Counters(), requests_overlooked=0,
    )  # fmt: skip
    named = NamedSwitchStatus(
        name="", level="switch", rack=None, address=switch.address, connected=switch.connected, trouble=trouble,
        program=switch.program, drops={},
    )  # fmt: skip
    listening = Listening(http="127.0.0.1:8559", socket="")
    return Status(listening=listening, switch=switch, switches=[named], jobs=list(jobs))


def printed(what: RenderableType, width: int) -> str:
    console = Console(width=width, height=40)
    with console.capture() as text:
        console.print(what)
    return text.get()
