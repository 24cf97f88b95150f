"""Automatic strategies of a running job, on each target: one that evicts and readmits, and users' own."""

from __future__ import annotations

from pathlib import Path

import pytest

from serene.controller.http.client import ControllerClient
from serene.strategy import BSP, SSP
from tests.controller.hosts import Host
from tests.controller.processes import automatic, serenectl, started, states, until


class Trio:
    """A job of three one-slot workers, pushed by hand."""

    def __init__(self, client: ControllerClient, hosts: list[Host]) -> None:
        self.client, self.hosts = client, hosts
        self.session = started(client, hosts, BSP())

    @property
    def epoch(self) -> int:
        return int(self.client.job(0).epoch)

    def push(self, worker: int) -> None:
        """Sends a contribution to round 0, the same one each time."""
        self.hosts[worker].push(0, worker, [1], session=self.session, epoch=self.epoch, seq=1)


@pytest.fixture
def trio(client: ControllerClient, hosts: list[Host]) -> Trio:
    return Trio(client, hosts)


def test_evict_strategy_evicts_and_readmits_a_silent_worker(trio: Trio, client: ControllerClient) -> None:
    """On a machine that stands still for two seconds the others seem silent, too; they are readmitted at once."""
    client.set_automatic(0, "evict", {"silent": "2.0", "period": "0.2"})

    def are(*wanted: str, speak: tuple[int, ...] = (0, 1)) -> bool:
        for worker in speak:  # these keep asking
            trio.push(worker)
        return states(client) == list(wanted)

    until(lambda: are("running", "running", "evicted"), "the silent one is out")
    unchanged = (0, 0)  # an epoch, and the number of decisions at its beginning

    def decides_again() -> bool:
        nonlocal unchanged
        decisions, epoch = automatic(client).decisions, trio.epoch
        if epoch != unchanged[0]:
            unchanged = epoch, decisions
        return are("running", "running", "evicted") and decisions >= unchanged[1] + 3

    until(decides_again, "the same decision writes nothing")
    until(lambda: are("running", "running", "running", speak=(0, 1, 2)), "it is heard and readmitted")
    assert client.job(0).strategy == BSP()
    current = automatic(client)
    assert (current.name, current.trouble) == ("evict", None)
    until(lambda: automatic(client).changes == trio.epoch - 1, "each change is an epoch")


def test_user_strategy_decides_until_a_manual_swap(trio: Trio, client: ControllerClient, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from serene.controller.automatic import Automatic, Decision\nfrom serene.strategy import SSP\n"
        "class Mine(Automatic):\n    period_s = 0.1\n    def __init__(self, bound: int): self.bound = bound\n"
        "    def decide(self, seen): return Decision(SSP(self.bound), reason='it rains')\n"
    )
    done = serenectl("sync", "auto", f"{file}:Mine", "--bound", "4", "--controller", client.url)
    assert (done.returncode, done.stdout) == (0, f"job 0: automatic strategy {file}:Mine is on\n"), done.stderr
    until(lambda: client.job(0).strategy == SSP(4), "it decides")
    until(lambda: automatic(client).decisions > 3, "it decides again")
    assert (trio.epoch, automatic(client).changes) == (2, 1), "one rule, however often it is repeated"
    assert automatic(client).reason == "it rains"
    swapped = serenectl("sync", "bsp", "--controller", client.url)
    assert swapped.stdout.startswith("job 0: SSP(4) -> BSP, epoch 3 ("), swapped.stderr
    assert swapped.stdout.endswith(f"); automatic strategy {file}:Mine is off\n"), "a swap ends it, and says so"
    assert client.job(0).automatic is None
    ours = serenectl("sync", "auto", "--controller", client.url)
    assert (ours.returncode, ours.stdout) == (0, "job 0: automatic strategy pacing is on\n"), ours.stderr
    nearer = serenectl("sync", "auto", "--near", "0.3", "--far=2", "--controller", client.url)
    assert (nearer.returncode, nearer.stdout) == (0, "job 0: automatic strategy pacing is on\n"), nearer.stderr
    assert automatic(client).parameters == {"near": "0.3", "far": "2"}
    refused = serenectl("sync", "auto", f"{file}:Mine", "--controller", client.url)
    assert (refused.returncode, refused.stderr) == (2, f"error: {file}:Mine: parameter bound is missing\n")


FAILING = [  # what a strategy does, and what is reported of it
    ("return 1 / 0", "ZeroDivisionError('division by zero') in line 6"),
    ("return 'ssp'", "decide() returned 'ssp': expected a Strategy, a Decision or None"),
    ("raise SystemExit(1)", "RuntimeError('SystemExit(1)') in line 6"),
    ("return Decision(BSP(), {7})", "worker 7 does not take part in job 0: expected 0, 1 or 2"),
    ("return Decision(BSP(), {0, 1, 2})", "job 0: the last member cannot be evicted"),
    ("return Quorum(9)", "a quorum of 9 of 3 workers: expected 1 to 3"),
]


def test_failing_strategy_is_not_asked_again(trio: Trio, client: ControllerClient, tmp_path: Path) -> None:
    imports = "from serene.controller.automatic import Automatic, Decision\nfrom serene.strategy import BSP, Quorum\n"
    for number, (body, trouble) in enumerate(FAILING):
        file = tmp_path / f"bad{number}.py"
        file.write_text(
            f"{imports}class Bad(Automatic):\n    period_s = 0.05\n    def decide(self, seen):\n        {body}\n"
        )
        client.set_automatic(0, f"{file}:Bad")
        until(lambda: automatic(client).trouble, "it fails")
        assert automatic(client).trouble == trouble
        assert f"automatic strategy {file}:Bad was stopped ({trouble})" in client.explain(0).headline
        assert (trio.epoch, client.job(0).strategy) == (1, BSP())
        client.unset_automatic(0)
        assert client.job(0).automatic is None
